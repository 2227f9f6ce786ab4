--- A proposal for one file: its hunks and the user's verdict on each.
---
--- Texts are lists of lines; their line endings are kept separately.

local contents = require('mcp-tools.editor.buffer.contents')
local file_text = require('mcp-tools.files.text')
local hunk_list = require('mcp-tools.editor.text.hunks')
local time_slice = require('mcp-tools.util.time_slice')

local api = vim.api

local M = {}

---@class mcp-tools.Proposal
---@field path string
---@field bufnr integer? loaded buffer of the file
---@field is_new boolean whether the file does not exist yet
---@field ends_change string? how the line breaks change
---@field made boolean accepting its only hunk deletes the file
---@field editable boolean whether the user may change the proposed text
---@field base string[] the current text
---@field hunks mcp-tools.Hunk[]
---@field rewritten boolean? the user has changed the proposed text
---@field gone string? why it can no longer be applied
---@field private exact string? the proposed bytes, if only the bytes differ
---@field private ends { last: boolean, crlf: boolean } of the current text
---@field private new_ends { last: boolean, crlf: boolean }
local Proposal = {}
Proposal.__index = Proposal

--- Describes what changes although no hunk is left: only bytes, or only the file and not the buffer.
---@param base string[]
---@param ends { last: boolean, crlf: boolean }
---@param new string[]
---@param new_ends { last: boolean, crlf: boolean }
---@return string
local function byte_change(base, ends, new, new_ends)
  if not vim.deep_equal(base, new) then
    return 'the file is written; the buffer already contains this and other unsaved changes'
  end
  return file_text.ends_change(ends, new_ends) or 'the encoding or the byte order mark changes'
end

--- Returns the single hunk of a proposal that changes only bytes, on the last line.
---@param base string[]
---@param form string
---@return mcp-tools.Hunk
local function byte_hunk(base, form)
  local last = { base[#base] }
  return { start = #base, count = 1, old = last, new = last, form = form }
end

---@class mcp-tools.ProposalFields
---@field path string
---@field bufnr integer?
---@field base string?
---@field text string
---@field editable boolean?
---@field is_new boolean?
---@field differs boolean?
---@field ends_change string? how the line breaks change
---@field made boolean?

--- Creates a proposal, for the text of the buffer if the file has one. Long texts are compared in a thread.
---@param fields mcp-tools.ProposalFields `base`: the text that it was made for, if it is not that of the buffer;
---  `differs`: the bytes differ, so there is something to decide even if the lines are equal
---@param cb fun(proposal: mcp-tools.Proposal?) called before this returns if the texts are short; nil: the buffer was
---  closed
function M.new(fields, cb)
  local bufnr = fields.bufnr
  local self = setmetatable({
    path = fields.path,
    bufnr = bufnr,
    is_new = fields.is_new == true,
    made = fields.made == true,
    editable = fields.editable ~= false,
  }, Proposal)
  time_slice.run(function(pause)
    local proposed
    if fields.base then
      self.base, self.ends = file_text.lines_of(fields.base, pause)
    elseif bufnr then
      local lines = contents.lines(bufnr, pause)
      if not lines then
        return cb(nil)
      end
      self.base, self.ends, self.tick = lines, file_text.ends_of(bufnr), api.nvim_buf_get_changedtick(bufnr)
    end
    proposed, self.new_ends = file_text.lines_of(fields.text, pause)
    self.base, self.ends = self.base or {}, self.ends or self.new_ends
    local function finish(hunks)
      if bufnr and not api.nvim_buf_is_loaded(bufnr) then
        return cb(nil)
      end
      self.hunks = hunks
      self:sync()
      local ends = bufnr and { last = vim.bo[bufnr].endofline, crlf = self.ends.crlf } or self.ends
      self.ends_change = (bufnr or fields.base) and file_text.ends_change(ends, self.new_ends) or nil
      if #self.hunks == 0 and fields.differs and #self.base > 0 then
        self.hunks = { byte_hunk(self.base, byte_change(self.base, ends, proposed, self.new_ends)) }
        self.exact = fields.text
      end
      cb(self)
    end
    if fields.made then
      return finish({ { start = 1, count = #self.base, old = self.base, new = {} } })
    end
    hunk_list.compare(self.base, proposed, finish)
  end)
end

--- Follows changes of the buffer.
---@return boolean changed
function Proposal:sync()
  if self.gone or not self.bufnr or not api.nvim_buf_is_loaded(self.bufnr) then
    return false
  end
  local tick = api.nvim_buf_get_changedtick(self.bufnr)
  if tick == self.tick then
    return false
  end
  self.tick = tick
  self:follow(api.nvim_buf_get_lines(self.bufnr, 0, -1, false))
  return true
end

--- Moves the hunks to a changed text.
---@param now string[]
function Proposal:follow(now)
  hunk_list.follow(self.hunks, self.base, now)
  self.hunks = vim.tbl_filter(function(hunk)
    return not hunk.is_there -- nothing left to decide
  end, self.hunks)
  if self.exact and not vim.deep_equal(self.base, now) then
    self.exact = nil -- for the earlier text only
    self:mark_gone('its text has changed during review')
  end
  self.base = now
end

--- Marks the proposal as no longer applicable.
---@param why string
function Proposal:mark_gone(why)
  self.gone = self.gone or why
end

--- Returns the number of undecided hunks.
---@return integer count
function Proposal:undecided()
  local count = 0
  for _, hunk in ipairs(self.gone and {} or self.hunks) do
    count = count + (hunk.verdict and 0 or 1)
  end
  return count
end

--- Accepts a hunk. Fails if its lines have changed.
---@param i integer
---@return boolean ok
---@return string? why_not
function Proposal:accept(i)
  self:sync()
  local hunk = self.hunks[i]
  if not hunk then
    return false, 'there is no such hunk'
  elseif hunk.changed then
    return false, 'its lines have changed: it can only be rejected'
  end
  hunk.verdict, hunk.reason = 'accepted', nil
  return true
end

---@param i integer
---@param reason string?
---@return boolean ok
---@return string? why_not
function Proposal:reject(i, reason)
  self:sync()
  local hunk = self.hunks[i]
  if not hunk then
    return false, 'there is no such hunk'
  end
  hunk.verdict, hunk.reason = 'rejected', reason
  return true
end

--- Accepts all hunks, or none if the lines of one have changed.
---@return boolean ok
---@return string? why_not
function Proposal:accept_all()
  self:sync()
  for _, hunk in ipairs(self.hunks) do
    if hunk.changed then
      return false, 'its lines have changed: restore them, or reject it'
    end
  end
  for _, hunk in ipairs(self.hunks) do
    hunk.verdict, hunk.reason = 'accepted', nil
  end
  return true
end

--- Removes the verdict on a hunk.
---@param i integer
function Proposal:reopen(i)
  local hunk = self.hunks[i]
  if hunk then
    hunk.verdict, hunk.reason = nil, nil
  end
end

--- Decides all undecided hunks. Hunks that cannot be applied are rejected.
---@param verdict 'accepted'|'rejected'
---@param reason string?
function Proposal:decide_rest(verdict, reason)
  self:sync()
  for _, hunk in ipairs(self.hunks) do
    if not hunk.verdict then
      hunk.verdict = hunk.changed and 'rejected' or verdict
      hunk.reason = hunk.verdict == 'rejected' and reason or nil
    end
  end
end

--- Replaces the proposed lines of a hunk.
---@param i integer
---@param lines string[]
---@return boolean ok
---@return string? why_not
function Proposal:edit(i, lines)
  local hunk = self.hunks[i]
  if not self.editable then
    return false, 'this proposal can only be accepted or rejected'
  elseif not hunk then
    return false, 'there is no such hunk'
  elseif not vim.deep_equal(hunk.new, lines) then
    hunk.new, hunk.edited = lines, true
  end
  return true
end

--- Returns the text with all hunks that are not rejected.
---@return string[]
function Proposal:proposed()
  return hunk_list.applied(self.base, self.hunks, function(hunk)
    return hunk.verdict ~= 'rejected'
  end)
end

--- Replaces the proposed text. Verdicts on unchanged hunks are kept.
---@param lines string[]
---@param base? string[] text of the file that they were typed for; default: that of the last `sync`
---@return boolean ok
---@return string? why_not
function Proposal:rewrite(lines, base)
  if not self.editable then
    return false, 'this proposal can only be accepted or rejected'
  end
  local typed, known, kept = hunk_list.between(base or self.base, lines), {}, {}
  hunk_list.follow(typed, base or self.base, self.base)
  for _, hunk in ipairs(self.hunks) do
    if hunk.verdict == 'rejected' or hunk.changed then
      table.insert(kept, hunk) -- not part of `lines`
    else
      known[hunk.start .. ' ' .. hunk.count] = hunk
    end
  end
  for _, hunk in ipairs(typed) do
    local before = known[hunk.start .. ' ' .. hunk.count]
    if before and vim.deep_equal(before.new, hunk.new) then
      hunk = before
    else
      hunk.edited = true
      hunk.verdict = before and before.verdict
      hunk.seen = before and before.seen -- the rest was typed by the user
      kept = vim.tbl_filter(function(other) -- the new hunk replaces those that it overlaps
        return other.start + other.count <= hunk.start or hunk.start + hunk.count <= other.start
      end, kept)
    end
    table.insert(kept, hunk)
  end
  table.sort(kept, function(a, b)
    return a.start < b.start or a.start == b.start and a.count < b.count
  end)
  self.hunks, self.rewritten = kept, true
  self:sync()
  return true
end

--- Returns whether a hunk is applied.
---@param hunk mcp-tools.Hunk
---@return boolean
local function is_applied(hunk)
  return hunk.verdict == 'accepted' and not hunk.changed
end

--- Returns the text with the accepted hunks.
---@return string[]? lines nil: nothing is applied
---@return string? text
function Proposal:final()
  self:sync()
  local count = #vim.tbl_filter(is_applied, self.hunks)
  if self.gone or count == 0 and #self.hunks > 0 then
    return nil
  end
  local lines = hunk_list.applied(self.base, self.hunks, is_applied)
  if self.exact and not self:is_edited() then
    return lines, self.exact
  end
  local ends = { last = self.ends.last, crlf = self.new_ends.crlf }
  if count == #self.hunks then
    ends.last = self.new_ends.last
  end
  return lines, file_text.text_of(lines, ends)
end

--- Returns the accepted hunks as edits of the current text.
---@return mcp-tools.Edit[]
function Proposal:edits()
  return hunk_list.edits(vim.tbl_filter(is_applied, self.gone and {} or self.hunks))
end

---@class mcp-tools.Rejected
---@field path string
---@field hunk integer 1-based index in its file
---@field line integer 1-based line in the current text
---@field reason string?

--- Returns the hunks that are not applied, with reasons.
---@return mcp-tools.Rejected[]
function Proposal:rejected()
  local list = {}
  for i, hunk in ipairs(self.hunks) do
    if self.gone or not is_applied(hunk) then
      local reason = self.gone or hunk.changed and 'its lines have changed during review' or nil
      table.insert(list, { path = self.path, hunk = i, line = hunk.start, reason = hunk.reason or reason })
    end
  end
  return list
end

--- Returns whether the user has changed an applied hunk.
---@return boolean
function Proposal:is_edited()
  return self.rewritten == true
    or vim.iter(self.hunks):any(function(hunk)
      return hunk.edited == true and is_applied(hunk)
    end)
end

return M

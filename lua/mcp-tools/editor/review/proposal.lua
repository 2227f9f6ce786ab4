--- What somebody proposes for one file: hunks, and what the person says of each.
---
--- A text is a list of lines here. How its lines end, and whether the last one does, is kept apart.

local hunk_list = require('mcp-tools.editor.text.hunks')
local text_lines = require('mcp-tools.files.text')

local api = vim.api

local M = {}

---@class mcp-tools.Proposal
---@field path string
---@field bufnr integer? loaded, of the file
---@field is_new boolean there is no such file yet
---@field made boolean the file is there already, and would not be: its one hunk is all of it
---@field editable boolean what the person types into it counts
---@field base string[] the text as it is
---@field hunks mcp-tools.Hunk[]
---@field rewritten boolean? the person has changed the proposed text
---@field gone string? why nothing of it can be applied any more
---@field private exact string? the bytes that are proposed, where they are what is asked about
---@field private ends { last: boolean, crlf: boolean } of the text as it is
---@field private new_ends { last: boolean, crlf: boolean }
local Proposal = {}
Proposal.__index = Proposal

--- What becomes of the bytes of a text whose lines stay as they are.
---@param base string[]
---@param ends { last: boolean, crlf: boolean }
---@param new string[]
---@param new_ends { last: boolean, crlf: boolean }
---@return string
local function new_form(base, ends, new, new_ends)
  if not vim.deep_equal(base, new) then
    return 'the file is written; the buffer has this already, and more that is not saved'
  end
  return text_lines.ends_change(ends, new_ends) or 'the encoding or the byte order mark changes'
end

--- The one hunk of a text that has no other, though its bytes would be others: on the last line.
---@param base string[]
---@param form string
---@return mcp-tools.Hunk
local function whole(base, form)
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
---@field made boolean?

---@class mcp-tools.ProposalKnown
---@field proposed string[]?
---@field new_ends { last: boolean, crlf: boolean }?
---@field base string[]?
---@field ends { last: boolean, crlf: boolean }? of a base that was given
---@field tick integer? of the buffer that the base is from
---@field hunks mcp-tools.Hunk[]?

--- Makes one. With a buffer, its text is what counts; `base`, if given, is the text that the proposal was made from.
--- `differs`: the file has other bytes, so that there is something to decide on even where the lines are the same.
---@param fields mcp-tools.ProposalFields
---@param known? mcp-tools.ProposalKnown of long texts, found before
---@return mcp-tools.Proposal
function M.new(fields, known)
  known = known or {}
  local proposed, new_ends = known.proposed, known.new_ends
  if not proposed or not new_ends then
    proposed, new_ends = text_lines.lines_of(fields.text)
  end
  local self = setmetatable({
    path = fields.path,
    bufnr = fields.bufnr,
    is_new = fields.is_new == true,
    made = fields.made == true,
    editable = fields.editable ~= false,
    new_ends = new_ends,
  }, Proposal)
  if known.base then
    self.base, self.tick = known.base, known.tick
    self.ends = known.ends or fields.bufnr and text_lines.ends_of(fields.bufnr) or new_ends
  elseif fields.base then
    self.base, self.ends = text_lines.lines_of(fields.base)
  else
    self.base = fields.bufnr and api.nvim_buf_get_lines(fields.bufnr, 0, -1, false) or {}
    self.ends = fields.bufnr and text_lines.ends_of(fields.bufnr) or new_ends
  end
  if fields.made then
    self.hunks = { { start = 1, count = #self.base, old = self.base, new = {} } }
  else
    self.hunks = known.hunks or hunk_list.between(self.base, proposed)
  end
  self:sync()
  if #self.hunks == 0 and fields.differs and #self.base > 0 then
    local ends = fields.bufnr and { last = vim.bo[fields.bufnr].endofline, crlf = self.ends.crlf } or self.ends
    self.hunks = { whole(self.base, new_form(self.base, ends, proposed, new_ends)) }
    self.exact = fields.text
  end
  return self
end

--- Takes in what has become of the buffer meanwhile.
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

--- Takes in a text that has taken the place of the one that was known.
---@param now string[]
function Proposal:follow(now)
  hunk_list.follow(self.hunks, self.base, now)
  self.hunks = vim.tbl_filter(function(hunk)
    return not hunk.is_there -- there is nothing left to decide on
  end, self.hunks)
  if self.exact and not vim.deep_equal(self.base, now) then
    self.exact = nil -- those bytes are of the text that was
    self:leave('its text has changed meanwhile')
  end
  self.base = now
end

--- Nothing of it can be applied any more.
---@param why string
function Proposal:leave(why)
  self.gone = self.gone or why
end

--- Is there something that the person has not decided on?
---@return integer count
function Proposal:undecided()
  local count = 0
  for _, hunk in ipairs(self.gone and {} or self.hunks) do
    count = count + (hunk.verdict and 0 or 1)
  end
  return count
end

--- Says of a hunk that it is to be applied. One whose lines others have changed cannot be.
---@param i integer
---@return boolean ok
---@return string? why_not
function Proposal:accept(i)
  self:sync()
  local hunk = self.hunks[i]
  if not hunk then
    return false, 'there is no such hunk'
  elseif hunk.changed then
    return false, 'its lines have changed meanwhile: undo that, or reject it'
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

--- Accepts all hunks, or none of them when the lines of one have changed meanwhile.
---@return boolean ok
---@return string? why_not
function Proposal:accept_all()
  self:sync()
  for _, hunk in ipairs(self.hunks) do
    if hunk.changed then
      return false, 'you have changed lines of it meanwhile: undo that, or reject it'
    end
  end
  for _, hunk in ipairs(self.hunks) do
    hunk.verdict, hunk.reason = 'accepted', nil
  end
  return true
end

--- Takes back what was said of a hunk.
---@param i integer
function Proposal:reopen(i)
  local hunk = self.hunks[i]
  if hunk then
    hunk.verdict, hunk.reason = nil, nil
  end
end

--- Says the same of all hunks that nothing was said of. Of those to be accepted, what cannot be applied is rejected.
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

--- The person writes other lines into one hunk.
---@param i integer
---@param lines string[]
---@return boolean ok
---@return string? why_not
function Proposal:edit(i, lines)
  local hunk = self.hunks[i]
  if not self.editable then
    return false, 'who proposes this takes only yes or no'
  elseif not hunk then
    return false, 'there is no such hunk'
  elseif not vim.deep_equal(hunk.new, lines) then
    hunk.new, hunk.edited = lines, true
  end
  return true
end

--- The text with all that is proposed and not rejected, as an editable proposal shows it.
---@return string[]
function Proposal:proposed()
  return hunk_list.applied(self.base, self.hunks, function(hunk)
    return hunk.verdict ~= 'rejected'
  end)
end

--- The person has changed the proposed text as a whole. What was said of hunks that stay counts.
---@param lines string[]
---@return boolean ok
---@return string? why_not
function Proposal:rewrite(lines)
  if not self.editable then
    return false, 'who proposes this takes only yes or no'
  end
  -- That text was made of the one that was known; what has changed since is followed below.
  local known, kept = {}, {}
  for _, hunk in ipairs(self.hunks) do
    if hunk.verdict == 'rejected' or hunk.changed then
      table.insert(kept, hunk) -- they are not in that text
    else
      known[hunk.start .. ' ' .. hunk.count] = hunk
    end
  end
  for _, hunk in ipairs(hunk_list.between(self.base, lines)) do
    local before = known[hunk.start .. ' ' .. hunk.count]
    if before and vim.deep_equal(before.new, hunk.new) then
      hunk = before
    else
      hunk.edited = true
      hunk.verdict = before and before.verdict
      kept = vim.tbl_filter(function(other) -- what is written over a hunk takes its place
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

--- Is a hunk part of the text that the verdicts make?
---@param hunk mcp-tools.Hunk
---@return boolean
local function is_applied(hunk)
  return hunk.verdict == 'accepted' and not hunk.changed
end

--- What the verdicts make. Hunks without one stay out.
---@return string[]? lines nil when nothing of it is applied
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
  return lines, text_lines.text_of(lines, ends)
end

--- The same as edits of the text as it is, for editor/edit.
---@return mcp-tools.Edit[]
function Proposal:edits()
  return hunk_list.edits(vim.tbl_filter(is_applied, self.gone and {} or self.hunks))
end

---@class mcp-tools.Rejected
---@field path string
---@field hunk integer which one of its file, from 1
---@field line integer of the text as it is, from 1
---@field reason string?

--- What is not applied, and why.
---@return mcp-tools.Rejected[]
function Proposal:rejected()
  local list = {}
  for i, hunk in ipairs(self.hunks) do
    if self.gone or not is_applied(hunk) then
      local reason = self.gone or hunk.changed and 'its lines have changed meanwhile' or nil
      table.insert(list, { path = self.path, hunk = i, line = hunk.start, reason = hunk.reason or reason })
    end
  end
  return list
end

--- Has the person changed something of what is applied?
---@return boolean
function Proposal:is_edited()
  return self.rewritten == true
    or vim.iter(self.hunks):any(function(hunk)
      return hunk.edited == true and is_applied(hunk)
    end)
end

return M

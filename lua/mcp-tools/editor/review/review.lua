--- One review: the user's verdicts and the outcome.

local log = require('mcp-tools.log')

local M = {}

--- closed: ended undecided. busy: not shown because too many are open.
---@alias mcp-tools.ReviewState 'accepted'|'rejected'|'closed'|'busy'

---@class mcp-tools.ReviewOutcome
---@field state mcp-tools.ReviewState accepted: at least one hunk
---@field files table<string, string> final texts of the files with accepted hunks
---@field rejected mcp-tools.Rejected[]
---@field reason string? why it was closed, busy, or rejected as a whole
---@field edited boolean whether the user has changed accepted hunks
---@field proposals mcp-tools.Proposal[]

---@class mcp-tools.Review
---@field id integer
---@field client { name: string?, session: string? }
---@field key string
---@field title string
---@field applied boolean the edits are already applied; accepting a hunk reverts one
---@field asked boolean the user has asked for it, so it is shown first
---@field whole boolean one decision for all hunks
---@field no_reason boolean the client cannot receive the reason for a rejection
---@field saves boolean the client writes the buffer's text to the file
---@field files mcp-tools.Proposal[]
---@field ready boolean the texts are loaded
---@field ended mcp-tools.ReviewState?
---@field stops (fun())[] called at its end
---@field on_finish fun(review: mcp-tools.Review, outcome: mcp-tools.ReviewOutcome)
---@field on_touched fun(review: mcp-tools.Review)
local Review = {}
Review.__index = Review

--- Creates a review whose texts are not loaded yet.
---@param fields table
---@return mcp-tools.Review
function M.new(fields)
  return setmetatable(vim.tbl_extend('error', fields, { files = {}, ready = false, stops = {} }), Review)
end

--- Returns the number of undecided hunks.
---@return integer
function Review:undecided()
  local count = 0
  for _, file in ipairs(self.files) do
    count = count + file:undecided()
  end
  return count
end

---@param state mcp-tools.ReviewState
---@param reason string?
function Review:finish(state, reason)
  if self.ended then
    return
  end
  local outcome = { state = state, files = {}, rejected = {}, edited = false, proposals = self.files }
  for _, file in ipairs(self.files) do
    if state == 'accepted' then
      local _, text = file:final()
      outcome.files[file.path] = text
      outcome.edited = outcome.edited or file:is_edited()
    end
    local is_decided = state == 'accepted' or state == 'rejected'
    vim.list_extend(outcome.rejected, is_decided and file:rejected() or {})
  end
  if state == 'accepted' and next(outcome.files) == nil then
    outcome.state = 'rejected'
  end
  outcome.reason = reason or outcome.state == 'rejected' and outcome.rejected[1] and outcome.rejected[1].reason or nil
  self.ended = outcome.state
  for _, stop in ipairs(self.stops) do
    log.guard('the end of a review', stop)
  end
  self.on_finish(self, outcome)
end

--- Handles a verdict or a changed text: the review ends when nothing is left to decide.
function Review:touched()
  if self.ended or not self.ready then
    return
  elseif self:undecided() == 0 then
    return self:finish('accepted')
  end
  self.on_touched(self)
end

--- Accepts a hunk.
---@param file integer
---@param hunk integer
---@return boolean ok
---@return string? why_not
function Review:accept(file, hunk)
  if self.whole then
    return self:decide_rest('accepted')
  end
  local ok, why = self.files[file]:accept(hunk)
  self:touched()
  return ok, why
end

--- Rejects a hunk.
---@param file integer
---@param hunk integer
---@param reason string?
---@return boolean ok
---@return string? why_not
function Review:reject(file, hunk, reason)
  if self.whole then
    return self:decide_rest('rejected', reason)
  end
  local ok, why = self.files[file]:reject(hunk, reason)
  self:touched()
  return ok, why
end

--- Removes the verdict on a hunk.
---@param file integer
---@param hunk integer
function Review:reopen(file, hunk)
  self.files[file]:reopen(hunk)
  self:touched()
end

--- Replaces the proposed lines of a hunk.
---@param file integer
---@param hunk integer
---@param lines string[]
---@return boolean ok
---@return string? why_not
function Review:edit(file, hunk, lines)
  local ok, why = self.files[file]:edit(hunk, lines)
  self:touched()
  return ok, why
end

--- Replaces the proposed text of a file.
---@param file integer
---@param lines string[]
---@return boolean ok
---@return string? why_not
function Review:rewrite(file, lines)
  local ok, why = self.files[file]:rewrite(lines)
  if not self.ended then
    self.on_touched(self) -- the user is still typing, so it does not end even if no hunk is left
  end
  return ok, why
end

--- Decides all undecided hunks.
---@param verdict 'accepted'|'rejected'
---@param reason string?
---@return boolean ok
---@return string? why_not
function Review:decide_rest(verdict, reason)
  if self.whole and verdict == 'accepted' then
    for _, file in ipairs(self.files) do
      local ok, why = file:accept_all()
      if not ok then
        return false, why
      end
    end
  end
  for _, file in ipairs(self.files) do
    file:decide_rest(verdict, reason)
  end
  self:touched()
  return true
end

--- Returns whether nothing could be applied any more, whatever the user decided.
---@param proposals mcp-tools.Proposal[]
---@return boolean
function M.are_stale(proposals)
  return vim.iter(proposals):all(function(proposal)
    return proposal.gone ~= nil
      or #proposal.hunks > 0
        and vim.iter(proposal.hunks):all(function(hunk)
          return hunk.changed == true and not hunk.reason
        end)
  end)
end

--- Ends it undecided.
---@param reason string?
function Review:close(reason)
  self:finish('closed', reason or 'the review was closed')
end

return M

--- One review: what the person says of each hunk, and the one outcome.

local log = require('mcp-tools.log')

local M = {}

--- closed: nobody has decided. busy: nobody was asked, since too many wait already.
---@alias mcp-tools.ReviewState 'accepted'|'rejected'|'closed'|'busy'

---@class mcp-tools.ReviewOutcome
---@field state mcp-tools.ReviewState accepted: at least a part of it
---@field files table<string, string> final texts of the files of which a part was accepted
---@field rejected mcp-tools.Rejected[]
---@field reason string? of a review that was closed, busy, or rejected as a whole
---@field edited boolean the person has changed what was accepted
---@field proposals mcp-tools.Proposal[]

---@class mcp-tools.Review
---@field id integer
---@field client { name: string?, session: string? }
---@field key string
---@field title string
---@field applied boolean what is proposed undoes what is there already
---@field asked boolean the person is led there
---@field whole boolean one decision for all of it
---@field no_reason boolean who asked cannot receive the reason of a rejection
---@field saves boolean who asked writes the text of the buffer to the file
---@field files mcp-tools.Proposal[]
---@field ready boolean the texts are known
---@field ended mcp-tools.ReviewState?
---@field stops (fun())[] run at its end
---@field on_finish fun(review: mcp-tools.Review, outcome: mcp-tools.ReviewOutcome)
---@field on_touched fun(review: mcp-tools.Review)
local Review = {}
Review.__index = Review

--- Makes one whose texts are not known yet.
---@param fields table
---@return mcp-tools.Review
function M.new(fields)
  return setmetatable(vim.tbl_extend('error', fields, { files = {}, ready = false, stops = {} }), Review)
end

--- How many hunks wait for the person.
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

--- Something was said, or a text has changed: it ends when there is nothing left to decide on.
function Review:touched()
  if self.ended or not self.ready then
    return
  elseif self:undecided() == 0 then
    return self:finish('accepted')
  end
  self.on_touched(self)
end

--- Says of a hunk that it is to be.
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

--- Says of a hunk that it is not to be.
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

--- Takes back what was said of a hunk.
---@param file integer
---@param hunk integer
function Review:reopen(file, hunk)
  self.files[file]:reopen(hunk)
  self:touched()
end

--- The person writes other lines into a hunk.
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

--- The person has changed the proposed text of a file.
---@param file integer
---@param lines string[]
---@return boolean ok
---@return string? why_not
function Review:rewrite(file, lines)
  local ok, why = self.files[file]:rewrite(lines)
  if not self.ended then
    self.on_touched(self) -- whoever is typing is not done, though nothing may be left of what was proposed
  end
  return ok, why
end

--- Says the same of all that nothing was said of.
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

--- Could nothing of it be applied any more, whatever the person has said?
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
  self:finish('closed', reason or 'it was closed')
end

return M

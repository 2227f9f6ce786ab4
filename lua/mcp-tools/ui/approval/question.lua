--- A question for approval: who is being asked, and the one answer that counts.

local YES = require('mcp-tools.approval.choices').YES
local announce = require('mcp-tools.ui.approval.event')
local changes = require('mcp-tools.ui.approval.changes')
local denial = require('mcp-tools.approval.denial')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local typing = require('mcp-tools.ui.approval.typing')

local uv = vim.uv

local M = {}

--- An answer by key or command this soon after one question took the place of another may be meant for that other.
local GUARD_NS = 400e6

---@alias mcp-tools.Choice
---| 'once'    # this call
---| 'review'  # this call, but only what the person accepts of what it changes
---| 'session' # this tool in this session
---| 'always'  # this tool in this project
---| 'deny'    # not this call
---| 'never'   # not this tool in this project
---| 'silence' # nothing of this session that would have to be asked for

---@class mcp-tools.Asked what a person is shown
---@field call mcp-tools.Call
---@field args table a copy: what is shown is what runs
---@field reason string
---@field targets mcp-tools.CallTarget[]
---@field choices mcp-tools.Choice[]
---@field root string

--- `by` is who answered (default "person", at the editor; or "client"); without a choice, why nobody did. `reason` is
--- what the user typed to explain a denial.
---@alias mcp-tools.Answer fun(choice: mcp-tools.Choice?, err: mcp-tools.Error?, by: string?, reason: string?)
---@alias mcp-tools.Ask fun(asked: mcp-tools.Asked, answer: mcp-tools.Answer)

--- Puts a question to the person somewhere. It answers with `question:answer(choice)`.
---@class mcp-tools.Asker
---@field serial boolean it shows one question at a time, on the screen of the editor
---@field show fun(question: mcp-tools.Question)
---@field hide fun(question: mcp-tools.Question) also when it was never shown, and when it has answered
---@field update? fun(question: mcp-tools.Question) how many questions wait behind it has changed
---@field renew? fun(question: mcp-tools.Question) what it shows is not so any more
---@field reveal? fun(question: mcp-tools.Question): boolean shows more of it; false when all was on the screen
---@field refuse? fun(question: mcp-tools.Question): boolean says `why_not` beside it; false when it is not to be seen

---@class mcp-tools.Question: mcp-tools.Asked
---@field id string the call's
---@field askers mcp-tools.Asker[] the first that answers counts
---@field serial boolean one of them is the screen
---@field open integer how many questions there are for the screen, this one included
---@field shown_at integer? ns, on the screen of the editor
---@field took_over boolean? another question was there a moment before
---@field read boolean? its end was on the screen
---@field entered boolean? the cursor was led to it once, or was not to be
---@field preview string|false|nil what would change, once it is known
---@field why_not string? why the last answer was not taken
---@field closed boolean?
---@field tell mcp-tools.Answer
---@field on_close fun(question: mcp-tools.Question)
local Question = {}
Question.__index = Question

--- Makes a question that nobody has been asked yet.
---@param asked mcp-tools.Asked
---@param askers mcp-tools.Asker[] at least one
---@param tell mcp-tools.Answer called once
---@return mcp-tools.Question
function M.new(asked, askers, tell)
  local question = vim.tbl_extend('error', asked, { id = asked.call.id, askers = askers, tell = tell, open = 1 })
  question.serial = vim.iter(askers):any(function(asker)
    return asker.serial
  end)
  return setmetatable(question, Question)
end

--- Has an asker do something. What it runs into, a picker or a client's form, is for the log alone.
---@param asker mcp-tools.Asker
---@param what 'show'|'hide'|'update'|'renew'|'reveal'|'refuse'
---@return boolean ok
---@return any value
function Question:have(asker, what)
  if not asker[what] then
    return true
  end
  local ok, value = xpcall(asker[what], debug.traceback, self)
  if not ok then
    log.error('a question for approval of %s: %s failed: %s', self.call.name, what, value)
  end
  return ok, value
end

--- Has those asked who show one question at a time, or the others.
---@param serial boolean
function Question:ask(serial)
  for _, asker in ipairs(vim.list_slice(self.askers)) do
    if asker.serial == serial and not self.closed and not self:have(asker, 'show') then
      self:give_up(asker, 'the person could not be asked')
    end
  end
end

--- It is the one for the screen now.
---@param took_over boolean another one was there a moment before
function Question:show(took_over)
  typing.watch()
  self.shown_at, self.took_over = uv.hrtime(), took_over
  announce(self, 'shown')
  self:ask(true)
end

--- Tells those who show it how many there are.
---@param count integer
function Question:set_open(count)
  if self.open == count then
    return
  end
  self.open = count
  for _, asker in ipairs(self.askers) do
    self:have(asker, 'update')
  end
end

--- Ends it. What comes later is dropped.
---@param state mcp-tools.ApprovalState
---@param choice? mcp-tools.Choice
---@param err? mcp-tools.Error
---@param by? string who answered, or why nobody did
---@param reason? string the user's, for a denial
function Question:close(state, choice, err, by, reason)
  if self.closed then
    return
  end
  self.closed = true
  self.on_close(self)
  announce(self, state, choice, by)
  -- Before what was asked for begins, which may have something to ask itself.
  for _, asker in ipairs(self.askers) do
    self:have(asker, 'hide')
  end
  self.tell(choice, err, by, reason)
end

--- What it shows is another by now, which nobody has read.
function Question:renew()
  self.read = nil
  for _, asker in ipairs(self.askers) do
    self:have(asker, 'renew')
  end
end

--- Does not take an answer. Why is said beside the question, where it goes when the question goes and is seen from any
--- mode; else who answered has to be told.
---@param why string
---@return false taken
---@return string? why_not
function Question:refuse(why)
  self.why_not = why
  for _, asker in ipairs(self.askers) do
    local _, said = self:have(asker, 'refuse')
    if said then
      return false
    end
  end
  return false, why
end

--- Takes an answer. A yes is for what was shown: the person may have gone on writing since.
---@param choice mcp-tools.Choice
---@param by? 'person'|'client' who says so (default: the person at the editor)
---@param reason? string why the call is denied, for the assistant
---@return boolean taken
---@return string? why_not unless it is said beside the question
function Question:answer(choice, by, reason)
  if self.closed then
    return false, 'this question is no longer open'
  elseif not vim.list_contains(self.choices, choice) then
    return false, ('this question cannot be answered by "%s"'):format(choice)
  elseif YES[choice] and by ~= 'client' and changes.have_moved(self) then
    self:renew()
    return self:refuse('The change is different now. Review it, then answer again.')
  end
  self:close(YES[choice] and 'allowed' or 'denied', choice, nil, by or 'person', reason)
  return true
end

--- Takes an answer by key or command. Refuses it when the person may have meant another question, and a yes to what was
--- not on the screen.
---@param choice mcp-tools.Choice
---@param reason? string see `answer`
---@return boolean taken
---@return string? why_not unless it is said beside the question
function Question:answer_shown(choice, reason)
  local too_soon = self.took_over and uv.hrtime() - self.shown_at < GUARD_NS
  if too_soon or typing.began_before(self.shown_at) then
    self.took_over = false
    typing.forget()
    return self:refuse('The question has just changed. Read it, then answer again.')
  end
  -- What is reviewed is shown again, whole.
  for _, asker in ipairs(YES[choice] and choice ~= 'review' and self.askers or {}) do
    local ok, more = self:have(asker, 'reveal')
    if more or not ok then
      return self:refuse('more below: press again to continue')
    end
  end
  return self:answer(choice, nil, reason)
end

--- Asks the user why the call is denied, then denies it. Without a reason the question stays open.
---@param stays_open? fun() called if no reason was given
function Question:deny_because(stays_open)
  vim.ui.input({ prompt = 'Why not? ' }, function(reason)
    if reason and vim.trim(reason) ~= '' then
      local ok, why = self:answer('deny', nil, vim.trim(reason))
      if not ok then
        notify.warn(why)
      end
    elseif stays_open and not self.closed then
      stays_open()
    end
  end)
end

--- Somebody who was asking cannot go on. The others can; when there are none, the answer is no.
---@param asker mcp-tools.Asker
---@param why string
function Question:give_up(asker, why)
  self.askers = vim.tbl_filter(function(other)
    return other ~= asker
  end, self.askers)
  if #self.askers == 0 then
    self:close('unanswered', nil, denial.error(self.call, why, 'unanswered'), 'nobody to ask')
  end
end

--- Tells the person of a call that waits for them, though its question is over.
---@param call mcp-tools.Call
---@param why string
function M.tell_missed(call, why)
  local text = '`:McpTools approve` lets %s run when it is tried again; it was not, for %s (:McpTools trust)'
  notify.warn(text:format(sanitize.line(call.name), why))
end

--- Was it on the screen a moment ago, so that an answer to the next one may be meant for it?
---@param closed_at integer ns
---@return boolean
function M.is_close(closed_at)
  return uv.hrtime() - closed_at < GUARD_NS
end

return M

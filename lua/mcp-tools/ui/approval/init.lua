--- Asking the person: which questions are open, which one is on screen, what ends them.
---
--- Receives: questions of the gateway, answers of windows, commands, mappings, other plugins and clients.
--- Sends: the answer, or `access_denied` when nobody can be asked or nobody answers in time; `User McpToolsApproval`.
--- Does not know about: why a call needs a yes, what is done with it, what a question looks like.

local config = require('mcp-tools.config')
local emit = require('mcp-tools.ui.approval.event')
local errors = require('mcp-tools.errors')
local gateway = require('mcp-tools.trust.gateway')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local typing = require('mcp-tools.ui.approval.typing')

local M = {}

--- An answer by key or command this soon after one question took the place of another may be meant for that other.
local GUARD_NS = 400e6

---@alias mcp-tools.Choice
---| 'once'    # this call
---| 'session' # this tool in this session
---| 'always'  # this tool in this project
---| 'deny'    # not this call
---| 'never'   # not this tool in this project
---| 'silence' # nothing of this session that would have to be asked for

---@class mcp-tools.Asked what a person is shown
---@field call mcp-tools.Call
---@field args table a copy: what is shown is what runs
---@field reason string
---@field places mcp-tools.Place[]
---@field choices mcp-tools.Choice[]
---@field root string

--- `by` is who answered (default "person", at the editor; or "client"); without a choice, why nobody did.
---@alias mcp-tools.Answer fun(choice: mcp-tools.Choice?, err: mcp-tools.Error?, by: string?)
---@alias mcp-tools.Ask fun(asked: mcp-tools.Asked, answer: mcp-tools.Answer)

--- Puts a question to the person somewhere.
---@class mcp-tools.Asker
---@field serial boolean it shows one question at a time, on the screen of the editor
---@field show fun(question: mcp-tools.Question)
---@field hide fun(question: mcp-tools.Question) also when it was never shown, and when it has answered
---@field update? fun() how many questions are open has changed

---@class mcp-tools.Question: mcp-tools.Asked
---@field id string the call's
---@field answer mcp-tools.Answer
---@field timer uv.uv_timer_t
---@field askers mcp-tools.Asker[] the first that answers counts
---@field serial boolean one of them is the screen
---@field shown_at integer? ns, on the screen of the editor
---@field took_over boolean? another question was there a moment before
---@field closed boolean?

---@type mcp-tools.Question[] the first of those for the screen is on it
local open = {}
local last_closed_at = 0

--- Who asks, by the names in the options. A module is loaded when it is first needed.
---@type table<string, fun(): mcp-tools.Asker>
M.askers = {
  float = function()
    return require('mcp-tools.ui.approval.float')
  end,
  select = function()
    return require('mcp-tools.ui.approval.select')
  end,
  event = function() -- somebody else shows it, by `User McpToolsApproval`
    return { serial = true, show = function() end, hide = function() end }
  end,
}

--- Who can ask now. Calls that no MCP client has made are asked for in the editor, whatever the option says.
---@param call mcp-tools.Call
---@return mcp-tools.Asker[] askers
---@return string why_not for when there is none
local function askers(call)
  local where = call.host == 'mcp' and config.get().approval.ask_in or 'editor'
  local list, faults = {}, {}
  if where ~= 'editor' then
    local client = require('mcp-tools.ui.approval.client')
    local fault = client.missing(call)
    table.insert(fault and faults or list, fault or client)
  end
  if where ~= 'client' then
    if #vim.api.nvim_list_uis() > 0 then
      table.insert(list, M.askers[config.get().ui.approval]())
    else
      table.insert(faults, 'the editor has no UI to ask in')
    end
  end
  return list, table.concat(faults, ', and ')
end

--- The first question for the screen of the editor.
---@return mcp-tools.Question?
local function first()
  for _, question in ipairs(open) do
    if question.serial then
      return question
    end
  end
end

---@param question mcp-tools.Question
local function show(question)
  -- Later: the call came in a request, which must be answered before a prompt may hold the editor.
  vim.schedule(function()
    if question.closed or question.shown_at then
      return
    end
    typing.watch()
    question.shown_at = vim.uv.hrtime()
    question.took_over = question.shown_at - last_closed_at < GUARD_NS
    emit(question, 'shown')
    for _, asker in ipairs(question.askers) do
      if asker.serial then
        asker.show(question)
      end
    end
  end)
end

---@param question mcp-tools.Question
---@param state mcp-tools.ApprovalState
---@param choice mcp-tools.Choice?
---@param err mcp-tools.Error?
---@param by string? who answered, or why nobody did
local function close(question, state, choice, err, by)
  if question.closed then
    return -- answered after the call had ended
  end
  question.closed = true
  question.timer:stop()
  question.timer:close()
  local on_screen = first() == question
  for i, item in ipairs(open) do
    if item == question then
      table.remove(open, i)
      break
    end
  end
  if on_screen then
    last_closed_at = vim.uv.hrtime()
  end
  emit(question, state, choice, by)
  -- Before what was asked for begins, which may have something to ask itself.
  for _, asker in ipairs(question.askers) do
    local ok, fault = xpcall(asker.hide, debug.traceback, question)
    if not ok then
      log.error('a question for approval could not be taken back: %s', fault)
    end
  end
  question.answer(choice, err, by)
  local next_one = first()
  if next_one then
    show(next_one)
  end
end

--- Asks. Denies at once where nobody can be asked.
---@param asked mcp-tools.Asked
---@param answer mcp-tools.Answer
function M.ask(asked, answer)
  local call, options = asked.call, config.get()
  local who, why_not = askers(call)
  if #who == 0 then
    local why = ('it needs approval (%s) and %s'):format(asked.reason, why_not)
    return answer(nil, gateway.denied(call, why), 'nobody to ask')
  end
  if #open >= options.limits.approvals then
    local text = ('%d questions for approval are open (option limits.approvals); try again later'):format(#open)
    return answer(nil, errors.new('busy', text), 'busy')
  end
  call:move('ask')
  local question = vim.tbl_extend('error', asked, { id = call.id, answer = answer, askers = who })
  question.serial = vim.iter(who):any(function(asker)
    return asker.serial
  end)
  question.timer = assert(vim.uv.new_timer())
  local ms = options.approval.timeout
  call.answer_by = vim.uv.hrtime() + ms * 1e6
  question.timer:start(
    ms,
    0,
    vim.schedule_wrap(function()
      if not question.closed then
        local why = ('nobody answered within %d s'):format(ms / 1000)
        notify.warn(
          ('%s was not run: %s; `:McpTools approve` lets it run when it is tried again'):format(call.name, why)
        )
        close(question, 'unanswered', nil, gateway.denied(call, why), 'timeout')
      end
    end)
  )
  call:on_cancel(function()
    close(question, 'ended', nil, nil, 'cancelled')
  end)
  table.insert(open, question)
  emit(question, 'asked')
  for _, asker in ipairs(vim.list_slice(question.askers)) do
    if not asker.serial then
      asker.show(question)
    end
  end
  local on_screen = first()
  if question == on_screen then
    return show(question)
  end
  for _, asker in ipairs(on_screen and on_screen.askers or {}) do
    if asker.update then
      asker.update()
    end
  end
end

--- Somebody who was asking cannot go on. The others can; when there are none, the answer is no.
---@param question mcp-tools.Question
---@param asker mcp-tools.Asker
---@param why string
function M.give_up(question, asker, why)
  question.askers = vim.tbl_filter(function(other)
    return other ~= asker
  end, question.askers)
  if not question.closed and #question.askers == 0 then
    close(question, 'unanswered', nil, gateway.denied(question.call, why), 'nobody to ask')
  end
end

--- The question on screen.
---@return mcp-tools.Question?
function M.current()
  local question = first()
  return question and question.shown_at and question or nil
end

--- Every open question, oldest first.
---@return mcp-tools.Question[]
function M.list()
  return vim.list_slice(open)
end

--- How many questions are open in the editor.
---@return integer
function M.count()
  local count = 0
  for _, question in ipairs(open) do
    count = count + (question.serial and 1 or 0)
  end
  return count
end

local YES = { once = true, session = true, always = true }

--- Answers one question, whichever is on screen.
---@param id string the call's, as `User McpToolsApproval` names it
---@param choice mcp-tools.Choice
---@param by? 'person'|'client' who says so (default: the person at the editor)
---@return boolean answered
---@return string? why_not
function M.answer(id, choice, by)
  for _, question in ipairs(open) do
    if question.id == id then
      if not vim.list_contains(question.choices, choice) then
        return false, ('this question cannot be answered by "%s"'):format(choice)
      end
      close(question, YES[choice] and 'allowed' or 'denied', choice, nil, by or 'person')
      return true
    end
  end
  return false, 'this question is no longer open'
end

--- Answers the question on screen, for keys and commands. Refuses when the person may have meant another one.
---@param choice mcp-tools.Choice
---@return boolean answered
---@return string? why_not
function M.answer_current(choice)
  local question = M.current()
  if not question then
    return false, 'nothing is being asked'
  end
  local now = vim.uv.hrtime()
  local too_soon = question.took_over and now - question.shown_at < GUARD_NS
  if too_soon or typing.began_before(question.shown_at) then
    question.took_over = false
    typing.forget()
    return false, 'the question has just changed: look at it, then answer again'
  end
  return M.answer(question.id, choice)
end

return M

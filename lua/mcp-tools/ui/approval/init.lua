--- Asks the user for approval: chooses the askers, and holds the queue of open questions.

local Question = require('mcp-tools.ui.approval.question')
local config = require('mcp-tools.config')
local answers = require('mcp-tools.approval.answers')
local errors = require('mcp-tools.errors')
local notify = require('mcp-tools.notify')
local reviews = require('mcp-tools.editor.review')
local sessions = require('mcp-tools.util.session')
local timer = require('mcp-tools.util.timer')

local uv = vim.uv

local M = {}

--- Askers in the editor by the value of the option `ui.approval`.
---@type table<string, fun(): mcp-tools.Asker>
local EDITOR = {
  float = function()
    return require('mcp-tools.ui.approval.float') -- start-up cost
  end,
  select = function()
    return require('mcp-tools.ui.approval.askers').select -- start-up cost: not needed before the first question
  end,
  event = function() -- a plugin shows the question on `User McpToolsApproval`
    return { serial = true, show = function() end, hide = function() end }
  end,
}

--- Returns the askers for a call. Calls from inside Neovim are always asked for in the editor.
---@param call mcp-tools.Call
---@return mcp-tools.Asker[] askers
---@return string why_not why the list is empty
local function askers_of(call)
  local where = call.host == 'mcp' and config.get().approval.ask_in or 'editor'
  local list, faults = {}, {}
  if where ~= 'editor' then
    local client = require('mcp-tools.ui.approval.askers').client -- start-up cost
    local fault = client.missing(call)
    table.insert(fault and faults or list, fault or client)
  end
  if where ~= 'client' then
    if #vim.api.nvim_list_uis() > 0 then
      table.insert(list, EDITOR[config.get().ui.approval]())
    else
      table.insert(faults, 'the editor has no UI to ask in')
    end
  end
  return list, table.concat(faults, ', and ')
end

---@type mcp-tools.Question[] the first serial one is on the screen
local open = {}
local last_closed_at, last_unanswered_at = 0, 0 -- ns

---@return mcp-tools.Question[] questions in the editor
local function editor_questions()
  return vim.tbl_filter(function(question)
    return question.serial
  end, open)
end

--- Returns the number of open questions in the editor.
---@return integer
function M.count()
  return #editor_questions()
end

--- Returns whether a question ended without an answer so recently that an answer may still be meant for it.
---@return boolean
function M.has_just_closed()
  return Question.is_recent(last_unanswered_at)
end

--- Shows the first question, or updates the number of open questions in it.
local function advance()
  local question = editor_questions()[1]
  if not question then
    return
  elseif question.shown_at then
    return question:set_open(M.count())
  end
  question.open = M.count()
  -- Later: the call came in a request, which must be answered before a prompt blocks the main thread.
  vim.schedule(function()
    if not question.closed and not question.shown_at then
      -- An early `:McpTools approve` may be meant for a review.
      question:show(Question.is_recent(last_closed_at) or reviews.count() > 0)
    end
  end)
end

---@param question mcp-tools.Question
---@param state mcp-tools.ApprovalState
local function leave(question, state)
  local on_screen = editor_questions()[1] == question
  open = vim.tbl_filter(function(other)
    return other ~= question
  end, open)
  if on_screen then
    last_closed_at = uv.hrtime()
    last_unanswered_at = (state == 'allowed' or state == 'denied') and last_unanswered_at or last_closed_at
  end
end

--- Closes a question when nobody answers in time.
---@param question mcp-tools.Question
---@param ms integer
---@return mcp-tools.Timer
local function expire_later(question, ms)
  question.call.answer_by = uv.hrtime() + ms * 1e6
  return timer.after(ms, function()
    local why = ('nobody answered within %g s'):format(ms / 1000)
    Question.notify_denied(question.call, 'had no answer')
    question:close('unanswered', nil, answers.denial(question.call, why, 'unanswered'), 'timeout')
  end)
end

--- Adds a question to the queue and asks it, now or when it is first.
---@param question mcp-tools.Question
---@param ms integer timeout
function M.add(question, ms)
  local expiry = expire_later(question, ms)
  local tell = question.tell
  question.on_close = function(_, state)
    expiry:stop()
    leave(question, state)
  end
  question.tell = function(...)
    tell(...)
    advance()
  end
  table.insert(open, question)
  question:announce('asked')
  question.call:on_end(function()
    question:close('ended', nil, nil, question.call.state)
  end)
  question:ask(false)
  advance()
end

--- Returns the question on the screen.
---@return mcp-tools.Question?
function M.current()
  local question = editor_questions()[1]
  return question and question.shown_at and question or nil
end

--- Returns all open questions, oldest first.
---@return mcp-tools.Question[]
function M.list()
  return vim.list_slice(open)
end

--- Asks for approval. Denies at once if nobody can be asked.
---@param asked mcp-tools.Asked
---@param answer mcp-tools.Answer
function M.ask(asked, answer)
  local call, options = asked.call, config.get()
  local askers, why_not = askers_of(call)
  if #askers == 0 then
    local why = 'it needs approval, and ' .. why_not
    Question.notify_denied(call, 'was denied: ' .. why)
    return answer(nil, answers.denial(call, why, 'unanswered'), 'nobody to ask')
  end
  local clients = vim.tbl_map(function(question)
    return sessions.identity(question.call) or false
  end, open)
  local count = sessions.crowd(clients, sessions.identity(call) or false, 'questions for approval')
  if count then
    return answer(nil, errors.new('busy', count .. ' are open; try again later'), 'busy')
  end
  call:move('ask')
  M.add(Question.new(asked, askers, answer), options.approval.timeout)
end

--- Answers a question, whether or not it is on the screen.
---@param id string the call's, as in `User McpToolsApproval`
---@param choice mcp-tools.Choice
---@return boolean answered
---@return string? why_not
function M.answer(id, choice)
  for _, question in ipairs(open) do
    if question.id == id then
      return question:answer(choice)
    end
  end
  return false, 'this question is no longer open'
end

--- Answers the question on the screen, for commands. Refuses answers that may be meant for another question.
---@param choice mcp-tools.Choice
---@param reason? string why it is denied, for the assistant
function M.answer_current(choice, reason)
  local question = M.current()
  local why_not = M.count() > 0 and 'a new question: read it first' or 'no open question' ---@type string?
  if question then
    why_not = select(2, question:answer_shown(choice, reason))
  end
  if why_not then -- otherwise it was answered, or the question shows why not
    notify.warn(why_not)
  end
end

--- Moves the cursor to the floating window of the question.
function M.focus()
  local asker = EDITOR.float() --[[@as table]]
  asker.focus()
end

return M

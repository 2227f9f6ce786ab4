--- The questions for approval that are open: which one is on the screen, and what ends one without an answer.

local Question = require('mcp-tools.ui.approval.question')
local announce = require('mcp-tools.ui.approval.event')
local denial = require('mcp-tools.approval.denial')
local timer = require('mcp-tools.util.timer')

local uv = vim.uv

local M = {}

---@type mcp-tools.Question[] the first of those for the screen is on it
local open = {}
local last_closed_at = 0

--- The first question for the screen of the editor.
---@return mcp-tools.Question?
local function first()
  for _, question in ipairs(open) do
    if question.serial then
      return question
    end
  end
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

--- Shows the first one, or has it show how many there are.
local function advance()
  local question = first()
  if not question then
    return
  elseif question.shown_at then
    return question:set_open(M.count())
  end
  question.open = M.count()
  -- Later: the call came in a request, which must be answered before a prompt may hold the editor.
  vim.schedule(function()
    if not question.closed and not question.shown_at then
      question:show(Question.is_close(last_closed_at))
    end
  end)
end

---@param question mcp-tools.Question
local function leave(question)
  local on_screen = first() == question
  open = vim.tbl_filter(function(other)
    return other ~= question
  end, open)
  if on_screen then
    last_closed_at = uv.hrtime()
  end
end

--- Ends it when nobody answers in time.
---@param question mcp-tools.Question
---@param ms integer
---@return mcp-tools.Timer
local function expire_later(question, ms)
  question.call.answer_by = uv.hrtime() + ms * 1e6
  return timer.after(ms, function()
    local why = ('nobody answered within %g s'):format(ms / 1000)
    Question.tell_missed(question.call, why)
    question:close('unanswered', nil, denial.error(question.call, why, 'unanswered'), 'timeout')
  end)
end

--- Takes a question in and asks it, now or when it is its turn.
---@param question mcp-tools.Question
---@param ms integer how long it may stay open
function M.add(question, ms)
  local expiry = expire_later(question, ms)
  local tell = question.tell
  question.on_close = function()
    expiry:stop()
    leave(question)
  end
  question.tell = function(...)
    tell(...)
    advance()
  end
  table.insert(open, question)
  announce(question, 'asked')
  question.call:on_end(function()
    question:close('ended', nil, nil, question.call.state)
  end)
  question:ask(false)
  advance()
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

return M

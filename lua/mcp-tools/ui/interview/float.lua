--- Interview in floating windows.

local Window = require('mcp-tools.ui.interview.window')
local config = require('mcp-tools.config')
local keepers = require('mcp-tools.ui.window.keeper')

local M = {}

---@type mcp-tools.FloatKeeper
local keeper

--- Goes on to what comes after an answer.
---@param shown mcp-tools.InterviewWindow
local function advance(shown)
  local interview = shown.interview
  interview.why_not = nil
  local what = interview.answers:next()
  if what == 'end' then
    return interview:finish(interview.answers:result())
  elseif what == 'missing' then
    interview.why_not = 'choose one, or type an answer'
  else
    shown:show_question()
    shown:enter()
  end
  keeper:sync()
end

--- Chooses what the cursor is at; where only one can be chosen, that is the answer.
---@param shown mcp-tools.InterviewWindow
local function confirm(shown)
  local choice, answers = shown:choice(), shown.interview.answers
  if choice and not answers:current().multiselect then
    answers:choose(choice)
    shown:draw()
  end
  advance(shown)
end

---@param shown mcp-tools.InterviewWindow
---@param choice integer? the one at the cursor
local function choose(shown, choice)
  choice = choice or shown:choice()
  if choice and shown.interview.answers:current().choices[choice] then
    shown.interview.answers:choose(choice)
    shown:draw()
    shown:go_to(choice)
    keeper:sync()
  end
end

---@param shown mcp-tools.InterviewWindow
local function back(shown)
  if shown.interview.answers:back() then
    shown.interview.why_not = nil
    shown:show_question()
    shown:enter()
    keeper:sync()
  end
end

--- From one choice to the next, and behind the last one to the field.
---@param shown mcp-tools.InterviewWindow
---@param step integer
local function tab(shown, step)
  local count, at = #shown.interview.answers:current().choices, shown:choice() or 0
  if shown:cursor() == Window.FIELD then
    if count > 0 then
      shown:enter(Window.QUESTION)
      shown:go_to(step > 0 and 1 or count)
    end
  elseif at + step > count or at + step < 1 then
    shown:enter(Window.FIELD)
  else
    shown:go_to(at + step)
  end
  keeper:sync()
end

---@param shown mcp-tools.InterviewWindow
local function to_field(shown)
  shown:enter(Window.FIELD)
end

---@param interview mcp-tools.Interview
local function cancel(interview)
  interview:finish({ completed = false, answers = {} })
end

---@return mcp-tools.InterviewKeys
local function keys()
  local both = { 'n', 'i' }
  local function key(...)
    return keeper:key(...)
  end
  local function later()
    keeper:leave()
  end
  local function escape(shown)
    cancel(shown.interview)
  end
  local question = {
    ['<CR>'] = { 'n', key(confirm), 'answer' },
    ['<Space>'] = { 'n', key(choose), 'choose' },
    ['<Tab>'] = { 'n', key(tab, 1), 'next choice' },
    ['<S-Tab>'] = { 'n', key(tab, -1), 'choice before' },
    ['<C-P>'] = { 'n', key(back), 'question before' },
    ['<Esc>'] = { 'n', key(escape), 'cancel the interview' },
    q = { 'n', key(later), 'later: the interview stays open' },
  }
  for i = 1, 9 do
    question[tostring(i)] = { 'n', key(choose, i), 'choose the one of that number' }
  end
  for _, name in ipairs({ 'i', 'a', 'o', 'I', 'A', 'O' }) do
    question[name] = { 'n', key(to_field), 'type an answer' }
  end
  local field = {
    ['<CR>'] = { both, key(advance), 'answer' },
    ['<Tab>'] = { both, key(tab, 1), 'to the choices' },
    ['<S-Tab>'] = { both, key(tab, -1), 'to the choices' },
    ['<C-P>'] = { both, key(back), 'question before' },
    ['<Esc>'] = { 'n', key(escape), 'cancel the interview' },
    q = { 'n', key(later), 'later: the interview stays open' },
  }
  return { question = question, field = field }
end

keeper = keepers.new({
  name = 'interview',
  open = function(interview, opened)
    return Window.open(interview, keys(), opened)
  end,
  may_enter = function()
    return config.get().ui.interview_focus
  end,
  closed = cancel,
})

--- Shows an interview, or none.
---@param interview mcp-tools.Interview?
function M.show(interview)
  keeper:show(interview)
end

--- Takes an interview from the screen, at once if the person is in it: what comes next begins in the text.
---@param interview mcp-tools.Interview
function M.hide(interview)
  keeper:hide(interview)
end

--- Enters the window, when there is one.
function M.focus()
  keeper:focus()
end

return M

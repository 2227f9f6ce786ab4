--- State of an interview: its questions, and what was chosen and typed so far.

local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

---@class mcp-tools.InterviewQuestion
---@field question string
---@field choices string[]? free text is always possible in addition
---@field multiselect boolean? any number of choices
---@field default_choice integer? preselected choice, 0-based
---@field default string? initial text

---@class mcp-tools.InterviewAnswer
---@field question string
---@field answer string|string[] a list for `multiselect`

---@class mcp-tools.InterviewResult
---@field completed boolean false if the user cancelled
---@field answers mcp-tools.InterviewAnswer[]

---@class mcp-tools.InterviewState state of one question
---@field chosen table<integer, true>
---@field text string
---@field own boolean the text is the answer, not a choice

---@class mcp-tools.Answers
---@field questions mcp-tools.InterviewQuestion[]
---@field at integer
---@field states mcp-tools.InterviewState[]
local Answers = {}
Answers.__index = Answers

local function is_filled(text)
  return text:find('%S') ~= nil
end

--- Validates questions.
---@param questions any
---@return string? fault
function M.fault(questions)
  if type(questions) ~= 'table' or not vim.islist(questions) or #questions == 0 then
    return 'questions array is required and must not be empty'
  end
  for i, each in ipairs(questions) do
    local choices = type(each) == 'table' and each.choices or {}
    if type(each) ~= 'table' or type(each.question) ~= 'string' or not is_filled(each.question) then
      return ('Question %d: question text is required'):format(i)
    elseif
      type(choices) ~= 'table'
      or not vim.iter(choices):all(function(choice)
        return type(choice) == 'string'
      end)
    then
      return ('Question %d: choices must be a list of texts'):format(i)
    end
    local default = each.default_choice
    if default ~= nil and not (type(default) == 'number' and choices[default + 1]) then
      local text = 'Question %d: default_choice must be the 0-based index of one of its %d choices, got %s'
      return text:format(i, #choices, tostring(default))
    end
  end
end

--- Creates the state of an interview.
---@param questions mcp-tools.InterviewQuestion[] valid
---@return mcp-tools.Answers
function M.new(questions)
  local self = setmetatable({ questions = vim.deepcopy(questions), at = 1, states = {} }, Answers)
  for i, each in ipairs(self.questions) do
    each.choices = each.choices or {}
    local text = each.default or ''
    self.states[i] = { chosen = {}, text = text, own = not each.default_choice and is_filled(text) }
    if each.default_choice then
      self.states[i].chosen[each.default_choice + 1] = true
    end
  end
  return self
end

--- Returns the current question.
---@return mcp-tools.InterviewQuestion
function Answers:current()
  return self.questions[self.at]
end

--- Selects a choice instead of the current one; with `multiselect`, toggles it.
---@param choice integer
function Answers:choose(choice)
  local state, several = self.states[self.at], self:current().multiselect
  local was = state.chosen[choice] ---@type boolean?
  if not several then
    state.chosen, state.own, was = {}, false, nil
  end
  state.chosen[choice] = not was or nil
end

--- Returns whether a choice of the current question is selected.
---@param choice integer
---@return boolean
function Answers:is_chosen(choice)
  local state = self.states[self.at]
  return state.chosen[choice] == true and (self:current().multiselect == true or not state.own)
end

--- Returns the text of the current question.
---@return string
function Answers:text()
  return self.states[self.at].text
end

--- Sets the text of the current question, which becomes its answer or one of its answers.
---@param text string
function Answers:set_text(text)
  local state = self.states[self.at]
  if state.text ~= text then
    state.text, state.own = text, is_filled(text)
  end
end

--- Returns the answer to a question.
---@param i integer
---@return string|string[]|nil answer nil: not answered
function Answers:answer(i)
  local question, state = self.questions[i], self.states[i]
  local text = utf8.repair(trim(state.text))
  if question.multiselect then
    local list = {}
    for choice, label in ipairs(question.choices) do
      table.insert(list, state.chosen[choice] and label or nil)
    end
    table.insert(list, text ~= '' and text or nil)
    return list
  elseif #question.choices == 0 or state.own then
    return text
  end
  local choice = next(state.chosen)
  return choice and question.choices[choice]
end

--- Returns the texts that the user typed, each on its own line.
---@return string
function Answers:typed()
  local texts = {}
  for i, state in ipairs(self.states) do
    if is_filled(state.text) and state.text ~= self.questions[i].default then
      table.insert(texts, state.text)
    end
  end
  return table.concat(texts, '\n')
end

--- Moves to the next question.
---@return 'question'|'end'|'missing'
function Answers:next()
  if self:answer(self.at) == nil then
    return 'missing'
  elseif self.at == #self.questions then
    return 'end'
  end
  self.at = self.at + 1
  return 'question'
end

--- Moves to the previous question.
---@return boolean moved
function Answers:back()
  local before = self.at
  self.at = math.max(1, before - 1)
  return self.at < before
end

--- Returns all answers.
---@return mcp-tools.InterviewResult
function Answers:result()
  local list = {}
  for i, each in ipairs(self.questions) do
    list[i] = { question = each.question, answer = self:answer(i) }
  end
  return { completed = true, answers = list }
end

return M

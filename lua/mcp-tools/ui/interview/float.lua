--- Interview in two floating windows: the question with its choices, and below it a field for text.

local Rows = require('mcp-tools.ui.window.rows')
local config = require('mcp-tools.config')
local float = require('mcp-tools.ui.window.float')
local keepers = require('mcp-tools.ui.window.keeper')
local render = require('mcp-tools.ui.window.render')
local sanitize = require('mcp-tools.util.sanitize')

local api = vim.api

local MAX_NAME = 40

---@param interview mcp-tools.Interview
---@param below integer rows that are not on the screen
---@return table[] chunks
local function title_of(interview, below)
  local answers = interview.answers
  local count = #answers.questions
  local from = Rows.clip(sanitize.line(interview.from or 'a tool'), MAX_NAME)
  local chunks = { render.chunk((' %s asks '):format(from), 'Title') }
  if interview.why_not then
    chunks = { render.chunk((' %s '):format(interview.why_not), 'Warn') }
  end
  if count > 1 then
    table.insert(chunks, render.chunk(('%d of %d '):format(answers.at, count), 'Title'))
  end
  if interview.waiting > 0 then
    table.insert(chunks, render.chunk(('(%d more waiting) '):format(interview.waiting)))
  end
  return render.with_more(chunks, below)
end

---@param interview mcp-tools.Interview
---@return table[] chunks
local function field_title_of(interview)
  local question = interview.answers:current()
  local text = #question.choices == 0 and 'your answer' or question.multiselect and 'and also' or 'or something else'
  return { render.chunk((' %s '):format(text), 'Title') }
end

--- Returns the footer: the keys of the window that has the cursor, else the ways to answer.
---@param interview mcp-tools.Interview
---@param place 'question'|'field'|nil which window has the cursor
---@param window integer the window of the question
---@param width integer
---@return table[] chunks
local function footer_of(interview, place, window, width)
  local answers, list = interview.answers, {}
  local several, count = answers:current().multiselect, #answers:current().choices
  if place then
    local typing = place == 'field' and vim.api.nvim_get_mode().mode:sub(1, 1) == 'i'
    table.insert(list, place == 'question' and several and { '<Space>', 'choose' } or nil)
    table.insert(list, { '<CR>', answers.at == #answers.questions and 'done' or 'next' })
    table.insert(list, not typing and { '?', 'keys' } or nil) -- lists those that do not fit
    table.insert(list, not typing and { 'q', 'later' } or nil)
    table.insert(list, place == 'question' and { 'X', 'cancel' } or nil)
    table.insert(list, not typing and { 'i', 'type' } or nil)
    table.insert(list, count > 0 and { '<Tab>', place == 'field' and 'to the choices' or 'down' } or nil)
    table.insert(list, answers.at > 1 and { '<C-P>', 'back' } or nil)
  else
    local lead, map_mode = float.command_keys()
    local lhs = float.mapped_key(map_mode, 'answer')
    table.insert(list, lhs and { lhs, 'to answer' } or { lead .. ':McpTools answer', 'to open' })
    table.insert(list, float.is_next(window) and { lead .. '<C-W>w', 'to enter' } or nil)
  end
  return render.keys(list, width)
end

local LATER = 'answer later: the interview stays open'
--- Height of the field without and with choices.
local FIELD_ROWS, SMALL_FIELD_ROWS = 3, 1

--- Indexes of the windows.
local QUESTION, FIELD = 1, 2

---@class mcp-tools.InterviewWindow: mcp-tools.Float
---@field interview mcp-tools.Interview
---@field rows integer rows of the question
---@field choice_at table<integer, integer> row → choice
local Window = float.kind({ zindex = 55, max_width = 66, field = FIELD })

---@param answers mcp-tools.Answers
---@param width integer
---@return mcp-tools.Rows page
---@return table<integer, integer> choice_at
local function page_of(answers, width)
  local question, choice_at = answers:current(), {}
  local page = Rows.new(width, true)
  for _, line in ipairs(sanitize.lines(question.question)) do
    page:line(line, { { 1, #line, 'Title' } }, true)
  end
  if #question.choices > 0 then
    page:line('')
  end
  local on, off = '(•) ', '( ) '
  if question.multiselect then
    on, off = '[x] ', '[ ] '
  end
  for i, choice in ipairs(question.choices) do
    local chosen = answers:is_chosen(i)
    local mark, first = chosen and on or off, #page.list + 1
    local line = mark .. sanitize.line(choice)
    page:line(line, { { 1, #mark, 'Name' }, chosen and { #mark + 1, #line, 'Good' } or nil }, true)
    for row = first, #page.list do
      choice_at[row] = i
    end
  end
  return page, choice_at
end

---@class mcp-tools.InterviewKeys
---@field question mcp-tools.FloatKeys
---@field field mcp-tools.FloatKeys

---@param interview mcp-tools.Interview
---@param keys mcp-tools.InterviewKeys
---@param opened integer? window to keep visible
---@return mcp-tools.InterviewWindow
local function open_window(interview, keys, opened)
  local self = setmetatable({ interview = interview }, Window) --[[@as any]]
  self.buffers = {}
  for i, each in ipairs({ keys.question, keys.field }) do
    self.buffers[i] = float.buffer('mcp_tools_interview', true, each)
  end
  self:draw()
  self:open({ { wrap = false, scrolloff = 0, cursorline = false }, { wrap = not self:has_choices() } }, opened)
  self:show_hidden(self.windows[QUESTION])
  api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, {
    buffer = self.buffers[FIELD],
    callback = function()
      self:save()
      self:draw()
    end,
  })
  self:show_question()
  return self
end

---@return boolean
function Window:has_choices()
  return #self.interview.answers:current().choices > 0
end

---@param opened integer? window to keep visible
---@param now { row: integer, height: integer }? current position of both
---@return { row: integer, height: integer }[]
function Window:layout(opened, now)
  local field_rows = self:has_choices() and SMALL_FIELD_ROWS or FIELD_ROWS
  local at = self:place(self.rows + field_rows + float.FRAME, opened, now)
  local height = math.max(1, at.height - field_rows - float.FRAME)
  return { { row = at.row, height = height }, { row = at.row + height + float.FRAME, height = field_rows } }
end

--- Saves the text of the field. Keys that are typed faster than the editor draws fire no event of their own.
function Window:save()
  if api.nvim_buf_is_valid(self.buffers[FIELD]) then
    local lines = api.nvim_buf_get_lines(self.buffers[FIELD], 0, -1, false)
    self.interview.answers:set_text(table.concat(lines, '\n'))
    if self.is_over then
      self.interview:keep_text() -- the user types on
    end
  end
end

--- Draws the question; the cursor does not move.
function Window:draw()
  local page, choice_at = page_of(self.interview.answers, self:width())
  self.rows, self.choice_at = #page.list, choice_at
  render.update(self.buffers[QUESTION], page.list)
end

--- Shows the current question with its previous answer. A long question is shown from its beginning, so that the
--- cursor is not on a choice yet.
function Window:show_question()
  local answers = self.interview.answers
  self:draw()
  api.nvim_buf_set_lines(self.buffers[FIELD], 0, -1, false, vim.split(answers:text(), '\n', { plain = true }))
  self:move()
  api.nvim_set_option_value('wrap', not self:has_choices(), { win = self.windows[FIELD], scope = 'local' })
  local choice = 1
  for i = #answers:current().choices, 1, -1 do
    choice = answers:is_chosen(i) and i or choice
  end
  self:go_to(choice)
  if api.nvim_win_get_cursor(self.windows[QUESTION])[1] > self.placed[QUESTION].height then
    api.nvim_win_set_cursor(self.windows[QUESTION], { 1, 0 })
  end
end

--- Puts the cursor of the question on a choice.
---@param choice integer
function Window:go_to(choice)
  for row = 1, self.rows do
    if self.choice_at[row] == choice then
      return api.nvim_win_set_cursor(self.windows[QUESTION], { row, 1 })
    end
  end
  api.nvim_win_set_cursor(self.windows[QUESTION], { 1, 0 })
end

--- Returns the choice at the cursor.
---@return integer?
function Window:choice()
  return self.choice_at[api.nvim_win_get_cursor(self.windows[QUESTION])[1]]
end

--- Returns the window to enter first: the field if there are no choices.
---@return integer
function Window:first()
  return self:has_choices() and QUESTION or FIELD
end

---@return table[]
function Window:frames()
  local interview = self.interview
  self.over_note = interview.is_kept and '; your text is in register "' or nil
  local at = ({ [QUESTION] = 'question', [FIELD] = 'field' })[self:cursor()]
  local footer = footer_of(interview, at, self.windows[QUESTION], self:width())
  return {
    { title = title_of(interview, self:below()) },
    { title = field_title_of(interview), footer = footer },
  }
end

---@type mcp-tools.FloatKeeper
local keeper

--- Shows the next question, or finishes.
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

--- Answers the question. If only one can be chosen, the choice at the cursor is the answer.
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
---@param choice integer? default: the one at the cursor
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

--- Moves to the next choice, or from the last one to the field.
---@param shown mcp-tools.InterviewWindow
---@param step integer
local function tab(shown, step)
  local count, at = #shown.interview.answers:current().choices, shown:choice() or 0
  if shown:cursor() == FIELD then
    if count > 0 then
      shown:enter(QUESTION)
      shown:go_to(step > 0 and 1 or count)
    end
  elseif at + step > count or at + step < 1 then
    shown:enter(FIELD)
  else
    shown:go_to(at + step)
  end
  keeper:sync()
end

---@param interview mcp-tools.Interview
local function cancel(interview)
  interview:finish({ completed = false, answers = {} })
end

---@param interview mcp-tools.Interview
---@return mcp-tools.InterviewKeys
local function keys(interview)
  local both, most = { 'n', 'i' }, 0
  for _, each in ipairs(interview.answers.questions) do
    most = math.max(most, #each.choices)
  end
  local function later()
    keeper:leave()
  end
  local question = {
    ['<CR>'] = { 'n', keeper:key(confirm), 'answer' },
    ['<Space>'] = { 'n', keeper:key(choose), 'choose' },
    ['<Tab>'] = { 'n', keeper:key(tab, 1), 'next choice' },
    ['<S-Tab>'] = { 'n', keeper:key(tab, -1), 'previous choice' },
    ['<C-P>'] = { 'n', keeper:key(back), 'previous question' },
    ['<Esc>'] = { 'n', keeper:key(later), LATER },
    q = { 'n', keeper:key(later), LATER },
    X = {
      'n',
      keeper:key(function(shown)
        cancel(shown.interview)
      end),
      'cancel: answer none of the questions',
    },
  }
  local field = {
    ['<CR>'] = { both, keeper:key(advance), 'answer' },
    ['<Tab>'] = { both, keeper:key(tab, 1), 'to the choices' },
    ['<S-Tab>'] = { both, keeper:key(tab, -1), 'to the choices' },
    ['<C-P>'] = { both, question['<C-P>'][2], 'previous question' },
    ['<Esc>'] = question['<Esc>'],
    q = question.q,
  }
  for i = 1, math.min(9, most) do
    question[tostring(i)] = { 'n', keeper:key(choose, i), 'choose by number' }
  end
  for name in ('iaoIAO'):gmatch('.') do
    question[name] = { 'n', keeper:key(Window.enter, FIELD), 'type an answer' }
  end
  return { question = question, field = field }
end

keeper = keepers.new({
  name = 'interview',
  open = function(interview, opened)
    return open_window(interview, keys(interview), opened)
  end,
  may_enter = function()
    return config.get().ui.interview_focus
  end,
  closed = cancel,
})

return keeper

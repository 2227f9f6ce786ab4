--- The two floating windows of an interview: the question with its choices, and below it the field for text.

local Rows = require('mcp-tools.ui.window.rows')
local float = require('mcp-tools.ui.window.float')
local frame = require('mcp-tools.ui.interview.frame')
local placement = require('mcp-tools.ui.window.float')
local sanitize = require('mcp-tools.util.sanitize')
local render = require('mcp-tools.ui.window.render')

local api = vim.api

local M = {}

--- Rows of the field, where there is nothing to choose and where there is.
local FIELD_ROWS, SMALL_FIELD_ROWS = 3, 1

--- Its windows, as they are numbered.
local QUESTION, FIELD = 1, 2
M.QUESTION, M.FIELD = QUESTION, FIELD

---@class mcp-tools.InterviewWindow: mcp-tools.Float
---@field interview mcp-tools.Interview
---@field rows integer of the question
---@field choice_at table<integer, integer> row → choice
local Window = float.kind({ zindex = 55, max_width = 66 })

--- The question and its choices as rows.
---@param answers mcp-tools.Answers
---@param width integer
---@return mcp-tools.Rows page
---@return table<integer, integer> choice_at
local function page_of(answers, width)
  local question, choice_at = answers:current(), {}
  local page = Rows.new(width, true)
  for _, line in ipairs(sanitize.lines(question.question)) do
    page:line(line, { { 1, #line, 'Title' } })
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
    page:line(line, { { 1, #mark, 'Name' }, chosen and { #mark + 1, #line, 'Good' } or nil })
    for row = first, #page.list do
      choice_at[row] = i
    end
  end
  return page, choice_at
end

---@class mcp-tools.InterviewKeys
---@field question mcp-tools.FloatKeys
---@field field mcp-tools.FloatKeys

--- Opens them.
---@param interview mcp-tools.Interview
---@param keys mcp-tools.InterviewKeys
---@param opened integer? window that is not to be hidden
---@return mcp-tools.InterviewWindow
function M.open(interview, keys, opened)
  local self = setmetatable({ interview = interview }, Window)
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

---@param opened integer? window that is not to be hidden
---@param now integer? row where they stand
---@return { row: integer, height: integer }[]
function Window:layout(opened, now)
  local field_rows = self:has_choices() and SMALL_FIELD_ROWS or FIELD_ROWS
  local at = placement.find(self.rows + field_rows + placement.FRAME, opened, now)
  local height = math.max(1, at.height - field_rows - placement.FRAME)
  return { { row = at.row, height = height }, { row = at.row + height + placement.FRAME, height = field_rows } }
end

--- Takes what stands in the field. Keys that come faster than the editor draws have no event of their own.
function Window:save()
  if api.nvim_buf_is_valid(self.buffers[FIELD]) then
    local lines = api.nvim_buf_get_lines(self.buffers[FIELD], 0, -1, false)
    self.interview.answers:set_text(table.concat(lines, '\n'))
  end
end

--- Draws what is chosen by now; the cursor stays.
function Window:draw()
  local page, choice_at = page_of(self.interview.answers, self:width())
  self.rows, self.choice_at = #page.list, choice_at
  render.update(self.buffers[QUESTION], page.list)
end

--- Shows the question that the interview is at, with what was answered before.
function Window:show_question()
  local answers = self.interview.answers
  self:draw()
  api.nvim_buf_set_lines(self.buffers[FIELD], 0, -1, false, vim.split(answers:text(), '\n', { plain = true }))
  self:move()
  api.nvim_set_option_value('wrap', not self:has_choices(), { win = self.windows[FIELD], scope = 'local' })
  self:go_to(1)
  for i = 1, #answers:current().choices do
    if answers:is_chosen(i) then
      return self:go_to(i)
    end
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

--- The choice at the cursor.
---@return integer?
function Window:choice()
  return self.choice_at[api.nvim_win_get_cursor(self.windows[QUESTION])[1]]
end

--- Where the person begins: in the field where there is nothing to choose.
---@return integer
function Window:first()
  return self:has_choices() and QUESTION or FIELD
end

---@param index integer
---@return boolean
function Window:is_field(index)
  return index == FIELD
end

---@return table[]
function Window:frames()
  local interview = self.interview
  local at = ({ [QUESTION] = 'question', [FIELD] = 'field' })[self:cursor()]
  local footer = frame.footer(interview, at, self.windows[QUESTION], self:width())
  return {
    { title = frame.title(interview, self:below(QUESTION, self.rows)) },
    { title = frame.field(interview), footer = footer },
  }
end

return M

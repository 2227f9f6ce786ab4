--- The two floating windows of an interview: the question with its choices, and below it the field for text.
---
--- Receives: an interview; what its keys do.
--- Sends: windows that are not entered; the choice at the cursor; text as it is typed.
--- Does not know about: when they are to be there, what a key means.

local Page = require('mcp-tools.ui.float.page')
local frame = require('mcp-tools.ui.interview.frame')
local place = require('mcp-tools.ui.float.place')
local sanitize = require('mcp-tools.util.sanitize')
local way_back = require('mcp-tools.ui.float.way_back')

local api = vim.api

local M = {}

local MAX_WIDTH, MIN_WIDTH = 66, 20
--- Rows of the frame of a window.
local FRAME = 2
--- Rows of the field, where there is nothing to choose and where there is.
local FIELD, SMALL_FIELD = 3, 1

local COLOURS = {
  [''] = 'NormalFloat',
  Key = 'Special',
  Heading = 'Title',
  Cut = 'WarningMsg',
  Hidden = 'ErrorMsg',
  Question = 'Title',
  Mark = 'Identifier',
  Chosen = 'String',
}

local namespace = api.nvim_create_namespace('mcp-tools-interview')

---@class mcp-tools.InterviewWindow
---@field interview mcp-tools.Interview
---@field window integer of the question
---@field field integer window of the text
---@field buffer integer
---@field field_buffer integer
---@field tab integer
---@field rows integer of the question
---@field choice_at table<integer, integer> row → choice
---@field said string? the frames as they are
local Window = {}
Window.__index = Window

local function set_highlights()
  for name, link in pairs(COLOURS) do
    api.nvim_set_hl(0, 'McpToolsInterview' .. name, { link = link, default = true })
  end
  local border = api.nvim_get_hl(0, { name = 'FloatBorder', link = false })
  local normal = api.nvim_get_hl(0, { name = 'NormalFloat', link = false })
  local own = { fg = border.fg, ctermfg = border.ctermfg, bg = normal.bg, ctermbg = normal.ctermbg, default = true }
  api.nvim_set_hl(0, 'McpToolsInterviewBorder', own)
end

---@return integer
local function width_of_window()
  return math.max(MIN_WIDTH, math.min(MAX_WIDTH, vim.o.columns - 4))
end

--- The question and its choices as rows.
---@param answers mcp-tools.Answers
---@return mcp-tools.Page page
---@return table<integer, integer> choice_at
local function page_of(answers)
  local question, choice_at = answers:current(), {}
  local page = Page.new(width_of_window(), true)
  for _, line in ipairs(sanitize.lines(question.question)) do
    page:add(line, { { 1, #line, 'Question' } })
  end
  if #question.choices > 0 then
    page:add('')
  end
  local on, off = '(•) ', '( ) '
  if question.multiselect then
    on, off = '[x] ', '[ ] '
  end
  for i, choice in ipairs(question.choices) do
    local chosen = answers:is_chosen(i)
    local mark, first = chosen and on or off, #page.rows + 1
    local line = mark .. sanitize.line(choice)
    page:add(line, { { 1, #mark, 'Mark' }, chosen and { #mark + 1, #line, 'Chosen' } or nil })
    for row = first, #page.rows do
      choice_at[row] = i
    end
  end
  return page, choice_at
end

---@param choices integer
---@param rows integer of the question
---@param now integer? row where it stands
---@return table question, table field as `nvim_win_set_config` takes them
local function layout(choices, rows, now)
  local field_rows = choices == 0 and FIELD or SMALL_FIELD
  local at = place.find(rows + field_rows + FRAME, nil, now)
  local height = math.max(1, at.height - field_rows - FRAME)
  local width = width_of_window()
  local base = { relative = 'editor', anchor = 'NE', col = vim.o.columns, width = width }
  return vim.tbl_extend('error', base, { row = at.row, height = height }),
    vim.tbl_extend('error', base, { row = at.row + height + FRAME, height = field_rows })
end

---@param keys table<string, { [1]: string|string[], [2]: fun(), [3]: string }>
---@return integer buffer
local function new_buffer(keys)
  local buffer = api.nvim_create_buf(false, true)
  vim.b[buffer].mcp_tools_interview = true
  for key, action in pairs(keys) do
    vim.keymap.set(action[1], key, action[2], { buffer = buffer, nowait = true, desc = action[3] })
  end
  return buffer
end

---@param buffer integer
---@param config table
---@param options table<string, any>
---@return integer window
local function open_window(buffer, config, options)
  local fixed = { style = 'minimal', border = 'rounded', zindex = 55, focusable = true, noautocmd = true }
  local window = api.nvim_open_win(buffer, false, vim.tbl_extend('error', config, fixed))
  options.winfixbuf = true
  options.winhighlight = 'Normal:McpToolsInterview,FloatBorder:McpToolsInterviewBorder'
  for name, value in pairs(options) do
    api.nvim_set_option_value(name, value, { win = window, scope = 'local' })
  end
  return window
end

---@class mcp-tools.InterviewKeys what keys do, by buffer: key → modes, action, description
---@field question table<string, { [1]: string|string[], [2]: fun(), [3]: string }>
---@field field table<string, { [1]: string|string[], [2]: fun(), [3]: string }>

--- Opens them.
---@param interview mcp-tools.Interview
---@param keys mcp-tools.InterviewKeys
---@return mcp-tools.InterviewWindow
function M.open(interview, keys)
  set_highlights()
  local answers = interview.answers
  local page, choice_at = page_of(answers)
  local self = setmetatable({ interview = interview, rows = #page.rows, choice_at = choice_at }, Window)
  self.tab = api.nvim_get_current_tabpage()
  self.buffer, self.field_buffer = new_buffer(keys.question), new_buffer(keys.field)
  local question, field = layout(#answers:current().choices, self.rows)
  local ok, err = pcall(function()
    self.window = open_window(self.buffer, question, { wrap = false, scrolloff = 0, cursorline = false })
    self.field = open_window(self.field_buffer, field, { wrap = #answers:current().choices == 0 })
  end)
  if not ok then
    self:close()
    error(err, 0)
  end
  vim.fn.matchadd('McpToolsInterviewHidden', sanitize.PATTERN, 10, -1, { window = self.window })
  api.nvim_create_autocmd({ 'TextChanged', 'TextChangedI', 'TextChangedP' }, {
    buffer = self.field_buffer,
    callback = function()
      self:take_text()
      self:draw()
    end,
  })
  self:show_question()
  return self
end

--- Takes what stands in the field. Keys that come faster than the editor draws have no event of their own.
function Window:take_text()
  if api.nvim_buf_is_valid(self.field_buffer) then
    local lines = api.nvim_buf_get_lines(self.field_buffer, 0, -1, false)
    self.interview.answers:set_text(table.concat(lines, '\n'))
  end
end

---@param page mcp-tools.Page
function Window:write(page)
  vim.bo[self.buffer].modifiable = true
  api.nvim_buf_set_lines(self.buffer, 0, -1, false, page.rows)
  vim.bo[self.buffer].modifiable = false
  api.nvim_buf_clear_namespace(self.buffer, namespace, 0, -1)
  for _, mark in ipairs(page.marks) do
    local name = 'McpToolsInterview' .. mark.name
    api.nvim_buf_set_extmark(self.buffer, namespace, mark.row, mark.from, { end_col = mark.to, hl_group = name })
  end
end

--- Draws what is chosen by now; the cursor stays.
function Window:draw()
  local page, choice_at = page_of(self.interview.answers)
  self.rows, self.choice_at = #page.rows, choice_at
  self:write(page)
end

--- Shows the question that the interview is at, with what was answered before.
function Window:show_question()
  local answers = self.interview.answers
  self:draw()
  api.nvim_buf_set_lines(self.field_buffer, 0, -1, false, vim.split(answers:text(), '\n', { plain = true }))
  self:move(self.now)
  api.nvim_set_option_value('wrap', #answers:current().choices == 0, { win = self.field, scope = 'local' })
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
      return api.nvim_win_set_cursor(self.window, { row, 1 })
    end
  end
  api.nvim_win_set_cursor(self.window, { 1, 0 })
end

--- The choice at the cursor.
---@return integer?
function Window:choice()
  return self.choice_at[api.nvim_win_get_cursor(self.window)[1]]
end

--- Are both still there?
---@return boolean
function Window:is_valid()
  return api.nvim_win_is_valid(self.window) and api.nvim_win_is_valid(self.field)
end

--- Are they on the screen?
---@return boolean
function Window:is_here()
  return self:is_valid() and self.tab == api.nvim_get_current_tabpage()
end

--- Where the cursor is, if it is in one of them.
---@return 'question'|'field'|nil
function Window:cursor()
  local current = api.nvim_get_current_win()
  return current == self.window and 'question' or current == self.field and 'field' or nil
end

--- Enters one of them; where there is nothing to choose, the field.
---@param where? 'question'|'field'
function Window:enter(where)
  where = where or (#self.interview.answers:current().choices > 0 and 'question' or 'field')
  way_back.enter(where == 'field' and self.field or self.window)
end

--- Puts them where they hide nothing that matters, or where they are.
---@param now integer? row where they stand
function Window:move(now)
  local question, field = layout(#self.interview.answers:current().choices, self.rows, now)
  if self.now ~= question.row or self.height ~= question.height or self.below ~= field.height then
    api.nvim_win_set_config(self.window, question)
    api.nvim_win_set_config(self.field, field)
    self.now, self.height, self.below = question.row, question.height, field.height
  end
end

--- Makes way for the cursor; they stay while it is in them.
function Window:make_way()
  if not self:cursor() then
    self:move(self.now)
  end
end

--- Has the frames say what is true now.
function Window:set_frame()
  if self.said and api.nvim_get_mode().mode:sub(1, 1) == 'c' then
    return -- what was said before the command was typed is true after it, too
  end
  local interview = self.interview
  local below = math.max(0, self.rows - vim.fn.line('w$', self.window))
  local title, field = frame.title(interview, below), frame.field(interview)
  local footer = frame.footer(interview, self:cursor(), self.window, width_of_window())
  local said = vim.inspect({ title, field, footer })
  if self.said ~= said then
    api.nvim_win_set_config(self.window, { title = title })
    api.nvim_win_set_config(self.field, { title = field, footer = footer })
    self.said = said
  end
end

--- Closes them.
function Window:close()
  for _, window in ipairs({ self.window or -1, self.field or -1 }) do
    if api.nvim_win_is_valid(window) then
      api.nvim_win_close(window, true)
    end
  end
  for _, buffer in ipairs({ self.buffer, self.field_buffer }) do
    if api.nvim_buf_is_valid(buffer) then
      api.nvim_buf_delete(buffer, { force = true })
    end
  end
end

return M

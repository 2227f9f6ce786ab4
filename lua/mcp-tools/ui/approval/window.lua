--- The floating window of a question for approval: its text, its colours, what its frame says.
---
--- Receives: a question; what its keys do.
--- Sends: a window that is not entered; how much of it was never on the screen.
--- Does not know about: when it is to be there, answers.

local choices_of = require('mcp-tools.ui.approval.choices')
local frame = require('mcp-tools.ui.approval.frame')
local place = require('mcp-tools.ui.float.place')
local sanitize = require('mcp-tools.util.sanitize')
local text = require('mcp-tools.ui.approval.text')

local api = vim.api

local M = {}

local MAX_WIDTH, MIN_WIDTH = 100, 20

--- What is coloured, by the groups of any colour scheme.
local COLOURS = {
  [''] = 'NormalFloat',
  Key = 'Special',
  Hidden = 'ErrorMsg',
  Label = 'Identifier',
  Heading = 'Title',
  Outside = 'WarningMsg',
  Cut = 'WarningMsg',
  Added = 'Added',
  Removed = 'Removed',
  Changed = 'Changed',
}

local namespace = api.nvim_create_namespace('mcp-tools-approval')

---@class mcp-tools.ApprovalWindow
---@field question mcp-tools.Question
---@field window integer
---@field buffer integer
---@field tab integer
---@field rows integer of the text
---@field said string? the frame as it is
local Window = {}
Window.__index = Window

local function set_highlights()
  for name, link in pairs(COLOURS) do
    api.nvim_set_hl(0, 'McpToolsApproval' .. name, { link = link, default = true })
  end
  -- The frame stands on the background of the text, whatever the colour scheme has for frames.
  local border = api.nvim_get_hl(0, { name = 'FloatBorder', link = false })
  local normal = api.nvim_get_hl(0, { name = 'NormalFloat', link = false })
  local own = { fg = border.fg, ctermfg = border.ctermfg, bg = normal.bg, ctermbg = normal.ctermbg, default = true }
  api.nvim_set_hl(0, 'McpToolsApprovalBorder', own)
end

---@return integer
local function width_of_window()
  return math.max(MIN_WIDTH, math.min(MAX_WIDTH, vim.o.columns - 4))
end

---@param question mcp-tools.Question
---@param keys table<string, { [1]: fun(), [2]: string }>
---@return integer buffer
local function buffer_of(question, keys)
  local page = text.page(question, width_of_window())
  local buffer = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(buffer, 0, -1, false, page.rows)
  for _, mark in ipairs(page.marks) do
    local name = 'McpToolsApproval' .. mark.name
    api.nvim_buf_set_extmark(buffer, namespace, mark.row, mark.from, { end_col = mark.to, hl_group = name })
  end
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].bufhidden = 'wipe'
  vim.b[buffer].mcp_tools_approval = question.id
  for key, action in pairs(keys) do
    vim.keymap.set('n', key, action[1], { buffer = buffer, nowait = true, desc = action[2] })
  end
  return buffer
end

---@param rows integer
---@param opened integer? window that is not to be hidden
---@return table
local function layout(rows, opened)
  local at = place.find(rows, opened)
  return {
    relative = 'editor',
    anchor = 'NE',
    row = at.row,
    col = vim.o.columns,
    width = width_of_window(),
    height = at.height,
    style = 'minimal',
    border = 'rounded',
    zindex = 60,
    focusable = true,
    noautocmd = true,
  }
end

--- Opens it.
---@param question mcp-tools.Question
---@param actions table<mcp-tools.Choice|'leave', fun()>
---@param opened integer? window that is not to be hidden
---@return mcp-tools.ApprovalWindow
function M.open(question, actions, opened)
  set_highlights()
  local keys = {}
  for _, choice in ipairs(choices_of(question)) do
    keys[choice.key] = { actions[choice.name], choice.long }
  end
  for _, key in ipairs({ 'q', '<Esc>' }) do
    keys[key] = { actions.leave, 'leave the question open' }
  end
  local buffer = buffer_of(question, keys)
  local rows = api.nvim_buf_line_count(buffer)
  local ok, window = pcall(api.nvim_open_win, buffer, false, layout(rows, opened))
  if not ok then
    api.nvim_buf_delete(buffer, { force = true })
    error(window, 0)
  end
  local options = { wrap = false, scrolloff = 0, winfixbuf = true }
  options.winhighlight = 'Normal:McpToolsApproval,FloatBorder:McpToolsApprovalBorder'
  for name, value in pairs(options) do
    api.nvim_set_option_value(name, value, { win = window, scope = 'local' })
  end
  vim.fn.matchadd('McpToolsApprovalHidden', sanitize.PATTERN, 10, -1, { window = window })
  local tab = api.nvim_get_current_tabpage()
  return setmetatable({ question = question, window = window, buffer = buffer, tab = tab, rows = rows }, Window)
end

--- Is it still there?
---@return boolean
function Window:is_valid()
  return api.nvim_win_is_valid(self.window)
end

--- Is it on the screen?
---@return boolean
function Window:is_here()
  return self:is_valid() and self.tab == api.nvim_get_current_tabpage()
end

---@return boolean
function Window:has_cursor()
  return api.nvim_get_current_win() == self.window
end

--- How many rows have not been on the screen. Who has seen the end has seen enough.
---@return integer
function Window:unread()
  local question = self.question
  local below = question.read and 0 or self.rows - vim.fn.line('w$', self.window)
  question.read = below <= 0
  return math.max(0, below)
end

--- Shows the rows after those on the screen.
function Window:scroll()
  api.nvim_win_call(self.window, function()
    local height = api.nvim_win_get_height(self.window)
    local top = math.max(1, math.min(vim.fn.line('w$') + 1, self.rows - height + 1))
    vim.fn.winrestview({ topline = top, lnum = top, col = 0 })
  end)
end

--- Makes way for the cursor, and for what has been opened since. It stays while the cursor is in it.
---@param opened integer? window
function Window:make_way(opened)
  if self:has_cursor() then
    return
  end
  local config = api.nvim_win_get_config(self.window)
  local at = place.find(self.rows, opened, config.row)
  if at.row ~= config.row or at.height ~= config.height then
    at.relative, at.anchor, at.col = 'editor', 'NE', vim.o.columns
    api.nvim_win_set_config(self.window, at)
  end
end

--- Has the frame say what is true now.
function Window:set_frame()
  if self.said and api.nvim_get_mode().mode:sub(1, 1) == 'c' then
    return -- what was said before the command was typed is true after it, too
  end
  local footer = frame.footer(self.question, self.window, width_of_window())
  local now = { title = frame.title(self.question, self:unread()), footer = footer }
  local said = vim.inspect(now)
  if self.said ~= said then
    api.nvim_win_set_config(self.window, now)
    self.said = said
  end
end

--- Closes it.
function Window:close()
  if self:is_valid() then
    api.nvim_win_close(self.window, true)
  end
end

return M

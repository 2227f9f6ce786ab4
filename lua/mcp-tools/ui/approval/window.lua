--- The floating window of a question for approval: its text, and how much of it was on the screen.

local float = require('mcp-tools.ui.window.float.window')
local frame = require('mcp-tools.ui.approval.frame')
local placement = require('mcp-tools.ui.window.float.placement')
local render = require('mcp-tools.ui.window.render')
local text = require('mcp-tools.ui.approval.text')

local api = vim.api

local M = {}

---@class mcp-tools.ApprovalWindow: mcp-tools.Float
---@field question mcp-tools.Question
---@field rows integer of the text
local Window = float.kind({ zindex = 60, max_width = 100 })

--- Opens it.
---@param question mcp-tools.Question
---@param keys mcp-tools.FloatKeys
---@param opened integer? window that is not to be hidden
---@return mcp-tools.ApprovalWindow
function M.open(question, keys, opened)
  local self = setmetatable({ question = question }, Window)
  local page = text.page(question, self:width())
  self.rows = #page.list
  self.buffers = { float.buffer('mcp_tools_approval', question.id, keys) }
  render.update(self.buffers[1], page.list)
  self:open({ { wrap = false, scrolloff = 0 } }, opened)
  self:show_hidden(self.windows[1])
  return self
end

---@param opened integer? window that is not to be hidden
---@param now integer? row where it stands
---@return { row: integer, height: integer }[]
function Window:layout(opened, now)
  return { placement.find(self.rows, opened, now) }
end

--- How many rows have not been on the screen. Who has seen the end has seen enough.
---@return integer
function Window:unread()
  local below = self.question.read and 0 or self:below(1, self.rows)
  self.question.read = below == 0
  return below
end

--- Shows the rows after those on the screen.
function Window:scroll()
  local window = self.windows[1]
  api.nvim_win_call(window, function()
    local height = api.nvim_win_get_height(window)
    local top = math.max(1, math.min(vim.fn.line('w$') + 1, self.rows - height + 1))
    vim.fn.winrestview({ topline = top, lnum = top, col = 0 })
  end)
end

---@return table[]
function Window:frames()
  local title = frame.title(self.question, self:unread())
  return { { title = title, footer = frame.footer(self.question, self.windows[1], self:width()) } }
end

return M

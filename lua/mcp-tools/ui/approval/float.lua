--- Approval in a floating window: the text of a question, the keys to answer it, and how much of it was on the screen.

local config = require('mcp-tools.config')
local float = require('mcp-tools.ui.window.float')
local keepers = require('mcp-tools.ui.window.keeper')
local notify = require('mcp-tools.notify')
local render = require('mcp-tools.ui.window.render')
local sanitize = require('mcp-tools.util.sanitize')
local text = require('mcp-tools.ui.approval.text')

local api = vim.api

local M = { serial = true }

--- Number of answers in the footer before the key of the help.
local LAST_SHOWN = 6

--- Returns the ways to answer from outside the window, the quickest first.
---@param question mcp-tools.Question
---@param window integer
---@return { [1]: string, [2]: string }[] keys and their descriptions
local function ways(question, window)
  local lead, map_mode = float.command_keys()
  local list = {}
  for _, answer in ipairs({ { 'approve', 'yes' }, { 'deny', 'no' } }) do
    local lhs = float.mapped_key(map_mode, answer[1])
    table.insert(list, lhs and { lhs, answer[2] } or nil)
  end
  local has_keys = #list == 2
  table.insert(list, not has_keys and { lead .. ':McpTools approve', 'or deny' } or nil)
  local go = float.is_next(window) and '<C-W>w' or ':McpTools approve look'
  table.insert(list, { lead .. go, 'then y, n, ?' })
  if vim.list_contains(question.choices, 'review') then
    local lhs = float.mapped_key(map_mode, 'review')
    local review = { lhs or lead .. ':McpTools review', 'by hunk' }
    table.insert(list, has_keys and 3 or #list + 1, review) -- not all may fit
  end
  return list
end

--- Returns the footer: the keys of the window while it has the cursor, else the ways to answer.
---@param question mcp-tools.Question
---@param window integer
---@param width integer
---@return table[] chunks
local function footer_of(question, window, width)
  local list
  if api.nvim_get_current_win() == window then
    list = vim.tbl_map(function(choice)
      return { choice.key, choice.text }
    end, question:offered())
    table.insert(list, math.min(#list, LAST_SHOWN) + 1, { '?', 'keys' }) -- what does not fit is only in the help
  else
    list = ways(question, window)
  end
  return render.keys(list, width)
end

---@param question mcp-tools.Question
---@param unread integer rows that were not on the screen yet
---@return table[] chunks
local function title_of(question, unread)
  local why_not = question.why_not
  local chunks = {
    render.chunk((' %s '):format(why_not or 'Allow this call?'), why_not and 'Warn' or 'Title'),
  }
  if question.open > 1 then
    table.insert(chunks, render.chunk(('1 of %d '):format(question.open), 'Title'))
  end
  return render.with_more(chunks, unread)
end

---@class mcp-tools.ApprovalWindow: mcp-tools.Float
---@field question mcp-tools.Question
---@field read_rows integer? last row that was on the screen
local Window = float.kind({ zindex = 60, max_width = 100 })

--- Returns the number of rows that were not on the screen yet. Reaching the end counts as read.
---@return integer
function Window:unread()
  if self.question.read then
    return 0
  end
  self.read_rows = self:read(self.read_rows or 0)
  self.question.read = self.read_rows == self.rows
  return self.rows - self.read_rows
end

---@return table[]
function Window:frames()
  local title = title_of(self.question, self:unread())
  return { { title = title, footer = footer_of(self.question, self.windows[1], self:width()) } }
end

---@type mcp-tools.FloatKeeper
local keeper

---@param shown mcp-tools.ApprovalWindow
---@param choice mcp-tools.Choice|'reason'
local function answer(shown, choice)
  if choice == 'reason' then
    return shown.question:deny_because()
  end
  local ok, why = shown.question:answer_shown(choice)
  if not ok and why then
    notify.warn(why)
  end
end

---@param question mcp-tools.Question
---@return mcp-tools.FloatKeys keys
---@return string[] order in the help
local function keys_of(question)
  local keys, order = {}, {}
  for _, choice in ipairs(question:offered()) do
    table.insert(order, choice.key)
    keys[choice.key] = { 'n', keeper:key(answer, choice.name), choice.long }
  end
  for _, key in ipairs({ 'q', '<Esc>' }) do
    keys[key] = {
      'n',
      keeper:key(function()
        keeper:leave()
      end),
      'answer later: the question stays open',
    }
  end
  return keys, order
end

keeper = keepers.new({
  name = 'approval',
  open = function(question, opened)
    local window = setmetatable({ question = question }, Window)
    local buffer = float.buffer('mcp_tools_approval', question.id, keys_of(question))
    return window:open_page(text.page(question, window:width()), buffer, opened)
  end,
  may_enter = function()
    return config.get().ui.approval_focus
  end,
  closed = function(question)
    if question:answer('deny') then
      notify.info(('%s was denied: its window was closed'):format(sanitize.line(question.call.name)))
    end
  end,
})

---@param question mcp-tools.Question
function M.show(question)
  keeper:show(question)
end

---@param question mcp-tools.Question
function M.hide(question)
  keeper:hide(question, question.is_answered)
end

function M.update()
  keeper:sync_later()
end

--- Recreates the window; the cursor stays in it.
---@param question mcp-tools.Question
function M.renew(question)
  if keeper:on_screen(question) then
    keeper:renew()
  end
end

--- Scrolls down if not all of the question was on the screen.
---@param question mcp-tools.Question
---@return boolean more false if all of it was
function M.reveal(question)
  local shown = keeper:on_screen(question) --[[@as mcp-tools.ApprovalWindow?]]
  if not shown then
    return keeper:leave_over() or not question.read
  elseif shown:unread() == 0 and not shown:is_covered() then
    return false
  end
  shown:scroll(math.min((shown.read_rows or 0) + 1, shown.rows))
  keeper:sync_later()
  return true
end

--- Shows in the title why an answer was refused.
---@param question mcp-tools.Question
---@return boolean shown
function M.refuse(question)
  keeper:sync_later()
  return keeper:on_screen(question) ~= nil
end

--- Enters the window if there is one, else notifies the user.
function M.focus()
  keeper:focus()
end

return M

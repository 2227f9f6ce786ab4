-- Receives a question for approval. Sends it to a floating window that is never entered by itself; keys in it answer.
-- Does not know about what an answer means. What should be on screen is said once (`wanted`); `sync` makes it so, again
-- and again while the editor does not allow it (text is locked, the command-line window is open).

local config = require('mcp-tools.config')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local text = require('mcp-tools.ui.approval.text')
local sanitize = require('mcp-tools.ui.sanitize')

local api = vim.api

local M = { serial = true }

local MAX_WIDTH, MIN_WIDTH = 100, 20
-- Of the screen; the person goes on working in the rest.
local SHARE = 0.6
local RETRY_MS = 100
-- Keys pressed before the window was entered by itself were meant for the text.
local GUARD_MS = 500

---@type mcp-tools.Question?
local wanted
---@type { question: mcp-tools.Question, window: integer, buffer: integer, tab: integer }?
local shown
local group, retrying
local deaf = false

local sync

---@return boolean
local function is_open()
  return shown ~= nil and api.nvim_win_is_valid(shown.window)
end

---@param choice mcp-tools.Choice
local function answer(choice)
  if deaf or not shown then
    return
  end
  local ok, why = shown.question:answer_shown(choice)
  if not ok then
    notify.warn(why)
  end
end

--- Goes back to the text; the question stays.
local function leave()
  vim.cmd.wincmd('p')
  if is_open() and api.nvim_get_current_win() == shown.window then
    vim.cmd.wincmd('w')
  end
end

---@param question mcp-tools.Question
---@return integer buffer
local function buffer_of(question)
  local buffer = api.nvim_create_buf(false, true)
  api.nvim_buf_set_lines(buffer, 0, -1, false, text.lines(question))
  vim.bo[buffer].modifiable = false
  vim.bo[buffer].bufhidden = 'wipe'
  vim.b[buffer].mcp_tools_approval = question.id
  for _, choice in ipairs(text.choices(question)) do
    vim.keymap.set('n', choice.key, function()
      answer(choice.name)
    end, { buffer = buffer, nowait = true, desc = choice.long })
  end
  for _, key in ipairs({ 'q', '<Esc>' }) do
    vim.keymap.set('n', key, leave, { buffer = buffer, nowait = true, desc = 'leave the question open' })
  end
  return buffer
end

---@param question mcp-tools.Question
---@param width integer
---@return table[] footer
local function footer_of(question, width)
  local footer, used = {}, 0
  for _, choice in ipairs(text.choices(question)) do
    local part = (' %s %s '):format(choice.key, choice.text)
    used = used + #part
    if used <= width then
      table.insert(footer, { (' %s '):format(choice.key), 'McpToolsApprovalKey' })
      table.insert(footer, { choice.text .. ' ', 'McpToolsApproval' })
    end
  end
  return footer
end

--- Where the window goes: the half of the screen that the cursor is not in.
---@param question mcp-tools.Question
---@param height integer
---@return table
local function layout(question, height)
  local rows = vim.o.lines - vim.o.cmdheight
  local width = math.max(MIN_WIDTH, math.min(MAX_WIDTH, vim.o.columns - 4))
  local position = api.nvim_win_get_position(0)
  local low = position[1] + vim.fn.winline() > rows / 2
  return {
    relative = 'editor',
    anchor = low and 'NE' or 'SE',
    row = low and 0 or rows - 1,
    col = vim.o.columns,
    width = width,
    height = math.max(1, math.min(height, math.floor(rows * SHARE))),
    style = 'minimal',
    border = 'rounded',
    title = question.open > 1 and (' may this run? 1 of %d '):format(question.open) or ' may this run? ',
    footer = footer_of(question, width),
    zindex = 60,
    focusable = true,
  }
end

--- Sets the height by what the lines need at this width.
local function fit()
  local height = api.nvim_win_text_height(shown.window, {}).all
  local here = layout(shown.question, height)
  here.style = nil -- it would undo the options of the window
  api.nvim_win_set_config(shown.window, here)
end

local function set_highlights()
  for name, link in pairs({ [''] = 'NormalFloat', Key = 'Special', Border = 'FloatBorder', Hidden = 'ErrorMsg' }) do
    api.nvim_set_hl(0, 'McpToolsApproval' .. name, { link = link, default = true })
  end
end

--- Enters the window for who wants that, but not out of what they are doing.
local function enter()
  if not config.get().ui.approval_focus or api.nvim_get_mode().mode ~= 'n' or vim.fn.getcmdwintype() ~= '' then
    return
  end
  deaf = true
  vim.defer_fn(function()
    deaf = false
  end, GUARD_MS)
  api.nvim_set_current_win(shown.window)
end

---@param question mcp-tools.Question
local function open(question)
  set_highlights()
  local buffer = buffer_of(question)
  local here = layout(question, api.nvim_buf_line_count(buffer))
  here.noautocmd = true
  local ok, window = pcall(api.nvim_open_win, buffer, false, here)
  if not ok then
    api.nvim_buf_delete(buffer, { force = true })
    error(window, 0)
  end
  shown = { question = question, window = window, buffer = buffer, tab = api.nvim_get_current_tabpage() }
  local options = { wrap = true, showbreak = '↪ ', scrolloff = 0, winfixbuf = true }
  options.winhighlight = 'Normal:McpToolsApproval,FloatBorder:McpToolsApprovalBorder'
  for name, value in pairs(options) do
    api.nvim_set_option_value(name, value, { win = window, scope = 'local' })
  end
  vim.fn.matchadd('McpToolsApprovalHidden', sanitize.PATTERN, 10, -1, { window = window })
  fit()
  if not question.entered then
    question.entered = true
    enter()
  end
end

local function shut()
  local old = shown
  shown = nil
  if old and api.nvim_win_is_valid(old.window) then
    local ok, err = pcall(api.nvim_win_close, old.window, true)
    if not ok then
      shown = old
      error(err, 0)
    end
  end
end

local function stop_watching()
  if group then
    api.nvim_del_augroup_by_id(group)
    group = nil
  end
end

--- The window is gone and it was not us: closing it is a no, but with its tab page it only goes elsewhere.
---@param window integer
local function closed(window)
  if not shown or shown.window ~= window then
    return
  end
  local question, tab = shown.question, shown.tab
  shown = nil
  vim.schedule(function()
    if api.nvim_tabpage_is_valid(tab) then
      question:answer('deny')
    else
      sync()
    end
  end)
end

local function watch()
  if group then
    return
  end
  group = api.nvim_create_augroup('mcp-tools.ui.approval', {})
  local function on(event, callback)
    api.nvim_create_autocmd(event, { group = group, callback = callback })
  end
  on('WinClosed', function(event)
    closed(tonumber(event.match) --[[@as integer]])
  end)
  on({ 'TabEnter', 'VimResized' }, function()
    vim.schedule(sync)
  end)
end

local function reconcile()
  if shown and (shown.question ~= wanted or not is_open() or shown.tab ~= api.nvim_get_current_tabpage()) then
    shut()
  end
  if not wanted then
    return stop_watching()
  end
  watch()
  if shown then
    fit()
  else
    open(wanted)
  end
  -- The editor may be waiting for a key, in the command line for one, and would not draw by itself.
  if api.nvim_get_mode().mode:sub(1, 1) == 'c' then
    vim.cmd.redraw()
  end
end

sync = function()
  local ok, err = pcall(reconcile)
  if ok or retrying then
    return
  end
  log.debug('the window for approval waits: %s', err)
  retrying = true
  vim.defer_fn(function()
    retrying = false
    sync()
  end, RETRY_MS)
end

---@param question mcp-tools.Question
function M.show(question)
  wanted = question
  sync()
end

---@param question mcp-tools.Question
function M.hide(question)
  if wanted == question then
    wanted = nil
  end
  vim.schedule(sync) -- the next question may be there by then
end

function M.update()
  vim.schedule(sync)
end

--- Enters the window, when there is one.
function M.focus()
  if is_open() and shown.tab == api.nvim_get_current_tabpage() then
    api.nvim_set_current_win(shown.window)
  else
    notify.info('nothing is being asked')
  end
end

return M

--- Notifications for the user.
---
--- Safe in fast callbacks.

local log = require('mcp-tools.log')
local trim = require('mcp-tools.util.trim')

--- `remedy`: what the user can do.
---@class mcp-tools.Notify
---@field info fun(message: string, remedy: string?)
---@field warn fun(message: string, remedy: string?)
---@field error fun(message: string, remedy: string?)
local M = {}

local sent_once = {} ---@type table<string, string>

local MORE = '… (:messages)'
local HIGHLIGHT = { info = 'Normal', warn = 'WarningMsg', error = 'ErrorMsg' }

--- Returns whether `vim.notify` is Neovim's own, which writes to the message line.
---@return boolean
function M.is_builtin()
  if type(vim.notify) ~= 'function' then
    return false -- some notification plugins are callable tables
  end
  local source = debug.getinfo(vim.notify, 'S').source
  return source:find('^@vim/') ~= nil or source == '?' -- Neovim 0.12 has no file names for its own Lua code
end

--- Returns whether no hit-enter prompt can appear: there is no UI, or all UIs use ext_messages.
---@return boolean
function M.has_room()
  return vim.iter(vim.api.nvim_list_uis()):all(function(ui)
    return ui.ext_messages == true
  end)
end

--- Cuts a text to a display width.
---@param text string
---@param cells integer maximum display width
---@return string
function M.fitting(text, cells)
  local piece = vim.fn.strcharpart(text, 0, math.max(0, cells))
  local chars = vim.fn.strchars(piece)
  while chars > 0 and vim.fn.strdisplaywidth(piece) > cells do
    chars = chars - 1
    piece = vim.fn.strcharpart(piece, 0, chars)
  end
  return piece
end

--- Adds full lines to `:messages`. With "T" in 'shortmess', `:echomsg` cuts them only on the screen.
---@param level 'info'|'warn'|'error'
---@param lines string[]
local function keep(level, lines)
  local shortmess = vim.o.shortmess
  if not shortmess:find('T', 1, true) then
    vim.cmd('noautocmd set shortmess+=T')
  end
  for _, line in ipairs(lines) do
    vim.cmd(('echohl %s | echomsg %s | echohl None | redraw'):format(HIGHLIGHT[level], vim.fn.string(line)))
  end
  if vim.o.shortmess ~= shortmess then
    vim.cmd('noautocmd set shortmess-=T')
  end
end

--- Shows one line that fits on the screen; the full text is in `:messages`. A longer message would cause a hit-enter
--- prompt, which blocks the bridge.
---@param level 'info'|'warn'|'error'
---@param text string
---@param remedy string?
local function echo(level, text, remedy)
  local lines = vim.split(trim(text), '\n', { plain = true })
  vim.cmd.redraw()
  if M.has_room() or (#lines == 1 and vim.fn.strdisplaywidth(text) <= vim.v.echospace) then
    vim.api.nvim_echo({ { text, HIGHLIGHT[level] } }, true, {})
    return
  end
  keep(level, lines)
  local tail = MORE
  if remedy then -- it stays readable: the problem is cut first
    local room = math.floor(vim.v.echospace * 2 / 3)
    local is_short = vim.fn.strdisplaywidth(remedy) <= room
    tail = '… ' .. (is_short and remedy or M.fitting(remedy, room - vim.fn.strdisplaywidth(MORE)) .. MORE)
  end
  local line = M.fitting(lines[1], vim.v.echospace - vim.fn.strdisplaywidth(tail))
  vim.api.nvim_echo({ { line .. tail, HIGHLIGHT[level] } }, false, {})
end

---@param level 'info'|'warn'|'error'
---@param who string
---@param message string
---@param remedy string? the last part of the message
local function show(level, who, message, remedy)
  local text = ('[%s] %s'):format(who, message)
  if M.is_builtin() then
    echo(level, text, remedy)
  else
    vim.notify(text, vim.log.levels[level:upper()], { title = who })
  end
end

local has_warned = false

--- Returns whether a warning or an error was shown since the start.
---@return boolean
function M.has_warned()
  return has_warned
end

---@param level 'info'|'warn'|'error'
---@param message string
---@param remedy? string what the user can do
---@param who? string name of another plugin, for its messages
local function send(level, message, remedy, who)
  if remedy then
    remedy = remedy:gsub('^%l', string.upper)
    message = ('%s. %s'):format(message, remedy)
  end
  log[level]('%s%s', who and who .. ': ' or '', message)
  has_warned = has_warned or level ~= 'info'
  -- Later, because a notification plugin may open a window, which fails in fast callbacks and while text is locked.
  vim.schedule(function()
    local ok, err = xpcall(show, debug.traceback, level, who or 'mcp-tools', message, remedy)
    if not ok then
      log.warn('vim.notify failed: %s', err)
    end
  end)
end

for level in pairs(HIGHLIGHT) do
  M[level] = function(message, remedy)
    send(level, message, remedy)
  end
end

--- Shows a message of another plugin about one of our calls, without a hit-enter prompt.
---@param who string
---@param level integer of `vim.log.levels`
---@param message string
function M.relay(who, level, message)
  local is_bad, is_odd = level >= vim.log.levels.ERROR, level >= vim.log.levels.WARN
  send(is_bad and 'error' or is_odd and 'warn' or 'info', message, nil, who)
end

--- Shows a message only if it differs from the last one with this key. `forget(key)` allows it again.
---@param key string
---@param level 'info'|'warn'|'error'
---@param message string
---@param remedy? string what the user can do
function M.once(key, level, message, remedy)
  local text = message .. (remedy or '')
  if sent_once[key] ~= text then
    sent_once[key] = text
    send(level, message, remedy)
  end
end

---@param key string
function M.forget(key)
  sent_once[key] = nil
end

--- Shows the progress of a long operation in the message line, without `:messages` and log.
---@param text string
function M.progress(text)
  if vim.o.cmdheight > 0 then -- with 'cmdheight' 0 every message causes a hit-enter prompt
    text = text:gsub('%s+', ' ')
    vim.cmd.redraw()
    vim.api.nvim_echo({ { M.fitting('[mcp-tools] ' .. text, vim.v.echospace) } }, false, {})
    vim.cmd.redraw()
  end
end

return M

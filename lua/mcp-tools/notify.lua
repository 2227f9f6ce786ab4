-- Receives what the person should see. Sends it to `vim.notify` or the message line, and to the log.
-- Does not know about where a message comes from. Safe in fast callbacks.

local log = require('mcp-tools.log')

local M = {}

local told = {} ---@type table<string, string>

local MORE = '… (:McpTools log)'
local HIGHLIGHT = { info = 'Normal', warn = 'WarningMsg', error = 'ErrorMsg' }

--- Whether messages go to the message line, as they do while no notification plugin has taken the place.
---@return boolean
local function is_builtin()
  local source = debug.getinfo(vim.notify, 'S').source
  return source:find('^@vim/') ~= nil or source == '?' -- 0.12 has its own Lua without the names of files
end

--- One line that fits: a longer message, or two at once, would wait for a key, and keep the bridge waiting with it.
--- The whole text is in the log.
---@param level 'info'|'warn'|'error'
---@param text string
local function echo(level, text)
  local line = text:match('[^\n]*')
  if line ~= text or vim.fn.strdisplaywidth(line) > vim.v.echospace then
    line = vim.fn.strcharpart(line, 0, math.max(0, vim.v.echospace - #MORE)) .. MORE
  end
  vim.cmd.redraw()
  vim.api.nvim_echo({ { line, HIGHLIGHT[level] } }, true, {})
end

---@param level 'info'|'warn'|'error'
---@param text string
local function show(level, text)
  if is_builtin() then
    echo(level, text)
  else
    vim.notify(text, vim.log.levels[level:upper()], { title = 'mcp-tools' })
  end
end

---@param level 'info'|'warn'|'error'
---@param message string
local function send(level, message)
  log[level]('%s', message)
  -- Later, because a notification plugin may open a window, which fails in fast callbacks and while text is locked.
  vim.schedule(function()
    local ok, err = xpcall(show, debug.traceback, level, '[mcp-tools] ' .. message)
    if not ok then
      log.warn('vim.notify failed: %s', err)
    end
  end)
end

---@param message string
function M.info(message)
  send('info', message)
end

---@param message string
function M.warn(message)
  send('warn', message)
end

---@param message string
function M.error(message)
  send('error', message)
end

--- Says the same thing about the same matter only once; `forget(key)` makes it sayable again.
---@param key string
---@param level 'info'|'warn'|'error'
---@param message string
function M.once(key, level, message)
  if told[key] ~= message then
    told[key] = message
    send(level, message)
  end
end

---@param key string
function M.forget(key)
  told[key] = nil
end

--- Says how something goes that takes long, in the message line and nowhere else.
---@param text string
function M.progress(text)
  if vim.o.cmdheight > 0 then -- without a line of its own every message waits for a key
    text = text:gsub('%s+', ' ')
    vim.cmd.redraw()
    vim.api.nvim_echo({ { vim.fn.strcharpart('[mcp-tools] ' .. text, 0, vim.v.echospace) } }, false, {})
    vim.cmd.redraw()
  end
end

return M

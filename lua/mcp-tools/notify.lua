-- Receives what the person should see. Sends it to `vim.notify` and to the log. The only caller of `vim.notify`.
-- Does not know about where a message comes from. Safe in fast callbacks.

local M = {}

local told = {} ---@type table<string, string>

---@param level 'info'|'warn'|'error'
---@param message string
local function send(level, message)
  require('mcp-tools.log')[level]('%s', message)
  -- Later, because a notification plugin may open a window, which fails in fast callbacks and while text is locked.
  vim.schedule(function()
    local ok, err = xpcall(vim.notify, debug.traceback, '[mcp-tools] ' .. message, vim.log.levels[level:upper()], {
      title = 'mcp-tools',
    })
    if not ok then
      require('mcp-tools.log').warn('vim.notify failed: %s', err)
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

return M

--- Change of a debug session: something has happened in one, for who waits for it.
---
--- Receives: word that there is some.
--- Sends: it to all who wait.
--- Does not know about: what has happened.

local log = require('mcp-tools.log')

local M = {}

---@type table<fun(), true>
local watchers = {}

--- Has all who wait hear, a little later.
function M.notify()
  vim.schedule(function()
    for _, fn in ipairs(vim.tbl_keys(watchers)) do
      if watchers[fn] then
        log.guard('change of a debug session', fn)
      end
    end
  end)
end

--- Calls `fn` after whatever has happened.
---@param fn fun()
---@return fun() stop
function M.on(fn)
  watchers[fn] = true
  return function()
    watchers[fn] = nil
  end
end

return M

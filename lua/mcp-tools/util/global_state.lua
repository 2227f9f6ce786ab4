--- Global state that survives when a plugin manager reloads the plugin's modules.

local KEY = 'mcp-tools.nvim'

---@class mcp-tools.GlobalState
---@field root? string
---@field bridge? { is_wanted: (fun(): boolean), stop: fun(cb: fun()) }
---@field python_worker? fun() stops the worker

---@type mcp-tools.GlobalState
local state = rawget(_G, KEY) or {}
rawset(_G, KEY, state)

return state

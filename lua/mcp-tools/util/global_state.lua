--- Global state: what outlives the plugin's modules when a plugin manager loads them again, for the editor's life.

local KEY = 'mcp-tools.nvim'

---@class mcp-tools.GlobalState
---@field root? string
---@field bridge? { is_wanted: (fun(): boolean), stop: fun(cb: fun()) }
---@field python_worker? fun() ends it

---@type mcp-tools.GlobalState
local state = rawget(_G, KEY) or {}
rawset(_G, KEY, state)

return state

---@meta
-- What the type check needs to know of `vim.uv`, which Neovim's own annotations leave to others.

---@class uv
---@field [string] any
---@class uv.uv_timer_t
---@field [string] any
---@class uv.uv_fs_event_t
---@field [string] any
---@class uv.uv_pipe_t
---@field [string] any
---@class uv.fs_stat.result
---@field [string] any

---@type uv
vim.uv = nil -- luacheck: ignore

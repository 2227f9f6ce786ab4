---@meta
-- What the type check needs to know of Neovim, which its own annotations leave out. Nothing loads this file.

-- luacheck: ignore

---@class uv
---@field [string] any

---@class uv.uv_handle_t
---@field [string] any

---@class uv.uv_timer_t: uv.uv_handle_t
---@class uv.uv_process_t: uv.uv_handle_t
---@class uv.uv_pipe_t: uv.uv_handle_t
---@class uv.uv_fs_event_t: uv.uv_handle_t

---@class uv.fs_stat.result
---@field [string] any

---@type uv
vim.uv = nil

--- A chain of `vim.iter`; its methods depend on what it iterates over.
---@class mcp-tools.meta.Iter
---@field [string] fun(self: mcp-tools.meta.Iter, ...): any

---@param ... any
---@return mcp-tools.meta.Iter
function vim.iter(...) end

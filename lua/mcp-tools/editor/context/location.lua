--- Locations for agents: resolved paths, and positions as in the LSP (0-based, in UTF-16).

local buffer_kind = require('mcp-tools.privacy.buffer_kind')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.position')

local api = vim.api

local M = {}

---@class mcp-tools.context.Position
---@field line integer 0-based
---@field character integer 0-based, in UTF-16

---@type table<integer, { name: string, path: string?, at: integer }>
local cache = {}

--- Lifetime of a cached path in ns; each check accesses the disk.
local FRESH = 5e9

--- Returns the resolved path of a buffer's file; nil if it has none or is sensitive, so that agents do not even learn
--- that it is open.
---@param bufnr integer valid
---@return string?
function M.path(bufnr)
  local kind, name = buffer_kind.kind(bufnr)
  if kind ~= 'file' or buffer_kind.is_marked(bufnr) then
    return nil
  end
  local entry, now = cache[bufnr], vim.uv.hrtime()
  if not entry or entry.name ~= name or now - entry.at > FRESH then
    local path, bad = paths.resolve(name)
    local visible = not bad and not buffer_kind.is_sensitive_name(name, kind) and path or nil
    entry = { name = name, path = visible, at = now }
    cache[bufnr] = entry
  end
  return entry.path
end

--- Removes a deleted buffer from the cache.
---@param bufnr integer
function M.forget(bufnr)
  cache[bufnr] = nil
end

--- Returns a position in a buffer.
---@param bufnr integer loaded
---@param row integer 0-based
---@param byte integer 0-based
---@return mcp-tools.context.Position
function M.position(bufnr, row, byte)
  local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
  return { line = row, character = position.units(line, byte, 'utf-16') }
end

return M

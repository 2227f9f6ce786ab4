--- Places as agents' own channels tell them: files by their real path, lines and characters as the protocol of
--- language servers counts them (from 0, in UTF-16).

local buffer_kind = require('mcp-tools.privacy.buffer_kind')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.lsp.position')

local api = vim.api

local M = {}

---@class mcp-tools.context.Position
---@field line integer from 0
---@field character integer from 0, in UTF-16

---@type table<integer, { name: string, path: string?, at: integer }>
local known = {}

--- So long is it believed that a name leads to the same file, ns; each look is a question to the disk.
local FRESH = 5e9

--- The file of a buffer by its real path; nil for what shows no file, and for what is sensitive: an agent does not even
--- learn that it is open.
---@param bufnr integer valid
---@return string?
function M.path(bufnr)
  local kind, name = buffer_kind.kind(bufnr)
  if kind ~= 'file' or buffer_kind.is_marked(bufnr) then
    return nil
  end
  local entry, now = known[bufnr], vim.uv.hrtime()
  if not entry or entry.name ~= name or now - entry.at > FRESH then
    local path, bad = paths.resolve(name)
    local told = not bad and not buffer_kind.is_sensitive_name(name, kind) and path or nil
    entry = { name = name, path = told, at = now }
    known[bufnr] = entry
  end
  return entry.path
end

--- A buffer has gone.
---@param bufnr integer
function M.forget(bufnr)
  known[bufnr] = nil
end

--- A place in a buffer.
---@param bufnr integer loaded
---@param row integer from 0
---@param byte integer from 0
---@return mcp-tools.context.Position
function M.position(bufnr, row, byte)
  local line = api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1] or ''
  return { line = row, character = position.units(line, byte, 'utf-16') }
end

return M

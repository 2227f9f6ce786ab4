--- Filetypes by file name, cached.

local lru = require('mcp-tools.util.lru')

local M = {}

--- Lifetime of an entry in ns. Matching tries hundreds of patterns.
local LIFETIME = 10e9
local filetypes = lru(2000)

--- Returns the filetype of a file name.
---@param path string
---@return string filetype '' if unknown
function M.of(path)
  local entry, now = filetypes:get(path), vim.uv.hrtime()
  if not entry or now - entry.at > LIFETIME then
    entry = { at = now, filetype = vim.filetype.match({ filename = path }) or '' }
    filetypes:set(path, entry)
  end
  return entry.filetype
end

return M

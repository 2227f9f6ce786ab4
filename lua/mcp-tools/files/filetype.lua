--- Filetypes of files that are not open, by their names.

local lru = require('mcp-tools.util.lru')

local M = {}

--- So long a name is believed to say the same filetype, ns: each is matched with hundreds of patterns.
local FILETYPE = 10e9
local filetypes = lru(2000)

--- The filetype that the name of a file says.
---@param path string
---@return string '' when it says none
function M.of(path)
  local known, now = filetypes:get(path), vim.uv.hrtime()
  if not known or now - known.at > FILETYPE then
    known = { at = now, filetype = vim.filetype.match({ filename = path }) or '' }
    filetypes:set(path, known)
  end
  return known.filetype
end

return M

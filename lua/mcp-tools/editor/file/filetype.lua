--- Filetypes of files that are not open, by their names.
---
--- Receives: paths.
--- Sends: filetypes; one is looked up once in a while.
--- Does not know about: what stands in the files.

local M = {}

--- So long a name is believed to say the same filetype, ns: each is matched with hundreds of patterns.
local FILETYPE = 10e9
local MAX_FILETYPES = 2000
---@type table<string, { at: integer, filetype: string }> by path
local filetypes, filetypes_count = {}, 0

--- The filetype that the name of a file says.
---@param path string
---@return string '' when it says none
function M.of(path)
  local name, now = filetypes[path], vim.uv.hrtime()
  if not name or now - name.at > FILETYPE then
    filetypes_count = name and filetypes_count or filetypes_count + 1
    if filetypes_count > MAX_FILETYPES then
      filetypes, filetypes_count = {}, 1
    end
    name = { at = now, filetype = vim.filetype.match({ filename = path }) or '' }
    filetypes[path] = name
  end
  return name.filetype
end

return M

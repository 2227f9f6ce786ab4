--- Files of the project with unsaved changes, which other programs do not see.
---
--- Receives: the root of the project.
--- Sends: their names.
--- Does not know about: which programs, what has changed.

local access = require('mcp-tools.files.access')
local paths = require('mcp-tools.files.paths')

--- Their names, relative to the root.
---@param root string
---@param below? string resolved; only this file, or those in this folder
---@return string[]? names nil when there are none
return function(root, below)
  local names = {}
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do -- `getbufinfo` makes a list of all signs
    local modified = vim.fn.getbufvar(bufnr, '&modified') == 1
    local name = modified and vim.bo[bufnr].buftype == '' and vim.api.nvim_buf_get_name(bufnr) or ''
    if name ~= '' then
      local path = paths.resolve(name)
      local wanted = not below or path == below or vim.startswith(path, below .. '/')
      if wanted and paths.inside(path, root) then
        names[#names + 1] = access.shown(path, root)
      end
    end
  end
  return #names > 0 and names or nil
end

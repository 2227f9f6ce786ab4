--- Files that plugins bring along in a folder of theirs.

local uv = vim.uv

local M = {}

--- The files of one folder below every entry of the runtimepath, in its order, each entry's by name.
---
--- A relative entry is passed over: it means another place in each working directory, and nobody chose what lies there.
---@param folder string
---@param pattern string of names, a Lua pattern
---@return string[] paths not resolved
function M.files(folder, pattern)
  local list = {}
  for _, root in ipairs(vim.api.nvim_list_runtime_paths()) do
    local absolute = root:match('^/') or root:match('^%a:[/\\]')
    local handle = absolute and uv.fs_scandir(vim.fs.joinpath(root, folder))
    local names = {}
    while handle do
      local name = uv.fs_scandir_next(handle)
      if not name then
        break
      elseif name:match(pattern) then
        table.insert(names, name)
      end
    end
    table.sort(names)
    for _, name in ipairs(names) do
      table.insert(list, vim.fs.joinpath(root, folder, name))
    end
  end
  return list
end

return M

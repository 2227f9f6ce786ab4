--- Finds files in a subdirectory of every runtimepath entry.

local uv = vim.uv

local M = {}

--- Returns the files of a subdirectory of every runtimepath entry, in the order of the entries, then by name.
---
--- Relative entries are skipped: they depend on the working directory, whose files are not trusted.
---@param directory string
---@param pattern string Lua pattern for file names
---@return string[] paths unresolved
function M.files(directory, pattern)
  local list = {}
  for _, root in ipairs(vim.api.nvim_list_runtime_paths()) do
    local handle = root:match('^/') and uv.fs_scandir(vim.fs.joinpath(root, directory))
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
      table.insert(list, vim.fs.joinpath(root, directory, name))
    end
  end
  return list
end

return M

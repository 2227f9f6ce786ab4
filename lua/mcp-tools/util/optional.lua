--- Loads modules of other plugins and LuaJIT's own, if they exist.
---
--- Neovim searches `./?.lua` and `./?.so`, so a plain `require` of a missing module would run a file of the working
--- directory, which may be an untrusted project.

local M = {}

---@param search string `package.path` or `package.cpath`
---@return string absolute, string relative its entries
local function split(search)
  local absolute, relative = {}, {}
  for entry in search:gmatch('[^;]+') do
    table.insert(entry:find('^/') and absolute or relative, entry)
  end
  return table.concat(absolute, ';'), table.concat(relative, ';')
end

--- Removes the relative entries of a search path.
---@param name 'path'|'cpath'
---@return fun() restore keeps changes made in between
local function restrict(name)
  local before = package[name]
  local absolute, relative = split(before)
  package[name] = absolute
  return function()
    package[name] = package[name] == absolute and before or relative .. ';' .. package[name]
  end
end

--- Loads a module and its dependencies, never from the working directory.
---@param module string
---@return any value nil when it cannot be loaded
---@return string? err
function M.load(module)
  if package.loaded[module] ~= nil then
    return package.loaded[module]
  end
  local restore_path, restore_cpath = restrict('path'), restrict('cpath')
  local ok, value = pcall(require, module)
  restore_path()
  restore_cpath()
  if ok then
    return value
  end
  return nil, tostring(value)
end

return M

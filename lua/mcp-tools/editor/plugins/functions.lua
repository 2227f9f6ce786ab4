--- Public functions of loaded Lua modules of plugins; names that begin with `_` are private.

local errors = require('mcp-tools.errors')
local optional = require('mcp-tools.util.optional')

local M = {}

--- Argument of tools for one module.
M.MODULE = { type = 'string', description = 'Module, such as telescope.builtin', minLength = 1, maxLength = 200 }

--- Maximum depth of nested tables in a module.
local DEPTH = 2

--- Returns whether a name or a part of it is private.
---@param name string with dots
---@return boolean
local function is_private(name)
  return vim.startswith(name, '_') or name:find('._', 1, true) ~= nil
end

--- Returns the file of a module if it is from a plugin.
---@param module string
---@return string? path
local function file_of(module)
  local part = 'lua/' .. module:gsub('%.', '/')
  for _, name in ipairs({ part .. '.lua', part .. '/init.lua' }) do
    for _, path in ipairs(vim.api.nvim_get_runtime_file(name, true)) do
      if not vim.startswith(path, vim.env.VIMRUNTIME .. '/') then
        return path
      end
    end
  end
end

--- Returns why a module is not accessible.
---@param module string
---@return mcp-tools.Error?
function M.refusal(module)
  if not module:find('^[%w_%-]+[%w_%-%.]*$') then
    return errors.new(
      'validation_error',
      ('module: %s is not a valid Lua module name, such as telescope.builtin'):format(module)
    )
  elseif is_private(module) then
    return errors.new('access_denied', ('module: %s is private'):format(module))
  elseif module == 'mcp-tools' or vim.startswith(module, 'mcp-tools.') then
    return errors.new('access_denied', 'module: mcp-tools itself is not accessible; use its tools')
  elseif not file_of(module) then
    local text = 'module: no plugin on the runtimepath has %s; plugin_info lists the modules of a plugin'
    return errors.new('not_found', text:format(module))
  end
end

---@param fn function
---@return string
local function parameters(fn)
  local info, names = debug.getinfo(fn, 'u'), {}
  for i = 1, info.nparams do
    names[i] = debug.getlocal(fn, i) or ('arg%d'):format(i)
  end
  if info.isvararg then
    table.insert(names, '...')
  end
  return table.concat(names, ', ')
end

---@param name string
---@param fn function
---@return string
local function entry(name, fn)
  local info = debug.getinfo(fn, 'S')
  local file = info.source:match('^@(.*)')
  local place = file and (' (%s:%d)'):format(vim.fn.fnamemodify(file, ':~'), info.linedefined) or ''
  return ('%s(%s)%s'):format(name, parameters(fn), place)
end

--- Returns the public functions of a module, sorted, such as `add(a, b) (~/x.lua:3)`.
---@param module string
---@return string[]?
---@return mcp-tools.Error? err
function M.list(module)
  local err, value = M.refusal(module), package.loaded[module]
  if err then
    return nil, err
  elseif value == nil then
    local text = 'module: %s is not loaded, and listing its functions would run it; use the plugin first'
    return nil, errors.new('not_found', text:format(module))
  end
  local list, seen = {}, {}
  local function walk(table_, prefix, depth)
    seen[table_] = true
    for key, item in next, table_ do
      if type(key) == 'string' and not is_private(key) then
        if type(item) == 'function' then
          table.insert(list, entry(prefix .. key, item))
        elseif type(item) == 'table' and depth < DEPTH and not seen[item] and not getmetatable(item) then
          walk(item, prefix .. key .. '.', depth + 1)
        end
      end
    end
  end
  if type(value) == 'table' then
    walk(value, '', 1)
  elseif type(value) == 'function' then
    table.insert(list, entry('', value))
  end
  table.sort(list)
  return list
end

---@param module string
---@param name string
---@return mcp-tools.Error?
local function unreachable(module, name)
  local err = M.refusal(module)
  if not err and is_private(name) then
    err = errors.new('access_denied', ('function: %s is private'):format(name))
  end
  return err
end

---@param module string
---@param name string
---@return mcp-tools.Error
local function no_function(module, name)
  local text = 'function: %s has no function %s; plugin_info with module lists them'
  return errors.new('not_found', text:format(module, name))
end

---@param module string
---@param value any value of the module
---@param name string with dots
---@return function?
---@return mcp-tools.Error? err
local function within(module, value, name)
  for _, key in ipairs(vim.split(name, '.', { plain = true })) do
    local reached, item = pcall(function()
      return value[key]
    end)
    value = reached and item or nil
  end
  if not vim.is_callable(value) then
    return nil, no_function(module, name)
  end
  return value
end

--- Returns an error if a function certainly does not exist. No code of the plugin runs for this: a module that is not
--- loaded and a table with a metatable may have it.
---@param module string
---@param name string with dots
---@return mcp-tools.Error?
function M.missing(module, name)
  local err, value = unreachable(module, name), package.loaded[module]
  if err or value == nil then
    return err
  end
  for _, key in ipairs(vim.split(name, '.', { plain = true })) do
    if debug.getmetatable(value) then
      return nil
    end
    value = type(value) == 'table' and rawget(value, key) or nil
    if value == nil then
      break
    end
  end
  return not vim.is_callable(value) and no_function(module, name) or nil
end

--- Returns a public function and loads its module.
---@param module string
---@param name string with dots
---@return function?
---@return mcp-tools.Error? err
function M.find(module, name)
  local err = unreachable(module, name)
  if err then
    return nil, err
  end
  local value, fault = optional.load(module)
  if fault then
    return nil, errors.new('tool_error', ('module: %s cannot be loaded: %s'):format(module, fault))
  end
  return within(module, value, name)
end

return M

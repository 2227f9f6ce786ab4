--- A plugin as clients name it.
---
--- Receives: a name.
--- Sends: the plugin with its folder, or an error value that says what is near.
--- Does not know about: what is asked of it.

local errors = require('mcp-tools.errors')
local plugins = require('mcp-tools.editor.plugins.list')

--- Names that are told when there is none of that name.
local NEAR = 8

---@param name string
---@return mcp-tools.Plugin? plugin with a folder
---@return mcp-tools.Error? err
return function(name)
  local plugin, near = plugins.find(name)
  if not plugin then
    local hint = #near > 0 and 'near: ' .. table.concat(vim.list_slice(near, 1, NEAR), ', ') or 'plugin_list names all'
    return nil, errors.new('not_found', ('name: there is no plugin %s; %s'):format(name, hint))
  elseif not plugin.path or not vim.uv.fs_stat(plugin.path) then
    return nil, errors.new('not_found', ('name: %s is not installed'):format(plugin.name))
  end
  return plugin
end

--- Resource: plugins on the runtimepath and loaded Lua modules.

local plugins = require('mcp-tools.editor.plugins')
local watch = require('mcp-tools.editor.watch')

return {
  name = 'modules',
  uri = 'nvim://modules',
  title = 'Plugins and Lua modules',
  description = 'Plugins on the runtimepath, and names of the loaded Lua modules.',
  mime_type = 'application/json',
  tags = { 'editor' },
  read = function(ctx)
    local list = {}
    for _, each in ipairs(plugins.all()) do
      if each.loaded and each.path then
        table.insert(list, { name = each.name, path = each.path })
      end
    end
    ctx({ plugins = list, modules = plugins.modules() })
  end,
  watch = function(changed)
    return watch.events('SourcePost', changed)
  end,
}

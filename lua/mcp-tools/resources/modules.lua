--- What this editor is made of.

local watch = require('mcp-tools.editor.watch')

--- Folders of the runtime path that are no plugin.
---@param path string
---@return boolean
local function is_plugin(path)
  local own = { vim.fn.stdpath('config'), vim.env.VIMRUNTIME }
  for _, dir in ipairs(own) do
    if path == dir or vim.startswith(path, dir .. '/') then
      return false
    end
  end
  return vim.fn.fnamemodify(path, ':t') ~= 'after' and not vim.startswith(path, vim.env.VIM or '\0')
end

---@return { name: string, path: string }[]
local function plugins()
  local list, seen = {}, {}
  for _, path in ipairs(vim.api.nvim_list_runtime_paths()) do
    if is_plugin(path) and not seen[path] then
      seen[path] = true
      table.insert(list, { name = vim.fs.basename(path), path = path })
    end
  end
  table.sort(list, function(a, b)
    return a.name < b.name or (a.name == b.name and a.path < b.path)
  end)
  return list
end

return {
  name = 'modules',
  uri = 'nvim://modules',
  title = 'Plugins and Lua modules',
  description = 'The plugins on the runtime path, and the names of the Lua modules that are loaded.',
  mime_type = 'application/json',
  tags = { 'editor' },
  read = function(ctx)
    local modules = {}
    for name in pairs(package.loaded) do
      if type(name) == 'string' then
        table.insert(modules, name)
      end
    end
    table.sort(modules)
    ctx({ plugins = plugins(), modules = modules })
  end,
  watch = function(changed)
    return watch.events('SourcePost', changed)
  end,
}

--- Plugins: which there are, by plugin managers that are loaded, the runtimepath and the packpath, and what is in their
--- directories. Nothing of a plugin is loaded.

local errors = require('mcp-tools.errors')
local paths = require('mcp-tools.files.paths')
local read = require('mcp-tools.privacy.read')
local sensitive = require('mcp-tools.privacy.sensitive')

local uv = vim.uv

local M = {}

--- Maximum number of similar names in an error.
local MAX_SIMILAR = 8

---@class mcp-tools.Plugin
---@field name string
---@field path string? directory
---@field manager 'lazy.nvim'|'vim.pack'|'package'|'runtimepath'
---@field loaded boolean
---@field url string?
---@field version string?
---@field revision string?

---@param plugins table<string, mcp-tools.Plugin> by directory
---@param plugin mcp-tools.Plugin
local function add(plugins, plugin)
  local key = plugin.path and (uv.fs_realpath(plugin.path) or plugin.path) or plugin.name
  if not plugins[key] then
    plugins[key] = plugin
  elseif plugin.loaded then
    plugins[key].loaded = true
  end
end

---@param plugins table<string, mcp-tools.Plugin>
local function by_lazy(plugins)
  local lazy = package.loaded['lazy']
  local ok, list = pcall(function()
    return lazy and lazy.plugins() or {}
  end)
  for _, each in ipairs(ok and list or {}) do
    add(plugins, {
      name = tostring(each.name),
      path = each.dir,
      manager = 'lazy.nvim',
      loaded = type(each._) == 'table' and each._.loaded ~= nil,
      url = each.url,
      version = each.version and tostring(each.version) or each.branch or each.tag,
      revision = each.commit,
    })
  end
end

---@param plugins table<string, mcp-tools.Plugin>
local function by_pack(plugins)
  local ok, list = pcall(function()
    return package.loaded['vim.pack'] and vim.pack.get(nil, { info = false }) or {}
  end)
  for _, each in ipairs(ok and list or {}) do
    add(plugins, {
      name = each.spec.name,
      path = each.path,
      manager = 'vim.pack',
      loaded = each.active == true,
      url = each.spec.src,
      version = each.spec.version and tostring(each.spec.version) or nil,
      revision = each.rev,
    })
  end
end

--- Returns whether a directory of the runtimepath is a plugin.
---@param path string
---@return boolean
local function is_plugin(path)
  for _, dir in ipairs({ vim.fn.stdpath('config'), vim.env.VIMRUNTIME }) do
    if path == dir or vim.startswith(path, dir .. '/') then
      return false
    end
  end
  return vim.fs.basename(path) ~= 'after' and not vim.startswith(path, vim.env.VIM or '\0')
end

---@param plugins table<string, mcp-tools.Plugin>
local function by_directories(plugins)
  for _, path in ipairs(vim.api.nvim_list_runtime_paths()) do
    if is_plugin(path) then
      local packaged = path:find('/pack/[^/]+/[^/]+/[^/]+$') ~= nil
      local manager = packaged and 'package' or 'runtimepath'
      add(plugins, { name = vim.fs.basename(path), path = path, manager = manager, loaded = true })
    end
  end
  for _, path in ipairs(vim.fn.globpath(vim.o.packpath, 'pack/*/opt/*', true, true)) do
    if not vim.startswith(path, vim.env.VIMRUNTIME or '\0') then
      add(plugins, { name = vim.fs.basename(path), path = path, manager = 'package', loaded = false })
    end
  end
end

--- Returns all plugins, sorted by name.
---@return mcp-tools.Plugin[]
function M.all()
  local plugins = {}
  by_lazy(plugins)
  by_pack(plugins)
  by_directories(plugins)
  local list = vim.tbl_values(plugins)
  table.sort(list, function(a, b)
    return a.name < b.name or (a.name == b.name and (a.path or '') < (b.path or ''))
  end)
  return list
end

--- Finds a plugin by name; case and `.nvim` are optional.
---@param name string
---@return mcp-tools.Plugin?
---@return string[] near names that contain it
local function named(name)
  local near, wanted = {}, name:lower()
  local function plain(text)
    return (text:lower():gsub('[%.%-]n?vim$', ''))
  end
  local second
  for _, each in ipairs(M.all()) do
    if each.name == name then
      return each, {}
    elseif plain(each.name) == plain(name) then
      second = second or each
    elseif each.name:lower():find(wanted, 1, true) then
      table.insert(near, each.name)
    end
  end
  return second, near
end

--- Finds an installed plugin by name.
---@param name string
---@return mcp-tools.Plugin? plugin with a directory
---@return mcp-tools.Error? err
function M.find(name)
  local plugin, near = named(name)
  if not plugin then
    local similar = table.concat(near, ', ', 1, math.min(#near, MAX_SIMILAR))
    local hint = #near > 0 and 'similar: ' .. similar or "editor_lookup with what='plugins' lists all"
    return nil, errors.new('not_found', ('name: there is no plugin %s; %s'):format(name, hint))
  elseif not plugin.path or not uv.fs_stat(plugin.path) then
    return nil, errors.new('not_found', ('name: %s is not installed'):format(plugin.name))
  end
  return plugin
end

--- Returns the names of the loaded Lua modules.
---@return string[]
function M.modules()
  local modules = {}
  for name in pairs(package.loaded) do
    if type(name) == 'string' then
      table.insert(modules, name)
    end
  end
  table.sort(modules)
  return modules
end

--- Maximum depth of directories below `lua/`.
local DEPTH = 6
--- Maximum number of entries; a longer list is cut.
local MAX_ENTRIES = 5000
--- Maximum size of a file that is read, in bytes.
local MAX_BYTES = 8 * 1024 * 1024

--- Returns a plugin's Lua modules.
---@param path string
---@param pause fun()
---@return string[] modules
---@return boolean cut
function M.modules_in(path, pause)
  local modules, seen = {}, 0
  for name in vim.fs.dir(path .. '/lua', { depth = DEPTH }) do
    seen = seen + 1
    local stem = name:match('^(.*)%.lua$')
    if seen > MAX_ENTRIES then
      break
    elseif stem and stem ~= 'init' then
      table.insert(modules, (stem:gsub('/init$', ''):gsub('/', '.')))
    end
    pause()
  end
  table.sort(modules)
  return modules, seen > MAX_ENTRIES
end

--- Returns the files of a directory whose names match a pattern, in order.
---@param path string
---@param pattern string matched against the name in lower case
---@return string[] names
local function files_in(path, pattern)
  local names = {}
  for name, kind in vim.fs.dir(path) do
    if kind ~= 'directory' and name:lower():find(pattern) then
      table.insert(names, name)
    end
  end
  table.sort(names)
  return names
end

--- Returns a plugin's help files.
---@param path string
---@return string[] names
function M.help(path)
  return files_in(path .. '/doc', '%.txt$')
end

--- Returns a plugin's readme: plain text or Markdown, otherwise a translation such as `readme.de.md`.
---@param path string
---@return string? name
function M.readme(path)
  local names = files_in(path, '^readme')
  return vim.iter(names):find(function(name)
    return name:lower():find('^readme%.?m?d?$') or name:lower() == 'readme.markdown'
  end) or names[1]
end

--- Returns the check whether a plugin's file may be read. It may be outside of the project, unless the plugin is the
--- project itself: then a link must not lead elsewhere.
---@param path string
---@param root string
---@return mcp-tools.Judge
local function judge(path, root)
  local is_own = vim.iter(vim.fs.parents(vim.fn.fnamemodify(path, ':p'))):any(function(directory)
    return paths.inside((paths.resolve(directory)), root)
  end)
  return function(real)
    return not sensitive.is_sensitive(real) and (not is_own or paths.inside(real, root))
  end
end

--- Returns the text of a plugin's file.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param path string
---@return string? text with "\n" between lines
---@return mcp-tools.Error? err
function M.text(ctx, path)
  local text, err = read.await(ctx, path, MAX_BYTES, judge(path, ctx.root))
  return text and (text:gsub('\r\n', '\n')), err
end

return M

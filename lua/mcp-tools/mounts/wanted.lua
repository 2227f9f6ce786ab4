--- Collects the servers to mount: from `mount()`, the options, and files that the options name, such as `.mcp.json`.

local config = require('mcp-tools.config')
local project = require('mcp-tools.instances.project')
local read_sync = require('mcp-tools.util.read_sync')
local source = require('mcp-tools.registry.source')
local spec = require('mcp-tools.mounts.spec')
local trusted = require('mcp-tools.privacy.trusted')

local M = {}

---@class mcp-tools.WantedMount
---@field name string
---@field from string where it is configured, for the user
---@field mount mcp-tools.Mount? nil if the spec is invalid
---@field fault string?

--- The fields of a file that we use; others are for other programs.
local FIELDS = { 'command', 'args', 'env', 'cwd', 'url', 'headers' }
local MAX_BYTES = 1024 * 1024

--- Returns the path of a file from the options.
---@param file string relative to the project's root, or `~/…`
---@return string
local function path_of(file)
  local path = vim.fs.normalize(file)
  return path:sub(1, 1) == '/' and path or vim.fs.joinpath(project.root(), path)
end

---@param entry any
---@param more table
---@return any
local function spec_of(entry, more)
  if type(entry) ~= 'table' then
    return entry
  end
  local out = vim.deepcopy(more)
  for _, field in ipairs(FIELDS) do
    local value = entry[field]
    if value ~= nil and value ~= vim.NIL then
      out[field] = value
    end
  end
  return out
end

--- Reads the servers of a file. A file of the project applies only after the user has trusted it.
---@param path string
---@param of_project boolean
---@return table<string, any>? servers
---@return string? fault
local function read_servers(path, of_project)
  local text, fault
  if of_project then
    text, fault = trusted.read(path)
  else
    text, fault = read_sync(path, MAX_BYTES)
  end
  if not text then
    return nil, fault
  end
  local ok, value = pcall(vim.json.decode, text)
  local servers = ok and type(value) == 'table' and value.mcpServers
  if type(servers) ~= 'table' then
    return nil, ok and 'mcpServers: must be an object' or 'invalid JSON: ' .. tostring(value)
  end
  return servers
end

--- Fields of a file's item that apply to all its servers.
local SHARED = { 'secrets', 'allow', 'timeout', 'start_timeout' }

--- Makes a name for a server without one.
---@param item table
---@return string
local function name_of(item)
  local executable = type(item.command) == 'table' and item.command[1] or item.command
  local text = type(item.url) == 'string' and item.url:match('^%a+://([^/:]+)') or tostring(executable)
  return (vim.fs.basename(text):gsub('%.%w+$', ''):gsub('[^%w-]+', '-'))
end

--- Returns whether an item of the option `tools` is a server.
---@param item any
---@return boolean
local function is_mount(item)
  return type(item) == 'table' and (item.command ~= nil or item.url ~= nil)
end

---@param out { list: mcp-tools.WantedMount[], files: table<string, true> }
---@param name any
---@param mount_spec any
---@param from string
---@return mcp-tools.Mount?
local function add(out, name, mount_spec, from)
  local mount, fault = spec.check(name, mount_spec)
  table.insert(out.list, { name = tostring(name), from = from, mount = mount, fault = fault })
  return mount
end

---@param out { list: mcp-tools.WantedMount[], files: table<string, true> }
---@param item table `{ file = …, … }`
local function add_file(out, item)
  local shown, more = tostring(item.file), {}
  local path = path_of(shown)
  if out.files[path] then
    return
  end
  out.files[path] = true
  for field, v in pairs(item) do
    if vim.list_contains(SHARED, field) then
      more[field] = v
    elseif field ~= 'file' then
      local text = "%s: unknown field '%s' next to file; allowed: %s"
      local fault = text:format(shown, field, table.concat(SHARED, ', '))
      table.insert(out.list, { name = shown, from = shown, fault = fault })
    end
  end
  local of_project = source.is_project_file(path, project.root())
  local servers, fault = read_servers(path, of_project)
  if fault and vim.uv.fs_stat(path) then -- the project need not have the file
    table.insert(out.list, { name = shown, from = path, fault = ('%s: %s'):format(path, fault) })
  end
  for name, entry in vim.spairs(servers or {}) do
    local fields = (type(entry) == 'table' and entry or {}) --[[@as table]]
    if fields.type == 'sse' and fields.disabled ~= true then
      local text = ("mount '%s': type 'sse' (the deprecated transport) is not supported"):format(name)
      table.insert(out.list, { name = name, from = path, fault = text })
    elseif fields.disabled ~= true then
      local mount = add(out, name, spec_of(entry, more), path)
      if mount then
        mount.foreign, mount.of_project = true, of_project
      end
    end
  end
end

--- Adds one item of a list: a path, a table with `file`, or a server.
---@param out { list: mcp-tools.WantedMount[], files: table<string, true> }
---@param item any
---@param from string
local function add_item(out, item, from)
  if type(item) == 'string' then
    add_file(out, { file = item })
  elseif type(item) == 'table' and item.file ~= nil then
    add_file(out, item)
  elseif type(item) == 'table' then
    local mount_spec = vim.tbl_extend('force', {}, item)
    mount_spec.name = nil
    add(out, item.name or name_of(item), mount_spec, from)
  end
end

--- Collects all mounts. If two have the same name, the first applies.
---@param added table<string, table> name → spec, from `mount()`
---@return mcp-tools.WantedMount[] list by name
---@return table<string, true> files paths
function M.collect(added)
  local out = { list = {}, files = {} }
  for name, mount_spec in vim.spairs(added) do
    add(out, name, mount_spec, 'mount()')
  end
  local mounts, tools = config.get().mounts, config.get().tools
  local names = vim.tbl_filter(function(key)
    return type(key) == 'string'
  end, vim.tbl_keys(mounts))
  table.sort(names)
  for _, name in ipairs(names) do
    add(out, name, mounts[name], 'setup{mounts}')
  end
  for _, item in ipairs(type(tools) == 'table' and tools or {}) do
    if is_mount(item) then
      add_item(out, item, 'setup{tools}')
    end
  end
  for _, item in ipairs(mounts) do
    add_item(out, item, 'setup{mounts}')
  end
  local taken, list = {}, {}
  for _, each in ipairs(out.list) do
    local key = spec.folded(each.name)
    if each.mount and taken[key] then
      local text = "mount '%s' of %s: the name is already used by %s"
      each = { name = each.name, from = each.from, fault = text:format(each.name, each.from, taken[key]) }
    elseif each.mount then
      taken[key] = each.from
    end
    table.insert(list, each)
  end
  return list, out.files
end

return M

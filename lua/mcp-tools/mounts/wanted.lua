--- Which servers are to be mounted: by `mount()`, by the options, by files that the options name.

local config = require('mcp-tools.config')
local file = require('mcp-tools.mounts.file')
local spec = require('mcp-tools.mounts.spec')

local M = {}

---@class mcp-tools.WantedMount
---@field name string
---@field from string who wants it, for people
---@field mount mcp-tools.Mount? nil when something is wrong with it
---@field fault string?

--- Fields of a file's item that hold for all servers in it.
local SHARED = { 'secrets', 'allow', 'timeout', 'start_timeout' }

--- A name for a server that was given none.
---@param item table
---@return string
local function name_of(item)
  local program = type(item.command) == 'table' and item.command[1] or item.command
  local text = type(item.url) == 'string' and item.url:match('^%a+://([^/:]+)') or tostring(program)
  return (vim.fs.basename(text):gsub('%.%w+$', ''):gsub('[^%w-]+', '-'))
end

--- Is an item of the option `tools` a server?
---@param item any
---@return boolean
function M.is_mount(item)
  return type(item) == 'table' and (item.command ~= nil or item.url ~= nil)
end

---@param out { list: mcp-tools.WantedMount[], files: table<string, true> }
---@param name any
---@param given any
---@param from string
local function add(out, name, given, from)
  local mount, fault = spec.check(name, given)
  table.insert(out.list, { name = tostring(name), from = from, mount = mount, fault = fault })
end

---@param out { list: mcp-tools.WantedMount[], files: table<string, true> }
---@param item table `{ file = …, … }`
local function add_file(out, item)
  local path, more, shown = file.path(tostring(item.file)), {}, tostring(item.file)
  if out.files[path] then
    return
  end
  out.files[path] = true
  for _, field in ipairs(SHARED) do
    more[field] = item[field]
  end
  for field in pairs(item) do
    if field ~= 'file' and not vim.list_contains(SHARED, field) then
      local fault = ('%s: beside file there is no field %s, only %s'):format(shown, field, table.concat(SHARED, ', '))
      table.insert(out.list, { name = shown, from = shown, fault = fault })
    end
  end
  local mounts, fault = file.read(path, more)
  if fault and vim.uv.fs_stat(path) then -- a project without one is nothing to tell
    table.insert(out.list, { name = shown, from = path, fault = ('%s: %s'):format(path, fault) })
  end
  for _, each in ipairs(mounts) do
    table.insert(out.list, { name = each.name, from = path, mount = each.mount, fault = each.fault })
  end
end

--- One item of a list: a path, a file with more, or a server.
---@param out { list: mcp-tools.WantedMount[], files: table<string, true> }
---@param item any
---@param from string
local function add_item(out, item, from)
  if type(item) == 'string' then
    add_file(out, { file = item })
  elseif type(item) == 'table' and item.file ~= nil then
    add_file(out, item)
  elseif type(item) == 'table' then
    local given = vim.tbl_extend('force', {}, item)
    given.name = nil
    add(out, item.name or name_of(item), given, from)
  end
end

--- Does anything ask for a mount?
---@param made table<string, table> by `mount()`
---@return boolean
function M.any(made)
  local tools = config.get().tools
  return next(made) ~= nil
    or next(config.get().mounts) ~= nil
    or type(tools) == 'table' and vim.iter(ipairs(tools)):any(function(_, item)
      return M.is_mount(item)
    end)
end

--- All of them; of two with one name the first counts.
---@param made table<string, table> name → spec, by `mount()`
---@return mcp-tools.WantedMount[] list by name
---@return table<string, true> files that were looked into
function M.collect(made)
  local out = { list = {}, files = {} }
  for name, given in vim.spairs(made) do
    add(out, name, given, 'mount()')
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
    if M.is_mount(item) then
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
      local text = "mount '%s' of %s: %s has one of that name"
      each = { name = each.name, from = each.from, fault = text:format(each.name, each.from, taken[key]) }
    elseif each.mount then
      taken[key] = each.from
    end
    table.insert(list, each)
  end
  return list, out.files
end

return M

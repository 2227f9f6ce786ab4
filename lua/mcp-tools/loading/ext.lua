--- Tools of other plugins: every `lua/mcp-tools/ext/*.lua` in 'runtimepath' returns a definition or a list of them.
---
--- A file or definition that fails does not affect the others, and its earlier definitions stay until it is fixed or
--- removed.

local Registrations = require('mcp-tools.registry.registrations')
local runtimepath = require('mcp-tools.files.runtimepath')
local log = require('mcp-tools.log')
local source = require('mcp-tools.registry.source')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')
local read_sync = require('mcp-tools.util.read_sync')
local trusted = require('mcp-tools.privacy.trusted')

local M = {}

local DIRECTORY = 'lua/mcp-tools/ext'

---@class mcp-tools.ExtFile
---@field stamp string
---@field tools mcp-tools.Registrations
---@field faults string[]

---@type table<string, mcp-tools.ExtFile>
local files = {}

---@return { path: string, stamp: string }[] ordered as the runtimepath
local function list_files()
  local list = {}
  for _, path in ipairs(runtimepath.files(DIRECTORY, '%.lua$')) do
    local stamp = paths.stamp(path)
    if stamp then
      table.insert(list, { path = path, stamp = stamp })
    end
  end
  return list
end

--- Returns the group of a file.
---@param path string
---@return string
local function group_of(path)
  return (vim.fs.basename(path):gsub('%.lua$', ''))
end

---@return string resolved
local function root()
  return paths.real_root(project.root())
end

--- Runs a file. A file of the project is run only if the user trusts it (|:trust|).
---@param path string
---@return table[]? definitions
---@return string? fault
local function definitions(path)
  local text, fault
  if source.is_project_file(path, root()) then
    text, fault = trusted.read(path)
  else
    text, fault = read_sync(path)
  end
  local chunk
  if text then
    chunk, fault = load(text, '@' .. path)
  end
  if not chunk then
    return nil, fault
  end
  local ok, value = xpcall(chunk, debug.traceback)
  if not ok then
    return nil, tostring(value)
  elseif type(value) ~= 'table' then
    return nil, ('it must return a definition or a list of them, got %s'):format(type(value))
  end
  return vim.islist(value) and value or { value }
end

---@param registry mcp-tools.Registry
---@param path string
---@param file mcp-tools.ExtFile
local function load_file(registry, path, file)
  local before = file.faults
  local list, fault = definitions(path)
  if list then
    file.faults = file.tools:replace(registry, list, function()
      return { origin = 'registered', name = group_of(path), found_in = path }
    end)
  else
    file.faults = { fault }
  end
  if not vim.deep_equal(before, file.faults) then
    for _, text in ipairs(file.faults) do
      log.error('%s: %s', path, text)
    end
  end
end

--- Writing one of these files causes a scan.
M.pattern = '*/' .. DIRECTORY .. '/*.lua'

--- Updates the registry from the files.
---@param registry mcp-tools.Registry
---@param done fun()
---@param request mcp-tools.ScanRequest
function M.scan(registry, done, request)
  local exists = {}
  local found = list_files()
  for _, each in ipairs(found) do
    exists[each.path] = true
  end
  for path, file in pairs(files) do
    if not exists[path] then
      files[path] = nil
      file.tools:keep(registry)
    end
  end
  for _, each in ipairs(found) do
    local file = files[each.path] or { tools = Registrations.new('tools', root), faults = {} }
    files[each.path] = file
    if file.stamp ~= each.stamp or #file.faults > 0 or file.tools:any(group_of(each.path), request.wanted) then
      file.stamp = each.stamp
      load_file(registry, each.path, file)
    end
  end
  done()
end

---@return mcp-tools.Found[]
function M.found()
  local list = {}
  for path, file in vim.spairs(files) do
    table.insert(list, { file = path, tools = file.tools:keys() })
  end
  return list
end

---@return mcp-tools.Failure[]
function M.failures()
  local list = {}
  for path, file in vim.spairs(files) do
    for _, fault in ipairs(file.faults) do
      table.insert(list, { source = path, error = fault })
    end
  end
  return list
end

return M

--- Finds the Python modules with tools.

local cache = require('mcp-tools.python_worker.cache')
local command = require('mcp-tools.python_worker.command')
local config = require('mcp-tools.config')
local runtimepath = require('mcp-tools.files.runtimepath')
local source = require('mcp-tools.registry.source')
local trusted = require('mcp-tools.privacy.trusted')

local uv = vim.uv

local M = {}

local DIRECTORY = 'mcp_tools'

---@class mcp-tools.python_worker.Source
---@field key string the path, or `module:<name>`
---@field group string
---@field path string?
---@field module string?
---@field found_in string? path with unresolved links
---@field in_project boolean?
---@field sha256 string? that the project's file must have
---@field fault string? why it must not be read

---@param path string resolved
---@param found_in string path with unresolved links
---@param root string resolved
---@return mcp-tools.python_worker.Source
local function file_source(path, found_in, root)
  local found = { key = path, path = path, found_in = found_in, group = vim.fs.basename(path):gsub('%.py$', '') }
  if source.lies_in(found_in, root) then
    local text, why = trusted.read(path)
    found.sha256, found.fault, found.in_project = text and vim.fn.sha256(text), why, true
  end
  return found
end

--- Finds all modules; the first of two tools with the same name applies.
---@return mcp-tools.python_worker.Source[]
function M.find()
  local root, list, seen = command.project(), {}, {}
  for _, name in ipairs(config.get('python.modules')) do
    local fault = not ('.' .. name):match('^[%w_.]+$') and 'not a valid module name'
      or ('.' .. name):find('._', 1, true) and 'names that begin with an underscore are private'
      or nil
    table.insert(list, { key = 'module:' .. name, module = name, group = name, fault = fault })
  end
  for _, name in ipairs(runtimepath.files(DIRECTORY, '^[^_.].*%.py$')) do
    local path = uv.fs_realpath(name)
    if path and cache.stamp(path) then
      table.insert(list, file_source(path, name, root))
    end
  end
  -- If one of two paths is not in the project, the file is the user's: a project cannot change that by a link.
  for _, each in ipairs(list) do
    local other = seen[each.key]
    if not other or other.in_project and not each.in_project then
      seen[each.key] = each
    end
  end
  return vim.tbl_filter(function(each)
    return seen[each.key] == each
  end, list)
end

return M

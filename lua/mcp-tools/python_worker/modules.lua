--- Where modules with tools are.

local cache = require('mcp-tools.python_worker.cache')
local command = require('mcp-tools.python_worker.command')
local config = require('mcp-tools.config')
local runtimepath = require('mcp-tools.files.runtimepath')
local source = require('mcp-tools.registry.source')
local trusted = require('mcp-tools.privacy.trusted')

local uv = vim.uv

local M = {}

local FOLDER = 'mcp_tools'

---@class mcp-tools.python_worker.Source
---@field key string the path, or `module:<name>`
---@field group string
---@field path string?
---@field module string?
---@field found_in string? the path before links were followed
---@field in_project boolean?
---@field sha256 string? that a file of the project must have
---@field fault string? why it is not to be read

---@param path string resolved
---@param found_in string as it was found
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

--- Every place, in the order in which names are given away.
---@return mcp-tools.python_worker.Source[]
function M.look()
  local root, list, seen = command.project(), {}, {}
  for _, name in ipairs(config.get('python.modules')) do
    local fault = not ('.' .. name):match('^[%w_.]+$') and 'this is no name of a module'
      or ('.' .. name):find('._', 1, true) and 'names that begin with an underscore are private'
      or nil
    table.insert(list, { key = 'module:' .. name, module = name, group = name, fault = fault })
  end
  for _, name in ipairs(runtimepath.files(FOLDER, '^[^_.].*%.py$')) do
    local path = uv.fs_realpath(name)
    if path and cache.stamp(path) then
      table.insert(list, file_source(path, name, root))
    end
  end
  -- Found twice, it counts as the person's when one of the places is theirs: a project cannot take it from them.
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

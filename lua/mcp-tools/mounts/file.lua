--- Reads files with MCP servers, such as `.mcp.json`, which other programs also read.
---
--- A file of the project was written by its authors, so it applies only after the user has trusted it.

local project = require('mcp-tools.instances.project')
local read_sync = require('mcp-tools.files.read_sync')
local source = require('mcp-tools.registry.source')
local spec = require('mcp-tools.mounts.spec')
local trusted = require('mcp-tools.privacy.trusted')

local M = {}

--- The fields that we use; others are for other programs.
local FIELDS = { 'command', 'args', 'env', 'cwd', 'url', 'headers' }
local MAX_BYTES = 1024 * 1024

--- Returns the path of a file from the options.
---@param file string relative to the project's root, or `~/…`
---@return string
function M.path(file)
  local path = vim.fs.normalize(file)
  return path:sub(1, 1) == '/' and path or vim.fs.joinpath(project.root(), path)
end

---@class mcp-tools.FileMount
---@field name string
---@field mount mcp-tools.Mount?
---@field fault string?

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

--- Reads all servers of a file.
---@param path string
---@param more table `secrets`, `allow`, `timeout`, `start_timeout` for all of them
---@return mcp-tools.FileMount[] mounts
---@return string? fault of the file
function M.read(path, more)
  local text, fault
  local of_project = source.lies_in(path, project.root())
  if of_project then
    text, fault = trusted.read(path)
  else
    text, fault = read_sync(path, MAX_BYTES)
  end
  if not text then
    return {}, fault
  end
  local ok, value = pcall(vim.json.decode, text)
  local servers = ok and type(value) == 'table' and value.mcpServers
  if type(servers) ~= 'table' then
    return {}, ok and 'mcpServers: must be an object' or 'invalid JSON: ' .. tostring(value)
  end
  local list = {}
  for name, entry in vim.spairs(servers) do
    if not (type(entry) == 'table' and entry.disabled == true) then
      local mount, spec_fault
      if type(entry) == 'table' and entry.type == 'sse' then
        spec_fault = ("mount '%s': type 'sse' (the deprecated transport) is not supported"):format(name)
      else
        mount, spec_fault = spec.check(name, spec_of(entry, more))
      end
      if mount then
        mount.foreign, mount.of_project = true, of_project
      end
      table.insert(list, { name = name, mount = mount, fault = spec_fault })
    end
  end
  return list
end

return M

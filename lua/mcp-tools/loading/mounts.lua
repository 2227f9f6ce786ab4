--- Mounted servers as a source of definitions.
---
--- The module of mounts is required only when needed, because most users have none.

local config = require('mcp-tools.config')

local M = {}

---@return table? mounts nil while none is configured
local function loaded()
  local tools = config.get().tools
  local asked = next(config.get().mounts) ~= nil
    or type(tools) == 'table'
      and vim.iter(ipairs(tools)):any(function(_, item)
        return type(item) == 'table'
      end)
  return asked and require('mcp-tools.mounts') or package.loaded['mcp-tools.mounts'] -- start-up cost
end

--- Writing one of these files may cause a scan.
M.pattern = '*.json'

--- Returns whether a file configures mounts.
---@param path string resolved
---@return boolean
function M.is_ours(path)
  local mounts = loaded()
  for each in pairs(mounts and mounts.files() or {}) do
    if vim.uv.fs_realpath(each) == path then
      return true
    end
  end
  return false
end

---@param _ mcp-tools.Registry
---@param done fun()
function M.scan(_, done)
  local mounts = loaded()
  if mounts then
    mounts.sync()
  end
  done()
end

---@return mcp-tools.MountStatus[]
local function status()
  local mounts = loaded()
  return mounts and mounts.status() or {}
end

---@return mcp-tools.Found[]
function M.found()
  return vim.tbl_map(function(each)
    return { file = ('mount %s (%s, %s)'):format(each.name, each.from, each.state), tools = {} }
  end, status())
end

---@return mcp-tools.Failure[]
function M.failures()
  local list = {}
  for _, each in ipairs(status()) do
    if each.error and each.state ~= 'ready' then
      table.insert(list, { source = 'mount ' .. each.name, error = each.error })
    end
    for _, fault in ipairs(each.faults) do
      table.insert(list, { source = 'mount ' .. each.name, error = fault })
    end
  end
  return list
end

return M

--- Reads and writes the ledger file of one project.

local private_files = require('mcp-tools.files.private_json')

local M = {}

local VERSION = 1
--- Far more than one project needs; a larger file is damaged.
local MAX_BYTES = 1024 * 1024
--- Maximum number of files or calls in one entry, and their bytes; the oldest are dropped.
local MAX_PATHS, MAX_PATH_BYTES = 100, 32 * 1024

---@alias mcp-tools.Level
---| 'trusted'  # allowed, even if its definition requires approval
---| 'verified' # allowed, unless its definition requires approval
---| 'files'    # allowed with the listed files; otherwise the user is asked
---| 'calls'    # allowed with the listed arguments; otherwise the user is asked
---| 'denied'   # denied

local LEVELS = { trusted = true, verified = true, files = true, calls = true, denied = true }
--- Levels that extend an earlier decision instead of replacing it.
local ADDS = { files = true, calls = true }

---@class mcp-tools.LedgerEntry
---@field tool string
---@field source string
---@field hash string fingerprint of the definition
---@field level mcp-tools.Level
---@field paths string[]? allowed files outside the project, resolved
---@field calls string[]? allowed calls, by `rules.call_key`
---@field at integer unix seconds

--- A new decision.
---@class mcp-tools.LedgerChange
---@field reset boolean? removes all decisions
---@field tool string?
---@field source string?
---@field hash string?
---@field level mcp-tools.Level? nil removes the decisions on the tool
---@field paths string[]?
---@field calls string[]?
---@field at integer

---@param value any
---@return boolean
local function is_list(value)
  return type(value) == 'table' and vim.islist(value)
end

---@param list any
---@return boolean
local function is_string_list(list)
  return is_list(list) and vim.iter(list):all(function(each)
    return type(each) == 'string'
  end)
end

local function is_entry(entry)
  return type(entry) == 'table'
    and type(entry.tool) == 'string'
    and type(entry.source) == 'string'
    and type(entry.hash) == 'string'
    and LEVELS[entry.level] ~= nil
    and (entry.paths == nil or is_string_list(entry.paths))
    and (entry.calls == nil or is_string_list(entry.calls))
end

--- Reads the decisions.
---@param path string
---@param root string
---@param dir string the plugin's state directory
---@return mcp-tools.LedgerEntry[]? entries
---@return string? fault
function M.read(path, root, dir)
  for _, directory in ipairs({ dir, vim.fs.dirname(path) }) do
    local fault = private_files.fault(directory, 'directory')
    if fault then
      return nil, fault
    end
  end
  local found, err = private_files.read(path, MAX_BYTES)
  if not found then
    return nil, err
  elseif not found.present then
    return {}
  end
  local value = found.value or {}
  if value.version ~= VERSION or value.root ~= root or not is_list(value.entries) then
    return nil, path .. ' is damaged'
  end
  for _, entry in ipairs(value.entries) do
    if not is_entry(entry) then
      return nil, path .. ' is damaged'
    end
  end
  return value.entries
end

---@param old string[]?
---@param new string[]
---@return string[]
local function joined(old, new)
  local out, seen, bytes = {}, {}, 0
  for _, path in ipairs(vim.list_extend(vim.list_slice(new), old or {})) do
    if not seen[path] and #out < MAX_PATHS and bytes + #path <= MAX_PATH_BYTES then
      seen[path], bytes = true, bytes + #path
      table.insert(out, path)
    end
  end
  return out
end

--- Returns the decisions after a change, which replaces those on the same name and source.
---@param entries mcp-tools.LedgerEntry[]
---@param change mcp-tools.LedgerChange
---@return mcp-tools.LedgerEntry[]
function M.changed(entries, change)
  if change.reset then
    return {}
  end
  local entry = { tool = change.tool, source = change.source, hash = change.hash, level = change.level, at = change.at }
  local out = {}
  for _, other in ipairs(entries) do
    local same = other.tool == change.tool
    if same and other.source == change.source and other.hash == change.hash and other.level ~= 'denied' then
      entry.paths, entry.calls = other.paths, other.calls
      entry.level = ADDS[change.level] and not ADDS[other.level] and other.level or change.level
    end
    if not same or change.level and other.source ~= change.source and other.level ~= 'denied' then
      table.insert(out, other)
    end
  end
  entry.paths = change.paths and joined(entry.paths, change.paths) or entry.paths
  entry.calls = change.calls and joined(entry.calls, change.calls) or entry.calls
  if change.level then
    table.insert(out, entry)
  end
  return out
end

--- Replaces the file.
---@param path string
---@param root string
---@param entries mcp-tools.LedgerEntry[]
---@return boolean ok, string? err
function M.write(path, root, entries)
  return private_files.write(path, { version = VERSION, root = root, entries = entries }, MAX_BYTES)
end

return M

--- Ledger: the user's permanent decisions, in one file for each project.
---
--- An entry applies to a tool, its source and the fingerprint of its definition, so it does not apply to a changed
--- definition. A "denied" applies to every tool of the name. If another user could have written the file, or its format
--- is wrong, that is a fault: then earlier decisions, denials included, are unknown.
---
--- Several editors may write to one file. Each updates the current content under a lock. While another editor has the
--- lock, a change applies here at once and is written soon after.

local canonical_json = require('mcp-tools.util.canonical_json')
local private_files = require('mcp-tools.files.private_json')
local lock_file = require('mcp-tools.util.lock')
local is_strings = require('mcp-tools.schema.value').is_strings
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local source = require('mcp-tools.registry.source')

local uv = vim.uv

local M = {}

-- The file ----------------------------------------------------------------------------------------------------------

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

local function is_entry(entry)
  return type(entry) == 'table'
    and type(entry.tool) == 'string'
    and type(entry.source) == 'string'
    and type(entry.hash) == 'string'
    and LEVELS[entry.level] ~= nil
    and (entry.paths == nil or is_strings(entry.paths))
    and (entry.calls == nil or is_strings(entry.calls))
end

--- Returns why the directory of the files, or the plugin's state directory above it, is not private.
---@param path string
---@return string?
local function directory_fault(path)
  local directory = vim.fs.dirname(path)
  return private_files.fault(vim.fs.dirname(directory), 'directory') or private_files.fault(directory, 'directory')
end

--- Reads the decisions.
---@param path string
---@param root string
---@return mcp-tools.LedgerEntry[]? entries
---@return string? fault
local function read(path, root)
  local fault = directory_fault(path)
  if fault then
    return nil, fault
  end
  local found, err = private_files.read(path, MAX_BYTES)
  if not found then
    return nil, err
  elseif not found.present then
    return {}
  end
  local value = found.value or {}
  local is_list = type(value.entries) == 'table' and vim.islist(value.entries)
  if value.version ~= VERSION or value.root ~= root or not is_list or not vim.iter(value.entries):all(is_entry) then
    return nil, path .. ' is damaged'
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
local function changed(entries, change)
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

-- The ledger --------------------------------------------------------------------------------------------------------

--- How long the content in memory is used before the file is checked for changes by other editors.
local FRESH_NS = 1e9
--- While another editor has the lock: the minimum wait before the next attempt, and when to give up.
local RETRY_MS, RETRY_NS = 2, 5e9

---@class mcp-tools.ProjectLedger the decisions of one project
---@field root string
---@field path string
---@field fault string?
---@field entries mcp-tools.LedgerEntry[]
---@field by_key table<string, mcp-tools.LedgerEntry>
---@field denied table<string, true> by name
---@field trusted table<string, true> by name
---@field checked_at integer ns
---@field stamp string of the file that was read

---@class mcp-tools.Ledger
---@field projects table<string, mcp-tools.ProjectLedger> by root
---@field dir fun(): string returns the plugin's state directory
---@field waiting table<string, mcp-tools.LedgerChange[]> by project: changes not yet on disk
local Ledger = {}
Ledger.__index = Ledger

--- Creates a ledger.
---@param opts { dir: fun(): string }
---@return mcp-tools.Ledger
function M.new(opts)
  return setmetatable({ dir = opts.dir, projects = {}, waiting = {} }, Ledger)
end

---@param tool string
---@param source_key string
local function key_of(tool, source_key)
  return tool .. '\0' .. source_key
end

---@param path string
---@return string changes with the file
local function stamp_of(path)
  local stat = uv.fs_lstat(path)
  return stat and ('%d %d.%d %d'):format(stat.ino, stat.mtime.sec, stat.mtime.nsec, stat.size) or ''
end

---@param project mcp-tools.ProjectLedger
local function index(project)
  project.by_key, project.denied, project.trusted = {}, {}, {}
  for _, entry in ipairs(project.entries) do
    project.by_key[key_of(entry.tool, entry.source)] = entry
    if entry.level == 'denied' then
      project.denied[entry.tool] = true
    else
      project.trusted[entry.tool] = true
    end
  end
end

---@param root string
---@return string
function Ledger:path(root)
  return vim.fs.joinpath(self.dir(), 'ledger', vim.fn.sha256(root):sub(1, 32) .. '.json')
end

--- Returns the decisions of a project, at most one second old.
---@param root string
---@param now? boolean read the file in any case
---@return mcp-tools.ProjectLedger
function Ledger:open(root, now)
  local project = self.projects[root]
  local time = uv.hrtime()
  if project and not now and time - project.checked_at < FRESH_NS then
    return project
  end
  local path = project and project.path or self:path(root)
  local stamp = stamp_of(path)
  if not project or project.stamp ~= stamp or project.fault or now then
    local entries, fault = read(path, root)
    ---@diagnostic disable-next-line: missing-fields -- `index` sets them
    project = { root = root, path = path, entries = entries or {}, fault = fault, stamp = stamp }
    for _, change in ipairs(self.waiting[root] or {}) do
      project.entries = changed(project.entries, change)
    end
    index(project)
    self.projects[root] = project
  end
  project.checked_at = time
  return project
end

---@class mcp-tools.Verdict the earlier decision on a definition
---@field level mcp-tools.Level?
---@field paths string[]?
---@field calls string[]?
---@field changed boolean? the user trusted a tool of this name with another definition

local NOTHING, DENIED, CHANGED = {}, { level = 'denied' }, { changed = true }

--- Returns the earlier decision on a definition.
---@param root string
---@param definition mcp-tools.Definition
---@return mcp-tools.Verdict? verdict
---@return string? fault why it is unknown
function Ledger:verdict(root, definition)
  local project = self:open(root)
  if project.fault then
    return nil, project.fault
  elseif project.denied[definition.name] then
    return DENIED
  elseif not next(project.by_key) then
    return NOTHING
  end
  local entry = project.by_key[key_of(definition.name, source.key(definition))]
  if entry and entry.hash == canonical_json.fingerprint(definition) then
    return entry --[[@as mcp-tools.Verdict]]
  end
  return (entry or project.trusted[definition.name]) and CHANGED or NOTHING
end

--- Applies the waiting changes to the file.
---@param root string
---@param path string
---@param lock mcp-tools.LockFile
---@return boolean? ok nil: the lock was lost
---@return string? err
function Ledger:rewrite(root, path, lock)
  local queue = self.waiting[root]
  local entries, fault = read(path, root)
  if not entries and queue[1].reset then
    entries, fault = {}, private_files.fault(path, 'file') -- another user's file is not replaced
  end
  if fault then
    return false, fault
  elseif not lock:is_held() then
    return nil
  end
  for _, change in ipairs(queue) do
    entries = changed(entries, change)
  end
  return private_files.write(path, { version = VERSION, root = root, entries = entries }, MAX_BYTES)
end

--- Writes the waiting changes of a project.
---@param root string
---@return boolean? ok nil: another editor is writing
---@return string? err
function Ledger:write(root)
  local path = self:path(root)
  for _, directory in ipairs({ self.dir(), vim.fs.dirname(path) }) do
    local ok, err = private_files.ensure_dir(directory)
    if not ok then
      return false, err
    end
  end
  local lock, err = lock_file.take(path .. '.lock')
  if err then
    return false, err
  elseif not lock then
    return nil
  end
  local called, ok, why = log.guard('writing the ledger', self.rewrite, self, root, path, lock)
  lock:release()
  if not called then
    return false, 'writing the file failed; see :McpTools log'
  end
  return ok, why
end

--- Writes once the other editor has released the lock. Changes that cannot be written are dropped.
---@param root string
---@param since integer ns
function Ledger:write_later(root, since)
  vim.defer_fn(function()
    local ok, err = self:write(root)
    if ok == nil and uv.hrtime() - since < RETRY_NS then
      return self:write_later(root, since)
    end
    self.waiting[root], self.projects[root] = nil, nil
    if not ok then
      notify.error('your decision was not saved: ' .. (err or 'another editor has locked the file'))
    end
  end, RETRY_MS + uv.hrtime() % 5)
end

---@param root string
---@param change mcp-tools.LedgerChange
---@return boolean ok, string? err
function Ledger:add(root, change)
  self.projects[root] = nil
  local waiting = self.waiting[root]
  if waiting then -- a pending write includes it
    table.insert(waiting, change)
    return true
  end
  self.waiting[root] = { change }
  local ok, err = self:write(root)
  if ok == nil then
    self:write_later(root, uv.hrtime())
    return true
  end
  self.waiting[root] = nil -- also after a failure, so that the next decision is written
  return ok, err
end

--- Stores a decision on a definition. It replaces earlier decisions on this name and source.
---@param root string
---@param definition mcp-tools.Definition
---@param level mcp-tools.Level? nil removes all decisions on the name
---@param paths? string[] files outside the project to add to the allowed ones
---@param calls? string[] call keys to add to the allowed ones
---@return boolean ok, string? err
function Ledger:set(root, definition, level, paths, calls)
  return self:add(root, {
    tool = definition.name,
    source = source.key(definition),
    hash = canonical_json.fingerprint(definition),
    level = level,
    paths = paths,
    calls = calls,
    at = os.time(),
  })
end

--- Removes all decisions of a project. Replaces a damaged file, but not another user's.
---@param root string
---@return boolean ok, string? err
function Ledger:reset(root)
  return self:add(root, { reset = true, at = os.time() })
end

--- Returns whether `reset` would fix a fault. It does not if the file or its directory belongs to another user.
---@param root string
---@return boolean
function Ledger:can_reset(root)
  local path = self:path(root)
  return not directory_fault(path) and not private_files.fault(path, 'file')
end

--- Returns all decisions of a project.
---@param root string
---@return mcp-tools.LedgerEntry[] entries
---@return string? fault
function Ledger:list(root)
  local project = self:open(root, true)
  return project.entries, project.fault
end

return M

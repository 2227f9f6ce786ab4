--- What the person decided for good, on disk, one file for each project.
---
--- Receives: definitions, and what the person said of them.
--- Sends: what was said before, or why that cannot be known.
--- Does not know about: who asks, questions, calls.
---
--- An entry belongs to a tool, its source and the fingerprint of its definition: a definition that changed is no longer
--- the one that was trusted. A "denied" counts for the name alone. A file that others could have written, or that is
--- not as we wrote it, is a fault: then nothing is known, not even that nothing was denied.

local canonical = require('mcp-tools.canonical')
local files = require('mcp-tools.bridge.private_files')
local origin = require('mcp-tools.origin')

local uv = vim.uv

local M = {}

local VERSION = 1
--- Far more than a person decides in a project; a larger file was not written by us.
local MAX_BYTES = 1024 * 1024
--- Files that one entry names; the oldest give way.
local MAX_PATHS = 100
--- How long what was read counts without a look at the file, which other editors write too.
local FRESH_NS = 1e9

---@alias mcp-tools.Level
---| 'trusted'  # runs, whatever its definition says
---| 'verified' # runs, unless its definition demands to be asked
---| 'files'    # runs with files that the person allowed for it, and asks otherwise
---| 'denied'   # does not run

local LEVELS = { trusted = true, verified = true, files = true, denied = true }

---@class mcp-tools.LedgerEntry
---@field tool string
---@field source string
---@field hash string fingerprint of the definition
---@field level mcp-tools.Level
---@field paths string[]? resolved files outside the project that it may have
---@field at integer unix seconds

---@class mcp-tools.Book one project's ledger
---@field root string
---@field path string
---@field fault string?
---@field entries mcp-tools.LedgerEntry[]
---@field by_key table<string, mcp-tools.LedgerEntry>
---@field denied table<string, true> by name
---@field trusted table<string, true> by name
---@field looked_at integer ns
---@field stamp string of the file that was read

---@class mcp-tools.Ledger
---@field books table<string, mcp-tools.Book>
local Ledger = {}
Ledger.__index = Ledger

--- Makes a ledger.
---@param opts { dir: fun(): string } the folder of all that outlives a session
---@return mcp-tools.Ledger
function M.new(opts)
  return setmetatable({ dir = opts.dir, books = {} }, Ledger)
end

---@param tool string
---@param source string
local function key_of(tool, source)
  return tool .. '\0' .. source
end

---@param path string
---@return string changes with the file
local function stamp_of(path)
  local stat = uv.fs_lstat(path)
  return stat and ('%d %d.%d %d'):format(stat.ino, stat.mtime.sec, stat.mtime.nsec, stat.size) or ''
end

local function is_entry(entry)
  return type(entry) == 'table'
    and type(entry.tool) == 'string'
    and type(entry.source) == 'string'
    and type(entry.hash) == 'string'
    and LEVELS[entry.level] ~= nil
    and (entry.paths == nil or type(entry.paths) == 'table' and vim.islist(entry.paths))
end

---@param book mcp-tools.Book
---@return string? fault
local function read(book, dir)
  for _, folder in ipairs({ dir, vim.fs.dirname(book.path) }) do
    local fault = files.fault(folder, 'directory')
    if fault then
      return fault
    end
  end
  local found, err = files.read(book.path, MAX_BYTES)
  if not found then
    return err
  elseif not found.present then
    return nil
  end
  local value = found.value or {}
  if value.version ~= VERSION or value.root ~= book.root or type(value.entries) ~= 'table' then
    return book.path .. ' is damaged'
  end
  for _, entry in pairs(value.entries) do
    if not is_entry(entry) then
      return book.path .. ' is damaged'
    end
  end
  book.entries = value.entries
end

---@param book mcp-tools.Book
local function index(book)
  book.by_key, book.denied, book.trusted = {}, {}, {}
  for _, entry in ipairs(book.entries) do
    book.by_key[key_of(entry.tool, entry.source)] = entry
    if entry.level == 'denied' then
      book.denied[entry.tool] = true
    else
      book.trusted[entry.tool] = true
    end
  end
end

--- The book of a project as it is on disk now, or was a moment ago.
---@param root string
---@param now? boolean look at the file in any case
---@return mcp-tools.Book
function Ledger:open(root, now)
  local book = self.books[root]
  local time = uv.hrtime()
  if book and not now and time - book.looked_at < FRESH_NS then
    return book
  end
  local path = book and book.path or vim.fs.joinpath(self.dir(), 'ledger', vim.fn.sha256(root):sub(1, 32) .. '.json')
  local stamp = stamp_of(path)
  if not book or book.stamp ~= stamp or book.fault or now then
    book = { root = root, path = path, entries = {}, stamp = stamp }
    book.fault = read(book, self.dir())
    index(book)
    self.books[root] = book
  end
  book.looked_at = time
  return book
end

---@class mcp-tools.Verdict what the person said of a definition before
---@field level mcp-tools.Level?
---@field paths string[]?
---@field changed boolean? they trusted a tool of this name, but not this definition

local NOTHING, DENIED, CHANGED = {}, { level = 'denied' }, { changed = true }

--- What was said of a definition.
---@param root string
---@param definition mcp-tools.Definition
---@return mcp-tools.Verdict? verdict
---@return string? fault why it cannot be known
function Ledger:look(root, definition)
  local book = self:open(root)
  if book.fault then
    return nil, book.fault
  elseif book.denied[definition.name] then
    return DENIED
  end
  local entry = book.by_key[key_of(definition.name, origin.key(definition))]
  if entry and entry.hash == canonical.fingerprint(definition) then
    return entry
  end
  return (entry or book.trusted[definition.name]) and CHANGED or NOTHING
end

---@param book mcp-tools.Book
---@return boolean ok, string? err
function Ledger:save(book)
  for _, folder in ipairs({ self.dir(), vim.fs.dirname(book.path) }) do
    local ok, err = files.ensure_dir(folder)
    if not ok then
      return false, err
    end
  end
  local ok, err = files.write(book.path, { version = VERSION, root = book.root, entries = book.entries })
  self.books[book.root] = nil
  return ok, err
end

---@param old string[]?
---@param new string[]
---@return string[]
local function joined(old, new)
  local out, seen = {}, {}
  for _, path in ipairs(vim.list_extend(vim.list_slice(new), old or {})) do
    if not seen[path] and #out < MAX_PATHS then
      seen[path] = true
      table.insert(out, path)
    end
  end
  return out
end

--- Notes what the person says of a definition; what they said of that name before, from that source, gives way.
---@param root string
---@param definition mcp-tools.Definition
---@param level mcp-tools.Level? nil forgets all about the name
---@param paths? string[] with "files": what it may have besides what it had
---@return boolean ok, string? err
function Ledger:set(root, definition, level, paths)
  local book = self:open(root, true)
  if book.fault then
    return false, book.fault
  end
  local source, hash = origin.key(definition), canonical.fingerprint(definition)
  local old = book.by_key[key_of(definition.name, source)]
  local entry = { tool = definition.name, source = source, hash = hash, level = level, at = os.time() }
  if old and old.hash == hash and old.level ~= 'denied' then
    entry.paths = old.paths
    entry.level = level == 'files' and old.level or level
  end
  entry.paths = paths and joined(entry.paths, paths) or entry.paths
  book.entries = vim.tbl_filter(function(other)
    if other.tool ~= definition.name then
      return true
    end
    return level ~= nil and other.source ~= source and other.level ~= 'denied'
  end, book.entries)
  if level then
    table.insert(book.entries, entry)
  end
  return self:save(book)
end

--- Forgets everything about a project. A file with a fault is replaced, unless it is not ours.
---@param root string
---@return boolean ok, string? err
function Ledger:reset(root)
  local book = self:open(root, true)
  local fault = files.fault(book.path, 'file')
  if fault then
    return false, fault
  end
  book.entries = {}
  return self:save(book)
end

--- Everything that was said in a project.
---@param root string
---@return mcp-tools.LedgerEntry[] entries
---@return string? fault
function Ledger:list(root)
  local book = self:open(root, true)
  return book.entries, book.fault
end

return M

--- Reads files asynchronously and checks access to the file that was really opened.
---
--- A directory can become a link between the check of a path and its opening. So the real path is determined again from
--- the open file descriptor.

local access = require('mcp-tools.privacy.access')
local errors = require('mcp-tools.errors')
local line_range = require('mcp-tools.files.line_range')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')
local text = require('mcp-tools.files.text')
local time_slice = require('mcp-tools.util.time_slice')
local timer = require('mcp-tools.util.timer')
local utf8 = require('mcp-tools.util.utf8')

local uv = vim.uv

local M = {}

--- Non-blocking: opening a pipe without a writer would block a thread of the pool forever.
local READ = bit.bor(uv.constants.O_RDONLY, uv.constants.O_NONBLOCK or 0)
--- Number of attempts for a file that is replaced while it is opened.
local MAX_TRIES = 3
--- Number of bytes processed at a time, about a millisecond of work.
local CHUNK = 64 * 1024

---@alias mcp-tools.Judge fun(path: string): boolean whether the file at this real path may be read

--- Creates the error on the main loop, because the file's display name needs the API.
---@alias mcp-tools.ReadFault fun(name: string): mcp-tools.Error

---@param problem string|nil libuv's error, "CODE: text"
---@return mcp-tools.ReadFault
local function fault(problem)
  return function(name)
    local missing = problem and problem:match('^ENOENT') ~= nil
    local message = missing and 'there is no file ' .. name or ('cannot read %s: %s'):format(name, problem)
    return errors.new(missing and 'not_found' or 'tool_error', message)
  end
end

---@param code mcp-tools.ErrorCode
---@param message string format whose first `%s` is the file
---@return mcp-tools.ReadFault
local function refused(code, message, ...)
  local more = { ... }
  return function(name)
    return errors.new(code, message:format(name, unpack(more)))
  end
end

--- Calls back on the main loop; errors name the file relative to the project root.
---@param path string
---@param cb fun(found: any, more: any)
---@return fun(found: any, more: any)
local function answer(path, cb)
  return vim.schedule_wrap(function(found, more)
    if not found then
      more = more(access.shown(path, project.root()))
    end
    cb(found, more)
  end)
end

---@param a table?
---@param b table
local function is_same(a, b)
  return a ~= nil and a.dev == b.dev and a.ino == b.ino
end

--- Finds the real path of an open file by its name, for systems without /proc.
---@param path string
---@param stat table of the open file
---@param cb fun(real: string?)
local function real_path_by_name(path, stat, cb)
  uv.fs_realpath(path, function(_, before)
    if not before then
      return cb(nil)
    end
    uv.fs_stat(before, function(_, now)
      uv.fs_realpath(path, function(_, after)
        cb(before == after and is_same(now, stat) and before or nil)
      end)
    end)
  end)
end

--- Finds the real path of an open file.
---@param fd integer
---@param path string the opened path
---@param stat table
---@param cb fun(real: string?) nil: deleted or replaced
local function real_path(fd, path, stat, cb)
  uv.fs_readlink(('/proc/self/fd/%d'):format(fd), function(_, real)
    if not real then
      return real_path_by_name(path, stat, cb)
    elseif not real:find(' %(deleted%)$') then
      return cb(real)
    end
    uv.fs_stat(real, function(_, named) -- its name may really end like that
      cb(is_same(named, stat) and real or nil)
    end)
  end)
end

--- Finds the real path of an open file.
---@param fd integer
---@param path string the opened path
---@param cb fun(real: string?) nil: deleted or replaced
function M.real_path(fd, path, cb)
  uv.fs_fstat(fd, function(_, stat)
    if stat then
      return real_path(fd, path, stat, cb)
    end
    cb(nil)
  end)
end

--- Opens a regular file that may be read.
---@param path string
---@param limit integer bytes
---@param judge mcp-tools.Judge
---@param cb fun(fd: integer?, stat: table|mcp-tools.ReadFault)
---@param tries? integer
local function open(path, limit, judge, cb, tries)
  uv.fs_open(path, READ, 0, function(problem, fd)
    if not fd then
      return cb(nil, fault(problem))
    end
    local function refuse(err)
      uv.fs_close(fd, function()
        cb(nil, err)
      end)
    end
    uv.fs_fstat(fd, function(stat_problem, stat)
      if not stat then
        return refuse(fault(stat_problem))
      elseif stat.type ~= 'file' then
        return refuse(refused('tool_error', '%s is a %s, not a file', stat.type))
      end
      real_path(fd, path, stat, function(real)
        if not real and (tries or 1) < MAX_TRIES then
          return uv.fs_close(fd, function()
            open(path, limit, judge, cb, (tries or 1) + 1)
          end)
        end
        vim.schedule(function() -- the judge may use any API
          if not real or not judge(real) then
            return refuse(refused('access_denied', '%s was replaced after it was approved'))
          elseif stat.size > limit then
            return refuse(refused('too_large', '%s has %d bytes; the limit is %d', stat.size, limit))
          end
          cb(fd, stat)
        end)
      end)
    end)
  end)
end

---@param path string
---@param judge mcp-tools.Judge?
---@return mcp-tools.Judge
local function judge_of(path, judge)
  return judge --[[@as mcp-tools.Judge]] or function(real)
    return real == path
  end
end

--- Reads a regular file.
---@param path string resolved unless `judge` is given
---@param limit integer bytes; a larger file is `too_large`
---@param cb fun(bytes: string?, err: mcp-tools.Error?)
---@param judge? mcp-tools.Judge default: only exactly this path
function M.read(path, limit, cb, judge)
  cb = answer(path, cb)
  open(path, limit, judge_of(path, judge), function(fd, stat)
    if not fd then
      return cb(nil, stat)
    end
    uv.fs_read(fd, stat.size, 0, function(problem, bytes)
      cb(bytes, not bytes and fault(problem) or nil)
      uv.fs_close(fd, function() end)
    end)
  end)
end

--- Judges that any file may be read, sensitive ones as well: for texts that clients do not see.
---@return boolean
function M.any()
  return true
end

--- Like `read`, for coroutines.
---@param ctx mcp-tools.Ctx|mcp-tools.Task
---@param path string
---@param limit integer
---@param judge? mcp-tools.Judge
---@return string? bytes
---@return mcp-tools.Error? err
function M.await(ctx, path, limit, judge)
  local bytes, err = ctx:await(function(done)
    M.read(path, limit, done, judge)
  end)
  return bytes, err
end

---@class mcp-tools.LineRange
---@field first integer 1-based
---@field last integer
---@field max_bytes integer maximum size; lines beyond are dropped

--- Extracts lines from a text that must be decoded as a whole.
---@param bytes string
---@param range mcp-tools.LineRange
---@param pause fun()
---@return string[] lines
---@return integer total
local function cut(bytes, range, pause)
  local decoded, lines = text.decode(bytes), line_range.new(range)
  for at = 1, #decoded, CHUNK do
    lines:add(decoded:sub(at, at + CHUNK - 1))
    pause()
  end
  return lines:finish()
end

--- Reads a range of lines as Neovim would read them into a buffer, and counts all lines. Only the requested lines of a
--- UTF-8 file are held in memory. A binary file is an error.
---@param path string resolved unless `judge` is given
---@param limit integer bytes; a larger file is `too_large`
---@param range mcp-tools.LineRange
---@param cb fun(lines: string[]?, total: integer|mcp-tools.Error)
---@param judge? mcp-tools.Judge default: only exactly this path
function M.lines(path, limit, range, cb, judge)
  cb = answer(path, cb)
  open(path, limit, judge_of(path, judge), function(fd, stat)
    if not fd then
      return cb(nil, stat)
    end
    local lines, checked = line_range.new(range), utf8.checker()
    local function finish(...)
      local found, total = ...
      uv.fs_close(fd, function()
        cb(found, total)
      end)
    end
    local function read_whole()
      uv.fs_read(fd, stat.size, 0, function(problem, bytes)
        if not bytes then
          return finish(nil, fault(problem))
        end
        vim.schedule(function() -- decoding reads options
          time_slice.run(function(pause)
            finish(cut(bytes, range, pause))
          end)
        end)
      end)
    end
    local function more(offset)
      uv.fs_read(fd, CHUNK, offset, function(problem, bytes)
        if not bytes then
          return finish(nil, fault(problem))
        elseif offset == 0 and text.is_binary(bytes) then
          return finish(nil, refused('tool_error', '%s is a binary file (%d bytes)', stat.size))
        elseif bytes == '' or offset >= limit then
          if not checked('', true) then
            return read_whole()
          end
          return finish(lines:finish())
        elseif not checked(bytes) then
          return read_whole()
        end
        lines:add(offset == 0 and bytes:gsub('^\239\187\191', '') or bytes)
        more(offset + #bytes)
      end)
    end
    more(0)
  end)
end

-- Cache for approval questions, which must be shown without waiting for the disk --------------------------------------
-- An entry is valid while the file has the same stamp.

--- Maximum size of a cached file in bytes.
M.MAX_CACHED = 4 * 1024 * 1024
--- Error code of a file that is being read.
M.READING = 'EAGAIN'
--- Maximum number of entries, and of bytes in all; the oldest are dropped first.
local MAX_KEPT, MAX_BYTES = 100, 32 * 1024 * 1024
--- Maximum time that `once_read` waits, in ms.
local MAX_WAIT = 1000

---@class mcp-tools.ReadCacheEntry
---@field path string
---@field stamp string? stamp of the file when it was read
---@field bytes string?
---@field fault string?
---@field code string?
---@field listeners (fun())[]? called when the file has been read; nil: not being read

---@type mcp-tools.ReadCacheEntry[] oldest first
local kept = {}
local reading = 0
---@type (fun())[]
local waiting = {}

---@param list (fun())[]
local function call_all(list)
  for _, fn in ipairs(list) do
    fn()
  end
end

--- Drops the oldest entries beyond the limits.
local function drop_oldest()
  local bytes = 0
  for i = #kept, 1, -1 do
    bytes = bytes + #(kept[i].bytes or '')
    if bytes > MAX_BYTES or #kept - i >= MAX_KEPT then
      table.remove(kept, i)
    end
  end
end

---@param entry mcp-tools.ReadCacheEntry
local function start_reading(entry)
  reading = reading + 1
  M.read(entry.path, M.MAX_CACHED, function(bytes, err)
    entry.bytes, entry.fault = bytes, err and err.message
    drop_oldest()
    entry.code = err and err.code == 'not_found' and 'ENOENT' or nil
    local listeners = entry.listeners or {}
    entry.listeners, reading = nil, reading - 1
    call_all(listeners)
    if reading == 0 then
      local list = waiting
      waiting = {}
      call_all(list)
    end
  end)
end

--- Returns the cached bytes of a file, otherwise starts to read them.
---@param path string resolved
---@param again? fun() called on the main loop when the file has been read
---@return string? bytes
---@return string? fault
---@return string? code 'ENOENT', or `READING`
function M.cached(path, again)
  local stamp, found = paths.stamp(path), nil
  for i, entry in ipairs(kept) do
    if entry.path == path and entry.stamp == stamp then
      found = entry
    elseif entry.path == path and not entry.listeners then
      table.remove(kept, i)
      break
    end
  end
  if not found then
    found = { path = path, stamp = stamp, listeners = {} }
    table.insert(kept, found)
    drop_oldest()
    start_reading(found)
  end
  if found.listeners then
    table.insert(found.listeners, again)
    return nil, 'the file is being read', M.READING
  end
  return found.bytes, found.fault, found.code
end

--- Returns whether a file is being read.
---@return boolean
function M.is_reading()
  return reading > 0
end

--- Waits for all pending reads, at most a second.
---@param cb fun() called once, on the main loop
function M.once_read(cb)
  local done, expiry = false, nil ---@type boolean, mcp-tools.Timer?
  local function finish()
    if not done then
      done = true
      if expiry then
        expiry:stop()
      end
      cb()
    end
  end
  expiry = timer.after(MAX_WAIT, finish)
  table.insert(waiting, finish)
end

return M

--- Reads files asynchronously and checks access to the file that was really opened.
---
--- A directory can become a link between the check of a path and its opening. So the real path is determined again from
--- the open file descriptor.

local access = require('mcp-tools.privacy.access')
local errors = require('mcp-tools.errors')
local line_range = require('mcp-tools.files.line_range')
local project = require('mcp-tools.instances.project')
local text = require('mcp-tools.files.text')
local time_slice = require('mcp-tools.util.time_slice')
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

--- Creates the error later, on the main loop: the file's display name needs the API.
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
local function where(fd, path, stat, cb)
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
function M.where(fd, path, cb)
  uv.fs_fstat(fd, function(_, stat)
    if stat then
      return where(fd, path, stat, cb)
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
      where(fd, path, stat, function(real)
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

return M

--- The log file.
---
--- Safe in fast callbacks: the file is accessed only from the main loop.

local uv = vim.uv

--- `format` is a `string.format` pattern; without further arguments, the text itself.
---@class mcp-tools.Log
---@field debug fun(format: string, ...: any)
---@field info fun(format: string, ...: any)
---@field warn fun(format: string, ...: any)
---@field error fun(format: string, ...: any)
local M = {}

-- The previous file is kept, too. Larger files open slowly in an editor.
local MAX_BYTES = 10 * 1024 * 1024
-- Maximum lines and bytes kept in memory, for `:checkhealth` and for `:McpTools log` if the file cannot be read.
local KEEP, KEEP_BYTES = 500, 1024 * 1024

-- Maximum bytes of one line. A traceback has a few thousand; an error of a tool may have any length.
local MAX_LINE = 64 * 1024
-- Bytes after the cut in which secrets are replaced first, because half a secret would not be recognized.
local MARGIN = 4 * 1024

---@enum mcp-tools.log.Level
M.levels = { debug = 1, info = 2, warn = 3, error = 4 }

--- Lowest level that is written; config/init.lua sets it.
M.level = M.levels.info ---@type integer

local recent = {} ---@type string[] newest last
local recent_bytes = 0
local hidden = {} ---@type table<string, true>
local path ---@type string?

---@return string
function M.path()
  path = path or vim.fs.joinpath(vim.fn.stdpath('log') --[[@as string]], 'mcp-tools.log')
  return path
end

local file ---@type table?

-- A failure to write is shown only in `:checkhealth`.
local function opened()
  -- Start-up cost: usually nothing is logged before the first screen is drawn.
  file = file or require('mcp-tools.util.rotating_file').new({ path = M.path, max_bytes = MAX_BYTES })
  return file
end

---@return string?
function M.failure()
  return file and file.failed
end

--- Replaces a secret in every line of the log from now on.
---@param secret string
function M.hide(secret)
  if #secret >= 8 then
    hidden[secret] = true
  end
end

--- Replaces the secrets in a text.
---@param text string
---@param mark? string replacement
---@return string
function M.strip(text, mark)
  mark = (mark or '<hidden>'):gsub('%%', '%%%%')
  for secret in pairs(hidden) do
    text = text:gsub(vim.pesc(secret), mark)
  end
  return text
end

--- Escapes control characters, which a terminal would execute; clients may put them into names.
---@param text string
---@return string
local function without_controls(text)
  local function code(char)
    return ('<U+%04X>'):format(char:byte())
  end
  return (text:gsub('[%z\1-\8\11-\31\127]', code):gsub('\194([\128-\159])', code))
end

--- Removes secrets and cuts a text to the maximum length.
---@param text string
---@return string
local function sanitized(text)
  local bytes = #text
  local is_long = bytes > MAX_LINE
  if is_long then
    text = text:sub(1, MAX_LINE + MARGIN)
  end
  -- Start-up cost: little is logged before the first screen is drawn.
  text = require('mcp-tools.util.secrets').text(M.strip(text))
  if is_long then
    -- Start-up cost: long lines are rare.
    text = require('mcp-tools.util.utf8').cut(text, math.max(0, #text - MARGIN)) .. (' (%d bytes)'):format(bytes)
  end
  return text
end

---@param level string
---@param format string
---@param ... any
local function write(level, format, ...)
  if M.levels[level] < M.level then
    return
  end
  local text = select('#', ...) > 0 and format:format(...) or tostring(format)
  text = sanitized(text:match('^.*%S') or '') -- `%s+$` would be quadratic in blanks
  text = without_controls(text):gsub('\n', '\n    ')
  local seconds, micros = uv.gettimeofday()
  local line = ('%s.%03d %-5s [%d] %s'):format(
    os.date('%Y-%m-%dT%H:%M:%S', seconds),
    math.floor((micros or 0) / 1000),
    level:upper(),
    uv.os_getpid(),
    text
  )
  table.insert(recent, line)
  recent_bytes = recent_bytes + #line
  while #recent > KEEP or (recent_bytes > KEEP_BYTES and #recent > 1) do
    recent_bytes = recent_bytes - #table.remove(recent, 1)
  end
  opened():add(line)
end

for level in pairs(M.levels) do
  M[level] = function(format, ...)
    write(level, format, ...)
  end
end

---@param what string
---@param ok boolean
---@param ... any
local function log_failure(what, ok, ...)
  if not ok then
    M.error('%s failed: %s', what, (...))
  end
  return ok, ...
end

--- Calls a function whose errors must not affect the caller, such as code of other plugins. Errors are logged.
---@param what string name for the log
---@param fn function
---@param ... any arguments of `fn`
---@return boolean ok
---@return any ... the results of `fn`, or the error
function M.guard(what, fn, ...)
  return log_failure(what, xpcall(fn, debug.traceback, ...))
end

--- Returns the last lines that this editor has logged, oldest first.
---@param n? integer (default: all in memory)
---@return string[]
function M.lines(n)
  return vim.list_slice(recent, math.max(1, #recent - (n or KEEP) + 1))
end

--- Reads the end of the file without blocking.
---@param bytes integer
---@param cb fun(lines: string[]?, err: string?) on the main loop
function M.tail(bytes, cb)
  opened():tail(bytes, cb)
end

return M

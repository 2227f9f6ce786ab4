--- Log file.
---
--- Safe in fast callbacks: the file is only touched from the main loop.

local uv = vim.uv

local M = {}

-- One full file and the one before it are kept; larger ones open slowly in an editor.
local MAX_BYTES = 10 * 1024 * 1024
-- Lines and bytes of this editor that stay in memory for health and for `:McpTools log` when the file cannot be read.
local KEEP, KEEP_BYTES = 500, 1024 * 1024

-- Bytes of one line: a traceback has a few thousand, and what a tool throws may be as long as it likes.
local MAX_LINE = 64 * 1024
-- A long line is looked through for secrets before its end is cut off, so that none is cut in two and then unknown.
local MARGIN = 4 * 1024

---@enum mcp-tools.log.Level
M.levels = { debug = 1, info = 2, warn = 3, error = 4 }

--- Least level that is written; the options set it (config/init.lua).
M.level = M.levels.info ---@type integer

local recent = {} ---@type string[] newest last
local recent_bytes = 0
local hidden = {} ---@type table<string, true>
local path ---@type string?

--- The log file.
---@return string
function M.path()
  path = path or vim.fs.joinpath(vim.fn.stdpath('log') --[[@as string]], 'mcp-tools.log')
  return path
end

local file ---@type table?

-- A log that cannot be written must not disturb the work; health shows the reason.
local function opened()
  -- Start-up cost: in most starts nothing is logged until the first screen is drawn.
  file = file or require('mcp-tools.util.rotating_file').new({ path = M.path, max_bytes = MAX_BYTES })
  return file
end

---@return string?
function M.failure()
  return file and file.failed
end

--- A secret that must never stand in the log, whoever writes the line.
---@param secret string
function M.hide(secret)
  if #secret >= 8 then
    hidden[secret] = true
  end
end

--- The text without what must never stand in the log.
---@param text string
---@param mark? string what stands there instead
---@return string
function M.strip(text, mark)
  mark = (mark or '<hidden>'):gsub('%%', '%%%%')
  for secret in pairs(hidden) do
    text = text:gsub(vim.pesc(secret), mark)
  end
  return text
end

--- A terminal that shows the file would obey them; names of clients and tools may be made for that.
---@param text string
---@return string
local function without_controls(text)
  text = text:gsub('[%z\1-\8\11-\31\127]', function(char)
    return ('<U+%04X>'):format(char:byte())
  end)
  return (text:gsub('\194([\128-\159])', function(char)
    return ('<U+%04X>'):format(char:byte())
  end))
end

--- The text without secrets, and no longer than a line may be.
---@param text string
---@return string
local function shown(text)
  local bytes = #text
  local is_long = bytes > MAX_LINE
  if is_long then
    text = text:sub(1, MAX_LINE + MARGIN)
  end
  -- Start-up cost: little is logged before the first screen is drawn.
  text = require('mcp-tools.util.secrets').text(M.strip(text))
  if is_long then
    -- Start-up cost: hardly a line is as long.
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
  text = shown(text:match('^.*%S') or '') -- `%s+$` is quadratic in blanks
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

---@param format string with arguments: a `string.format` pattern, else the text itself
---@param ... any
function M.debug(format, ...)
  write('debug', format, ...)
end

---@param format string
---@param ... any
function M.info(format, ...)
  write('info', format, ...)
end

---@param format string
---@param ... any
function M.warn(format, ...)
  write('warn', format, ...)
end

---@param format string
---@param ... any
function M.error(format, ...)
  write('error', format, ...)
end

---@param what string
---@param ok boolean
---@param ... any
local function told(what, ok, ...)
  if not ok then
    M.error('%s failed: %s', what, (...))
  end
  return ok, ...
end

--- Runs code of others, or code that fails for itself alone: what it throws goes to the log, and nowhere else.
---@param what string what it is, for the log
---@param fn function
---@param ... any its arguments
---@return boolean ok
---@return any ... what it gave; the error when it threw
function M.guard(what, fn, ...)
  return told(what, xpcall(fn, debug.traceback, ...))
end

--- The last `n` lines that this editor has logged, oldest first.
---@param n? integer all that are kept when absent
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

-- Receives lines from every part of the plugin and from the bridge's stderr. Sends them to one file, asynchronously.
-- Does not know about notifications. Safe in fast callbacks: the file is only touched from the main loop.

local uv = vim.uv

local M = {}

-- One full file and the one before it are kept; larger ones open slowly in an editor.
local MAX_BYTES = 10 * 1024 * 1024
-- Lines of this editor that stay in memory for health and for `:McpTools log` when the file cannot be read.
local KEEP = 500
local OWNER_ONLY = tonumber('600', 8)
local OWNER_ONLY_DIR = tonumber('700', 8)

---@enum mcp-tools.log.Level
M.levels = { debug = 1, info = 2, warn = 3, error = 4 }

local recent = {} ---@type string[] newest last
local queue = {} ---@type string[] not yet handed to the file
local hidden = {} ---@type table<string, true>
local writing = false
local scheduled = false
local path ---@type string?
local failed ---@type string?

--- The log file.
---@return string
function M.path()
  path = path or vim.fs.joinpath(vim.fn.stdpath('log') --[[@as string]], 'mcp-tools.log')
  return path
end

---@return string?
function M.failure()
  return failed
end

--- A secret that must never stand in the log, whoever writes the line.
---@param secret string
function M.hide(secret)
  if #secret >= 8 then
    hidden[secret] = true
  end
end

---@param text string
---@return string
local function without_secrets(text)
  for secret in pairs(hidden) do
    text = text:gsub(vim.pesc(secret), '<hidden>')
  end
  return text
end

--- Least level that is written now.
---@return integer
local function threshold()
  local config = require('mcp-tools.config')
  return config.get('debug') and M.levels.debug or M.levels[config.get('bridge.log_level')] or M.levels.info
end

---@param err? string
local function finish(err)
  -- A log that cannot be written must not disturb the work; health shows the reason.
  failed = err
  writing = false
  if #queue > 0 then
    M._flush_soon()
  end
end

---@param fd integer
---@param text string
local function write_and_close(fd, text)
  uv.fs_write(fd, text, -1, function(write_err)
    uv.fs_close(fd, function(close_err)
      finish(write_err or close_err)
    end)
  end)
end

--- Appends `text`; rotates first when the file is full. Several editors write the same file: it is opened anew for
--- every batch, so nobody goes on writing to a file that another one has moved away.
---@param text string
local function append(text)
  local target = assert(path)
  uv.fs_stat(target, function(_, stat)
    local function open()
      uv.fs_open(target, 'a', OWNER_ONLY, function(err, fd)
        if not fd then
          return finish(err)
        end
        write_and_close(fd, text)
      end)
    end
    if stat and stat.size > 0 and stat.size + #text > MAX_BYTES then
      uv.fs_rename(target, target .. '.1', open)
    else
      open()
    end
  end)
end

local function flush()
  scheduled = false
  if writing or #queue == 0 then
    return
  end
  writing = true
  local text = table.concat(queue, '\n') .. '\n'
  queue = {}
  local folder = vim.fs.dirname(M.path())
  local made, err = true, nil
  if not uv.fs_stat(folder) then
    made, err = pcall(vim.fn.mkdir, folder, 'p', OWNER_ONLY_DIR)
  end
  if made then
    append(text)
  else
    finish(err)
  end
end

local leave_watched = false

--- What is still queued when the editor ends is written at once: a few lines, nothing else would run any more.
local function watch_leave()
  if leave_watched then
    return
  end
  leave_watched = true
  vim.api.nvim_create_autocmd('VimLeave', {
    group = vim.api.nvim_create_augroup('mcp-tools.log', {}),
    callback = function()
      if #queue == 0 then
        return
      end
      local fd = uv.fs_open(M.path(), 'a', OWNER_ONLY)
      if fd then
        uv.fs_write(fd, table.concat(queue, '\n') .. '\n', -1)
        uv.fs_close(fd)
      end
      queue = {}
    end,
  })
end

function M._flush_soon()
  if scheduled then
    return
  end
  scheduled = true
  vim.schedule(function()
    watch_leave()
    flush()
  end)
end

---@param level string
---@param format string
---@param ... any
local function write(level, format, ...)
  if M.levels[level] < threshold() then
    return
  end
  local text = select('#', ...) > 0 and format:format(...) or tostring(format)
  text = without_secrets(text):gsub('%s+$', ''):gsub('\n', '\n    ')
  local seconds, micros = uv.gettimeofday()
  local line = ('%s.%03d %-5s [%d] %s'):format(
    os.date('%Y-%m-%dT%H:%M:%S', seconds),
    math.floor((micros or 0) / 1000),
    level:upper(),
    uv.os_getpid(),
    text
  )
  table.insert(recent, line)
  if #recent > KEEP then
    table.remove(recent, 1)
  end
  table.insert(queue, line)
  M._flush_soon()
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
  local done = vim.schedule_wrap(cb)
  uv.fs_open(M.path(), 'r', 0, function(open_err, fd)
    if not fd then
      return done(nil, open_err)
    end
    uv.fs_fstat(fd, function(_, stat)
      local size = stat and stat.size or 0
      local offset = math.max(0, size - bytes)
      uv.fs_read(fd, bytes, offset, function(read_err, data)
        uv.fs_close(fd, function() end)
        if not data then
          return done(nil, read_err)
        end
        local lines = vim.split(data, '\n', { plain = true, trimempty = true })
        if offset > 0 and #lines > 1 then
          table.remove(lines, 1) -- the first one is cut
        end
        done(lines)
      end)
    end)
  end)
end

return M

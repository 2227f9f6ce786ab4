--- One process of the bridge.

local log = require('mcp-tools.log')

local uv = vim.uv

---@class mcp-tools.bridge.ProcessSpec
---@field command string[]
---@field env table<string, string|false> added to the editor's environment; false removes a variable
---@field stdin? string its complete input
---@field cwd? string
---@field start_timeout? integer maximum time in ms until the ready line
---@field stop_grace? integer time in ms between SIGTERM and SIGKILL

---@class mcp-tools.bridge.ProcessHandlers called on the main loop; errors are logged
---@field on_ready fun(process: mcp-tools.bridge.Process, port: integer)
---@field on_exit fun(process: mcp-tools.bridge.Process, fault: string?) fault nil: after `stop()`

---@class mcp-tools.bridge.Process
---@field pid integer
---@field state 'starting'|'ready'|'stopping'|'exited'
---@field port? integer
---@field last_problem? string the last warning or error on stderr
---@field started_at integer uv.hrtime()
---@field private _handlers mcp-tools.bridge.ProcessHandlers
---@field private _handle uv.uv_process_t
---@field private _stdin? uv.uv_pipe_t
---@field private _stdout uv.uv_pipe_t
---@field private _stderr uv.uv_pipe_t
---@field private _open_pipes integer
---@field private _timer? uv.uv_timer_t
---@field private _grace integer
---@field private _level? string of the last line on stderr
---@field private _fault? string
---@field private _exit? { code: integer, signal: integer }
local Process = {}
Process.__index = Process

local READY = '^MCP server listening on port (%d+)%s*$'
-- With a cold disk and a virus scanner, Python with aiohttp can take five seconds.
local START_TIMEOUT = 20000
local STOP_GRACE = 3000
-- Children of the process may keep the pipes open after its end; its last lines arrive within this time (ms).
local DRAIN = 500
-- A longer line is split, so that the process cannot fill the memory.
local MAX_LINE = 64 * 1024
local LEVELS = { DEBUG = 'debug', INFO = 'info', WARN = 'warn', WARNING = 'warn', ERROR = 'error', CRITICAL = 'error' }

local IS_WINDOWS = vim.fn.has('win32') == 1

---@param extra table<string, string|false>
---@return string[]
local function environment(extra)
  local env = uv.os_environ()
  for name, value in pairs(extra) do
    env[name] = value or nil
  end
  local list = {}
  for name, value in pairs(env) do
    table.insert(list, name .. '=' .. value)
  end
  return list
end

--- Returns a function that takes chunks, nil at the end, and calls `emit` for each line.
---@param emit fun(line: string)
---@return fun(chunk: string?)
local function line_reader(emit)
  local rest = ''
  return function(chunk)
    if not chunk then
      if rest ~= '' then
        emit(rest)
        rest = ''
      end
      return
    end
    rest = rest .. chunk
    local start = 1
    while true do
      local newline = rest:find('\n', start, true)
      if not newline then
        break
      end
      emit((rest:sub(start, newline - 1):gsub('\r$', '')))
      start = newline + 1
    end
    rest = rest:sub(start)
    if #rest > MAX_LINE then
      emit(rest)
      rest = ''
    end
  end
end

---@param handle? uv.uv_handle_t
local function close(handle)
  if handle and not handle:is_closing() then
    handle:close()
  end
end

--- Writes the complete input. Errors are ignored: the process may not read it, or has ended.
---@param pipe uv.uv_pipe_t
---@param text string
local function write_all(pipe, text)
  pipe:write(text, function()
    close(pipe)
  end)
end

--- Starts the process.
---@param spec mcp-tools.bridge.ProcessSpec
---@param handlers mcp-tools.bridge.ProcessHandlers
---@return mcp-tools.bridge.Process? process, string? err
function Process.spawn(spec, handlers)
  local self = setmetatable({
    state = 'starting',
    started_at = uv.hrtime(),
    _handlers = handlers,
    _grace = spec.stop_grace or STOP_GRACE,
    _open_pipes = 2,
  }, Process)
  self._stdout, self._stderr = assert(uv.new_pipe()), assert(uv.new_pipe())
  self._stdin = spec.stdin and assert(uv.new_pipe())
  local handle, pid = uv.spawn(spec.command[1], {
    args = vim.list_slice(spec.command, 2),
    env = environment(spec.env),
    cwd = spec.cwd,
    stdio = { self._stdin, self._stdout, self._stderr },
    -- Its own session: suspending the editor does not stop it, and the whole process group can be signalled.
    detached = not IS_WINDOWS,
    hide = true,
  }, function(code, signal)
    self:_exited(code, signal)
  end)
  if not handle then
    self:_close()
    return nil, ('cannot run %s: %s'):format(spec.command[1], pid)
  end
  self._handle, self.pid = handle, pid
  if self._stdin then
    write_all(self._stdin, spec.stdin)
  end
  self:_read(self._stdout, function(line)
    self:_stdout_line(line)
  end)
  self:_read(self._stderr, function(line)
    self:_stderr_line(line)
  end)
  local start_timeout = spec.start_timeout or START_TIMEOUT
  self:_after(start_timeout, function()
    if self.state == 'starting' then
      self._fault = ('the process was not ready within %g s'):format(start_timeout / 1000)
      self:_signal('sigkill')
    end
  end)
  return self
end

--- Closes all handles.
function Process:_close()
  for _, handle in pairs({ self._timer, self._stdin, self._stdout, self._stderr, self._handle }) do
    close(handle)
  end
end

--- Runs `fn` on the main loop; errors are only logged.
---@param fn function
---@param ... any
function Process:_emit(fn, ...)
  local args, n = { ... }, select('#', ...)
  vim.schedule(function()
    log.guard('a handler of the bridge process', fn, self, unpack(args, 1, n))
  end)
end

--- Starts a timer that replaces the previous one and ends with the process.
---@param ms integer
---@param fn fun()
function Process:_after(ms, fn)
  close(self._timer)
  self._timer = assert(uv.new_timer())
  self._timer:start(ms, 0, fn)
end

---@param pipe uv.uv_pipe_t
---@param on_line fun(line: string)
function Process:_read(pipe, on_line)
  local feed = line_reader(on_line)
  pipe:read_start(function(_, chunk)
    feed(chunk)
    if not chunk then
      close(pipe)
      self._open_pipes = self._open_pipes - 1
      self:_maybe_finish()
    end
  end)
end

---@param line string
function Process:_stdout_line(line)
  local port = tonumber(line:match(READY))
  if not port or self.state ~= 'starting' then
    log.debug('bridge stdout: %s', line)
    return
  end
  self.state, self.port = 'ready', port
  close(self._timer)
  self:_emit(self._handlers.on_ready, port)
end

---@param line string
function Process:_stderr_line(line)
  if line:find('^%s*$') then
    return
  end
  local word, rest = line:match('^(%u+)%s+(.*)$')
  local level = LEVELS[word]
  -- A line without a level continues the previous one, such as a traceback.
  log[level or self._level or 'warn']('bridge: %s', level and rest or line)
  self._level = level or self._level
  if self._level ~= 'info' and self._level ~= 'debug' then
    self.last_problem = level and rest or line
  end
end

---@param code integer
---@param signal integer
function Process:_exited(code, signal)
  self._exit = { code = code, signal = signal }
  close(self._handle)
  self:_after(DRAIN, function()
    self._open_pipes = 0
    self:_maybe_finish()
  end)
  self:_maybe_finish()
end

function Process:_maybe_finish()
  if not self._exit or self._open_pipes > 0 or self.state == 'exited' then
    return
  end
  local was_stopped = self.state == 'stopping'
  self.state = 'exited'
  self:_close()
  local fault = self._fault
  if not fault and not was_stopped then
    -- An exit with code 0 is a fault, too: another process stopped it, or it mistook a lost connection for an exit.
    local how = self._exit.signal ~= 0 and ('signal %d'):format(self._exit.signal)
      or ('code %d'):format(self._exit.code)
    fault = ('the process ended with %s%s'):format(how, self.last_problem and (': ' .. self.last_problem) or '')
  end
  self:_emit(self._handlers.on_exit, fault)
end

--- Signals the process group.
---@param signal string
function Process:_signal(signal)
  if self._exit then
    return
  end
  local ok = not IS_WINDOWS and uv.kill(-self.pid, signal) == 0
  if not ok then
    self._handle:kill(signal)
  end
end

--- Asks the process to end, and kills it after a delay. Does not block; `on_exit` follows.
function Process:stop()
  if self.state == 'stopping' or self.state == 'exited' then
    return
  end
  self.state = 'stopping'
  self:_signal('sigterm')
  if self._exit then
    return
  end
  self:_after(self._grace, function()
    log.warn('bridge: killed, as it was still running %g s after SIGTERM', self._grace / 1000)
    self:_signal('sigkill')
  end)
end

--- Signals the process and closes all handles, for the exit of the editor: an open handle or timer would delay that for
--- two seconds. Calls no handler afterwards.
function Process:abandon()
  if self.state == 'exited' then
    return
  end
  self:_signal('sigterm')
  self.state = 'exited'
  self:_close()
end

return Process

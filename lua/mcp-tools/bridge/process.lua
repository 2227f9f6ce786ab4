--- One process of the bridge.

local log = require('mcp-tools.log')
local strings = require('mcp-tools.util.strings')

local M = {}

---@class mcp-tools.bridge.ProcessSpec
---@field command string[]
---@field env table<string, string|false> added to the editor's environment; false removes a variable
---@field stdin string its complete input
---@field cwd string

---@class mcp-tools.bridge.ProcessHandlers
---@field on_ready fun(process: mcp-tools.bridge.Process, port: integer)
---@field on_exit fun(process: mcp-tools.bridge.Process, fault: string?) fault nil: after `stop()`

---@class mcp-tools.bridge.Process
---@field pid integer
---@field state 'starting'|'ready'|'stopping'|'exited'
---@field private handlers mcp-tools.bridge.ProcessHandlers
---@field private level? string of the last line on stderr
---@field private last_problem? string the last warning or error on stderr
---@field private fault? string
local Process = {}
Process.__index = Process

local READY = '^MCP server listening on port (%d+)%s*$'
--- Maximum time in ms until the ready line. With a cold disk and a virus scanner, Python with aiohttp can take five
--- seconds.
M.START_TIMEOUT = 20000
--- Time in ms between SIGTERM and SIGKILL.
M.STOP_GRACE = 3000
local MAX_LINE = 64 * 1024
local LEVELS = { DEBUG = 'debug', INFO = 'info', WARN = 'warn', WARNING = 'warn', ERROR = 'error', CRITICAL = 'error' }

--- Returns the environment of the process.
---@param changes table<string, string|false>
---@return table<string, string>
local function environment(changes)
  local env = vim.uv.os_environ()
  for name, value in pairs(changes) do
    env[name] = value or nil
  end
  env.NVIM = '' -- otherwise `jobstart` sets it to the address of this editor
  return env
end

--- Starts a process. The handlers are called on the main loop; errors in them are logged.
---@param spec mcp-tools.bridge.ProcessSpec
---@param handlers mcp-tools.bridge.ProcessHandlers
---@return mcp-tools.bridge.Process? process, string? err
function M.spawn(spec, handlers)
  local self = setmetatable({ state = 'starting', handlers = handlers }, Process)
  local function guarded(method)
    return function(...)
      log.guard('the bridge process', self[method], self, ...)
    end
  end
  if vim.fn.executable(spec.command[1]) == 0 then
    return nil, ('cannot run %s: it is not executable'):format(spec.command[1])
  end
  local ok, job = pcall(vim.fn.jobstart, spec.command, {
    clear_env = true,
    env = environment(spec.env),
    cwd = spec.cwd,
    detach = true, -- otherwise the exit of the editor would wait for its end
    on_stdout = strings.job_lines(MAX_LINE, guarded('on_stdout')),
    on_stderr = strings.job_lines(MAX_LINE, guarded('on_stderr')),
    on_exit = guarded('on_exit'),
  })
  if not ok or job <= 0 then
    return nil, ('cannot run %s: %s'):format(spec.command[1], tostring(job):match('[^\n]*'))
  end
  self.pid = vim.fn.jobpid(job)
  -- Errors are ignored: the process may not read its input, or has ended.
  pcall(vim.fn.chansend, job, spec.stdin)
  pcall(vim.fn.chanclose, job, 'stdin')
  vim.defer_fn(function()
    if self.state == 'starting' then
      self.fault = ('the process was not ready within %g s'):format(M.START_TIMEOUT / 1000)
      self:signal('sigkill')
    end
  end, M.START_TIMEOUT)
  return self
end

---@param line string
function Process:on_stdout(line)
  local port = tonumber(line:match(READY))
  if not port or self.state ~= 'starting' then
    return log.debug('bridge stdout: %s', line)
  end
  self.state = 'ready'
  self.handlers.on_ready(self, port)
end

---@param line string
function Process:on_stderr(line)
  local word, rest = line:match('^(%u+)%s+(.*)$')
  local level = LEVELS[word]
  -- A line without a level continues the previous one, such as a traceback.
  log[level or self.level or 'warn']('bridge: %s', level and rest or line)
  self.level = level or self.level
  if self.level ~= 'info' and self.level ~= 'debug' then
    self.last_problem = level and rest or line
  end
end

---@param code integer exit code; after a signal, 128 and the signal's number
function Process:on_exit(_, code)
  local fault = self.fault
  if not fault and self.state ~= 'stopping' then
    -- An exit with code 0 is a fault, too: another process stopped it, or it lost the connection to the editor.
    local how = code > 128 and ('signal %d'):format(code - 128) or ('code %d'):format(code)
    fault = ('the process ended with %s%s'):format(how, self.last_problem and (': ' .. self.last_problem) or '')
  end
  self.state = 'exited'
  self.handlers.on_exit(self, fault)
end

--- Signals the process group.
---@param signal string
function Process:signal(signal)
  vim.uv.kill(-self.pid, signal)
end

--- Asks the process to end, and kills it after a delay. Does not block; `on_exit` follows.
function Process:stop()
  if self.state == 'stopping' or self.state == 'exited' then
    return
  end
  self.state = 'stopping'
  self:signal('sigterm')
  vim.defer_fn(function()
    if self.state ~= 'exited' then
      log.warn('bridge: killed, as it was still running %g s after SIGTERM', M.STOP_GRACE / 1000)
      self:signal('sigkill')
    end
  end, M.STOP_GRACE)
end

return M

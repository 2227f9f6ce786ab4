--- One worker process for Python tools, with its calls.
---
--- A retired process gets no new calls and ends after its last one: a changed file does not interrupt running calls,
--- and a function that ignores its cancellation ends with its process.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local process = require('mcp-tools.editor.process')
local remote = require('mcp-tools.calls.remote')
local command = require('mcp-tools.python_worker.command')

local uv = vim.uv

local M = {}

--- Time in ms for a cancelled function to stop; after that its process gets no more calls.
M.GRACE = 5000
--- Maximum time in ms until a process is ready: with a cold disk the start takes seconds.
local START_TIMEOUT = 20000
--- Number of stderr lines that are stored for the error message.
local LAST_LINES = 20
--- Maximum bytes of a logged line, and lines per second: endless output of a tool must not block the main thread.
local MAX_LINE, MAX_LINES = 8192, 200

--- What the owner of a process handles.
---@class mcp-tools.python_worker.ProcessEvents
---@field left fun(process: mcp-tools.python_worker.Process) it gets no more calls
---@field gone fun(process: mcp-tools.python_worker.Process) it has ended
---@field failed fun(process: mcp-tools.python_worker.Process, why: string, crashed: boolean) it ended unexpectedly

---@class mcp-tools.python_worker.Process : mcp-tools.RemoteTarget
---@field state 'finding'|'starting'|'ready'|'retired'|'gone'
---@field job integer?
---@field pid integer?
---@field method string? pynvim's name of the remote plugin's function
---@field queue any[][]? events for a process that has not started
---@field info table? what the process reports about itself
---@field started_at integer ns
---@field ready_at integer? ns
---@field last_lines string[] last lines of stderr
---@field events mcp-tools.python_worker.ProcessEvents
local Process = {}
Process.__index = Process

--- Makes a process that is not started yet; events for it are queued.
---@param events mcp-tools.python_worker.ProcessEvents
---@return mcp-tools.python_worker.Process
function M.new(events)
  local self = remote.target({
    state = 'finding',
    queue = {},
    last_lines = { '' },
    started_at = uv.hrtime(),
    events = events,
  })
  return setmetatable(self, Process) --[[@as mcp-tools.python_worker.Process]]
end

--- Ends the process and its children.
function Process:stop()
  if not self.job then
    return self:fail('the Python worker was stopped')
  end
  self:signal('sigterm')
  pcall(vim.fn.jobstop, self.job) -- raises an error if the process has just ended; `exited` follows
end

--- Signals the process group, which may not exist if the process has just started.
---@param name string
function Process:signal(name)
  if self.pid and vim.fn.has('win32') == 0 then
    uv.kill(-self.pid, name)
  end
end

--- Ends the calls; the process is no longer used.
---@param message string
function Process:fail(message)
  if self.state == 'gone' then
    return
  end
  self.state, self.queue = 'gone', nil
  self.events.gone(self)
  remote.lost(self, errors.new('execution_error', message))
end

--- Gives the process no more calls, and ends it after its last one. One that has not started is up to date.
function Process:retire()
  if self.state ~= 'gone' and self.state ~= 'finding' then
    self.state = 'retired'
    self.events.left(self)
    self:settled()
  end
end

--- Handles the end of a call.
function Process:settled()
  if self.state == 'retired' and next(self.calls) == nil then
    self:stop()
  elseif next(self.stopping) and not self.waits_for_stop then
    self:watch_stopping()
  end
end

--- Retires the process if a cancelled function has not stopped in time.
function Process:watch_stopping()
  local asked = vim.tbl_keys(self.stopping)
  self.waits_for_stop = true
  vim.defer_fn(function()
    self.waits_for_stop = nil
    for _, id in ipairs(asked) do
      if self.stopping[id] and self.state ~= 'gone' then
        local text = '%s is still running %g s after it was cancelled: the Python worker is replaced'
        log.warn(text, self.stopping[id], M.GRACE / 1000)
        return self:retire()
      end
    end
    if next(self.stopping) and self.state ~= 'gone' then
      self:watch_stopping()
    end
  end, M.GRACE)
end

--- Logs a line of stderr, unless there are too many.
---@param line string
function Process:log_line(line)
  if not line:find('%S') or self.state == 'gone' then
    return
  end
  local second = math.floor(uv.hrtime() / 1e9)
  if second ~= self.second then
    if (self.logged or 0) > MAX_LINES then
      log.info('python: (%d lines omitted)', self.logged - MAX_LINES)
    end
    self.second, self.logged = second, 0
  end
  self.logged = self.logged + 1
  if self.logged <= MAX_LINES then
    log.info('python: %s', line)
  end
end

--- Handles output on stderr.
---@param lines string[] as for `on_stderr`
function Process:on_stderr(lines)
  local last_lines = self.last_lines
  last_lines[#last_lines] = (last_lines[#last_lines] .. lines[1]):sub(1, MAX_LINE)
  for i = 2, #lines do
    self:log_line(last_lines[#last_lines])
    table.insert(last_lines, lines[i])
    if #last_lines > LAST_LINES then
      table.remove(last_lines, 1)
    end
  end
end

--- Returns the last line of stderr with text, for the error message.
---@return string?
function Process:last_line()
  for i = #self.last_lines, 1, -1 do
    if self.last_lines[i]:find('%S') then
      return self.last_lines[i]
    end
  end
end

---@param code integer
function Process:exited(code)
  self:signal('sigkill') -- its children must not outlive it
  if self.state ~= 'starting' and self.state ~= 'ready' then
    return self:fail('the Python worker was stopped')
  end
  local how = code > 128 and ('signal %d'):format(code - 128) or ('code %d'):format(code)
  local line = self.state == 'starting' and self:last_line() -- later lines are output of tools
  local why = ('the process ended with %s%s'):format(how, line and (': ' .. line) or '')
  self.events.failed(self, why, true)
  self:fail('the Python worker ended while the tool was running: ' .. why)
end

--- Handles that the process cannot be started.
---@param why string
function Process:cannot_start(why)
  self.events.failed(self, why, false)
  self:fail('the Python worker cannot be started: ' .. why)
end

--- Starts the process.
---@param python string
function Process:spawn(python)
  local env = process.environment() -- the processes that tools start inherit it, too
  env.MCP_TOOLS_EDITOR = vim.v.servername -- for call_tool; the worker removes it from the environment of children
  local function guarded(method)
    return function(_, arg)
      log.guard('the Python worker: ' .. method, self[method], self, arg)
    end
  end
  local ok, job = pcall(vim.fn.jobstart, command.worker_command(python), {
    rpc = true,
    clear_env = true,
    env = env,
    on_stderr = guarded('on_stderr'),
    on_exit = guarded('exited'),
  })
  if not ok or job <= 0 then
    return self:cannot_start(("'%s' cannot be run: %s"):format(python, tostring(job):match('[^\n]*')))
  end
  self.job, self.pid, self.state = job, vim.fn.jobpid(job), 'starting'
  self.method = command.plugin() .. ':function:McpToolsHost'
  local queue = self.queue or {}
  self.queue = nil
  for _, event in ipairs(queue) do
    self:send(unpack(event, 1, event.n))
  end
  vim.defer_fn(function()
    if self.state == 'starting' then
      table.insert(self.last_lines, ('the process was not ready within %g s'):format(START_TIMEOUT / 1000))
      self:stop()
    end
  end, START_TIMEOUT)
end

--- Sends an event, or queues it until the process has started.
---@param ... any
function Process:send(...)
  if self.state == 'finding' then
    table.insert(self.queue, vim.F.pack_len(...))
  elseif self.job and self.state ~= 'gone' then
    local event = { ... }
    for i = 1, select('#', ...) do
      event[i] = event[i] == nil and vim.NIL or event[i]
    end
    -- A closed channel raises an error; `exited` then ends the calls.
    pcall(vim.rpcnotify, self.job, self.method, event)
  end
end

--- Handles that the process is ready.
---@param info { pid: integer, python: string, pynvim: string }
function Process:on_ready(info)
  self.info, self.ready_at = info, uv.hrtime()
  if self.state == 'starting' then
    self.state = 'ready'
  end
end

return M

--- Runs Python tools in a worker process, which starts with the first call and is replaced when necessary.
---
--- A retired process gets no new calls and ends after its last one: a changed file does not interrupt running calls,
--- and a function that ignores its cancellation ends with its process.

local errors = require('mcp-tools.errors')
local global_state = require('mcp-tools.util.global_state')
local interpreter = require('mcp-tools.bridge.interpreter')
local log = require('mcp-tools.log')
local paths = require('mcp-tools.files.paths')
local process = require('mcp-tools.editor.process')
local project = require('mcp-tools.instances.project')
local remote = require('mcp-tools.calls.remote')
local source = require('mcp-tools.registry.source')
local strings = require('mcp-tools.util.strings')

local uv = vim.uv

local M = {}

--- Lifetime in ns after which a crash does not count as a repeated one.
local STABLE = 60 * 1e9
--- Delay in ms before the next start, by the number of crashes in a row.
local BACK_OFF = { 0, 1000, 2000, 4000, 8000, 16000, 30000 }

---@type mcp-tools.python_worker.Process?
local current
---@type table<mcp-tools.python_worker.Process, true> all processes that have not ended
local alive = {}
local crashes, not_before, last_error = 0, 0, nil
local watching = false

-- Commands ------------------------------------------------------------------------------------------------------------

--- Returns where modules are found besides Python's defaults: `python3/` on the runtimepath, never inside the project.
---@return string[]
local function import_paths()
  local root, list = paths.real_root(project.root()), {}
  for _, dir in ipairs(vim.api.nvim_list_runtime_paths()) do
    for _, name in ipairs({ 'python3', 'pythonx' }) do -- as Vim defines them
      local path = vim.fs.joinpath(dir, name)
      if dir:match('^/') and uv.fs_stat(path) and not source.is_project_file(path, root) then
        list[#list + 1] = path
      end
    end
  end
  return list
end

--- Returns the file of the remote plugin.
---@return string
local function plugin()
  return vim.fs.joinpath(project.plugin_dir(), 'rplugin', 'python3', 'nvim_mcp_host.py')
end

--- Returns the command that runs the function `main` of a module. `-I` ignores Python variables of the user's
--- environment and the working directory: the project provides no modules.
---@param python string
---@param module string
---@param ... string its arguments
---@return string[]
local function command_of(python, module, ...)
  return { python, '-I', project.python_package(), module, ... }
end

--- Returns the command of the process that reads modules.
---@param python string
---@param sources table[]
---@return string[]
function M.scan_command(python, sources)
  local wanted = vim.json.encode({ sources = sources, import_paths = import_paths() })
  return command_of(python, 'python_tools.scan.main', wanted)
end

-- One process ---------------------------------------------------------------------------------------------------------

--- Time in ms for a cancelled function to stop; after that its process gets no more calls.
M.GRACE = 5000
--- Maximum time in ms until a process is ready: with a cold disk the start takes seconds.
local START_TIMEOUT = 20000
--- Maximum bytes of a logged line, and lines per second: endless output of a tool must not block the main thread.
local MAX_LINE, MAX_LINES = 8192, 200

---@class mcp-tools.python_worker.Process : mcp-tools.RemoteTarget
---@field state 'finding'|'starting'|'ready'|'retired'|'gone'
---@field job integer?
---@field pid integer?
---@field method string? pynvim's name of the remote plugin's function
---@field queue any[][]? events for a process that has not started
---@field info table? what the process reports about itself
---@field started_at integer ns
---@field ready_at integer? ns
---@field last_line string? the last line of stderr with text
local Process = {}
Process.__index = Process

--- Makes a process that is not started yet; events for it are queued.
---@return mcp-tools.python_worker.Process
local function new_process()
  local self = remote.target({ state = 'finding', queue = {}, started_at = uv.hrtime() })
  return setmetatable(self, Process) --[[@as mcp-tools.python_worker.Process]]
end

--- Stops sending new calls to the process.
function Process:release()
  current = current ~= self and current or nil
end

--- Handles that the process ended unexpectedly.
---@param why string
---@param crashed boolean
function Process:failed(why, crashed)
  last_error = why
  log.warn('the Python worker: %s', why)
  if crashed then
    local now = uv.hrtime()
    crashes = now - self.started_at > STABLE and 1 or crashes + 1
    not_before = now + BACK_OFF[math.min(crashes, #BACK_OFF)] * 1e6 --[[@as integer]]
  end
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
  if self.pid then
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
  alive[self] = nil
  self:release()
  remote.lost(self, errors.new('execution_error', message))
end

--- Stops sending new calls to the process, and ends it after its last one. A process that has not started is up to
--- date and stays.
function Process:retire()
  if self.state ~= 'gone' and self.state ~= 'finding' then
    self.state = 'retired'
    self:release()
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
function Process:on_stderr(line)
  self.last_line = line
  if self.state == 'gone' then
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

---@param code integer
function Process:exited(_, code)
  self:signal('sigkill') -- its children must not outlive it
  if self.state ~= 'starting' and self.state ~= 'ready' then
    return self:fail('the Python worker was stopped')
  end
  local how = code > 128 and ('signal %d'):format(code - 128) or ('code %d'):format(code)
  local line = self.state == 'starting' and self.last_line -- later lines are output of tools
  local why = ('the process ended with %s%s'):format(how, line and (': ' .. line) or '')
  self:failed(why, true)
  self:fail('the Python worker ended while the tool was running: ' .. why)
end

--- Handles that the process cannot be started.
---@param why string
function Process:cannot_start(why)
  self:failed(why, false)
  self:fail('the Python worker cannot be started: ' .. why)
end

--- Starts the process.
---@param python string
function Process:spawn(python)
  if vim.v.exiting ~= vim.NIL then -- Neovim waits for a job that starts after VimLeavePre
    return self:cannot_start('Neovim is exiting')
  end
  local env = process.environment() -- the processes that tools start inherit it, too
  env.MCP_TOOLS_EDITOR = vim.v.servername -- for call_tool; the worker removes it from the environment of children
  local function guarded(method)
    return function(...)
      log.guard('the Python worker: ' .. method, self[method], self, ...)
    end
  end
  local ok, job =
    pcall(vim.fn.jobstart, vim.list_extend(command_of(python, 'python_tools.worker.serve', plugin()), import_paths()), {
      rpc = true,
      clear_env = true,
      env = env,
      on_stderr = strings.job_lines(MAX_LINE, guarded('on_stderr')),
      on_exit = guarded('exited'),
    })
  if not ok or job <= 0 then
    return self:cannot_start(("'%s' cannot be run: %s"):format(python, tostring(job):match('[^\n]*')))
  end
  self.job, self.pid, self.state = job, vim.fn.jobpid(job), 'starting'
  self.method = plugin() .. ':function:McpToolsHost'
  local queue = self.queue or {}
  self.queue = nil
  for _, event in ipairs(queue) do
    self:send(unpack(event, 1, event.n))
  end
  vim.defer_fn(function()
    if self.state == 'starting' then
      self.last_line = ('the process was not ready within %g s'):format(START_TIMEOUT / 1000)
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

-- All processes -------------------------------------------------------------------------------------------------------

--- Ends all processes and their calls.
---@param why string
local function end_all(why)
  for _, each in ipairs(vim.tbl_keys(alive)) do
    each:fail(why)
    if each.job then
      each:stop()
    end
  end
end

if global_state.python_worker then
  global_state.python_worker()
end
global_state.python_worker = function()
  end_all('the plugin was reloaded')
end

local function watch_exit()
  if watching then
    return
  end
  watching = true
  vim.api.nvim_create_autocmd('VimLeavePre', {
    group = vim.api.nvim_create_augroup('mcp-tools.python_worker', {}),
    callback = function()
      end_all('the editor exits')
    end,
  })
end

---@return mcp-tools.python_worker.Process
local function start()
  local made = new_process()
  current, alive[made] = made, true
  watch_exit()
  interpreter.resolve_python(function(runtime, fault)
    if made.state ~= 'finding' then
      return -- ended since
    elseif runtime then
      made:spawn(runtime.python)
    else
      made:cannot_start(('%s. %s'):format(fault.message, fault.advice))
    end
  end)
  return made
end

--- Runs a tool. The call ends with the tool's result, an error, or a cancellation.
---@param ctx mcp-tools.Ctx
---@param tool { key: string, name: string, source: table }
---@param args table
function M.call(ctx, tool, args)
  local wait = not_before - uv.hrtime()
  if not current and wait > 0 then
    local text = 'the Python worker has crashed %d times in a row (%s); the next start is possible in %.0f s'
    return ctx(nil, errors.new('busy', text:format(crashes, last_error, math.ceil(wait / 1e9))))
  end
  local target = current or start()
  if target.state == 'gone' then
    return ctx(nil, errors.new('execution_error', 'the Python worker cannot be started: ' .. last_error))
  end
  remote.call(target, ctx, tool, args, ctx.call.max_result)
end

--- Handles the process's report that it is ready.
---@param channel integer
---@param info { pid: integer, python: string, pynvim: string }
function M.ready(channel, info)
  for each in pairs(alive) do
    if each.job == channel then
      each:on_ready(info)
    end
  end
end

--- Sends new calls to a new process; running calls stay in theirs.
function M.renew()
  if current then
    current:retire()
  end
end

--- Ends all processes and forgets earlier crashes, on request of the user.
function M.restart()
  crashes, not_before, last_error = 0, 0, nil
  end_all('the Python worker was restarted')
end

---@class mcp-tools.python_worker.WorkerStatus
---@field state 'none'|'finding'|'starting'|'ready'|'retired'|'gone'
---@field pid integer?
---@field python string?
---@field pynvim string?
---@field start_ms number? from the first call until the process was ready
---@field calls integer
---@field crashes integer consecutive ones
---@field last_error string?

--- Returns the state for health.
---@return mcp-tools.python_worker.WorkerStatus
function M.status()
  local info = current and current.info or {}
  return {
    state = current and current.state or 'none',
    pid = info.pid,
    python = info.python,
    pynvim = info.pynvim,
    start_ms = current and current.ready_at and (current.ready_at - current.started_at) / 1e6 or nil,
    calls = current and vim.tbl_count(current.calls) or 0,
    crashes = crashes,
    last_error = last_error,
  }
end

return M

--- One process that runs tools written in Python, with its calls.
---
--- One that is retired gets no new calls, and is ended when it has none left: so calls are not torn down when a file
--- has changed, and functions that do not stop when they are told to end with their process.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local process = require('mcp-tools.editor.process')
local remote = require('mcp-tools.calls.remote')
local command = require('mcp-tools.python_worker.command')

local uv = vim.uv

local M = {}

--- ms for a function to stop after it was told to; then its process takes no more calls.
M.GRACE = 5000
--- ms until a process must have said that it is there: a cold disk takes seconds.
local START_TIMEOUT = 20000
--- Lines of stderr that are kept for the error message.
local LAST_LINES = 20
--- Bytes of a line, and lines per second, that go to the log: a tool that prints for ever must not hold up the editor.
local MAX_LINE, MAX_LINES = 8192, 200

--- What host.lua hears.
---@class mcp-tools.python_worker.ProcessEvents
---@field left fun(process: mcp-tools.python_worker.Process) it takes no more calls
---@field gone fun(process: mcp-tools.python_worker.Process) it is no more
---@field failed fun(process: mcp-tools.python_worker.Process, why: string, crashed: boolean) nobody had told it to end

---@class mcp-tools.python_worker.Process : mcp-tools.RemoteTarget
---@field state 'finding'|'starting'|'ready'|'retired'|'gone'
---@field job integer?
---@field pid integer?
---@field method string? what pynvim calls the function of the remote plugin
---@field queue any[][]? events before there is a process
---@field info table? what the process says of itself
---@field started_at integer ns
---@field ready_at integer? ns
---@field words string[] last lines of stderr
---@field events mcp-tools.python_worker.ProcessEvents
local Process = {}
Process.__index = Process

--- A process that is yet to be started; what is sent to it waits.
---@param events mcp-tools.python_worker.ProcessEvents
---@return mcp-tools.python_worker.Process
function M.new(events)
  local self = remote.target({
    state = 'finding',
    queue = {},
    words = { '' },
    started_at = uv.hrtime(),
    events = events,
  })
  return setmetatable(self, Process) --[[@as mcp-tools.python_worker.Process]]
end

--- Ends the process with what it has started.
function Process:stop()
  if not self.job then
    return self:fail('the Python host was ended')
  end
  self:signal('sigterm')
  pcall(vim.fn.jobstop, self.job) -- it throws when the process has ended just now, which `exited` is about to tell
end

--- Reaches the process and all that it has started: its group. There is none when it had no time to make one.
---@param name string
function Process:signal(name)
  if self.pid and vim.fn.has('win32') == 0 then
    uv.kill(-self.pid, name)
  end
end

--- Its calls end, and it is no more.
---@param message string
function Process:fail(message)
  if self.state == 'gone' then
    return
  end
  self.state, self.queue = 'gone', nil
  self.events.gone(self)
  remote.lost(self, errors.new('execution_error', message))
end

--- Takes no more calls, and ends when it has none. Before there is a process nothing has to be renewed.
function Process:retire()
  if self.state ~= 'gone' and self.state ~= 'finding' then
    self.state = 'retired'
    self.events.left(self)
    self:settled()
  end
end

--- A call has left.
function Process:settled()
  if self.state == 'retired' and next(self.calls) == nil then
    self:stop()
  elseif next(self.stopping) and not self.patience then
    self:watch_stopping()
  end
end

--- Retires the process when what was told to stop has not stopped in time.
function Process:watch_stopping()
  local asked = vim.tbl_keys(self.stopping)
  self.patience = true
  vim.defer_fn(function()
    self.patience = nil
    for _, id in ipairs(asked) do
      if self.stopping[id] and self.state ~= 'gone' then
        local text = '%s goes on %g s after it was told to stop: the Python host is replaced'
        log.warn(text, self.stopping[id], M.GRACE / 1000)
        return self:retire()
      end
    end
    if next(self.stopping) and self.state ~= 'gone' then
      self:watch_stopping()
    end
  end, M.GRACE)
end

--- Puts a line that the process has printed into the log, unless there were too many.
---@param line string
function Process:note(line)
  if not line:find('%S') or self.state == 'gone' then
    return
  end
  local second = math.floor(uv.hrtime() / 1e9)
  if second ~= self.second then
    if (self.noted or 0) > MAX_LINES then
      log.info('python: (%d lines left out)', self.noted - MAX_LINES)
    end
    self.second, self.noted = second, 0
  end
  self.noted = self.noted + 1
  if self.noted <= MAX_LINES then
    log.info('python: %s', line)
  end
end

---@param lines string[]
function Process:hear(lines)
  local words = self.words
  words[#words] = (words[#words] .. lines[1]):sub(1, MAX_LINE)
  for i = 2, #lines do
    self:note(words[#words])
    table.insert(words, lines[i])
    if #words > LAST_LINES then
      table.remove(words, 1)
    end
  end
end

--- What it said last, for the error message.
---@return string?
function Process:last_word()
  for i = #self.words, 1, -1 do
    if self.words[i]:find('%S') then
      return self.words[i]
    end
  end
end

---@param code integer
function Process:exited(code)
  self:signal('sigkill') -- what it has started does not outlive it, however it ended
  if self.state ~= 'starting' and self.state ~= 'ready' then
    return self:fail('the Python host was ended')
  end
  local how = code > 128 and ('signal %d'):format(code - 128) or ('code %d'):format(code)
  local word = self.state == 'starting' and self:last_word() -- later ones are the tools' own
  local why = ('it ended with %s%s'):format(how, word and (': ' .. word) or '')
  self.events.failed(self, why, true)
  self:fail('the Python host ended while the tool ran: ' .. why)
end

--- There will be no process.
---@param why string
function Process:cannot_start(why)
  self.events.failed(self, why, false)
  self:fail('the Python host cannot be started: ' .. why)
end

--- Starts the process.
---@param python string
function Process:spawn(python)
  local env = process.environment() -- of programs that tools start, too
  env.MCP_TOOLS_EDITOR = vim.v.servername -- for call_tool; the host takes it out of what tools hand on
  local function guarded(method)
    return function(_, arg)
      log.guard('the Python host: ' .. method, self[method], self, arg)
    end
  end
  local ok, job = pcall(vim.fn.jobstart, command.host_command(python), {
    rpc = true,
    clear_env = true,
    env = env,
    on_stderr = guarded('hear'),
    on_exit = guarded('exited'),
  })
  if not ok or job <= 0 then
    return self:cannot_start(('%s cannot be run: %s'):format(python, tostring(job):match('[^\n]*')))
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
      table.insert(self.words, ('it was not ready within %g s'):format(START_TIMEOUT / 1000))
      self:stop()
    end
  end, START_TIMEOUT)
end

--- Sends an event; before there is a process it waits for it.
---@param ... any
function Process:send(...)
  if self.state == 'finding' then
    table.insert(self.queue, vim.F.pack_len(...))
  elseif self.job and self.state ~= 'gone' then
    local event = { ... }
    for i = 1, select('#', ...) do
      event[i] = event[i] == nil and vim.NIL or event[i]
    end
    -- A closed channel throws; `exited` is about to end the calls.
    pcall(vim.rpcnotify, self.job, self.method, event)
  end
end

--- It is there.
---@param info { pid: integer, python: string, pynvim: string }
function Process:arrived(info)
  self.info, self.ready_at = info, uv.hrtime()
  if self.state == 'starting' then
    self.state = 'ready'
  end
end

return M

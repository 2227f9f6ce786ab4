--- Runs Python tools in a worker process, which starts with the first call and is replaced when necessary.

local Process = require('mcp-tools.python_worker.process')
local errors = require('mcp-tools.errors')
local global_state = require('mcp-tools.util.global_state')
local log = require('mcp-tools.log')
local remote = require('mcp-tools.calls.remote')
local command = require('mcp-tools.python_worker.command')

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

---@type mcp-tools.python_worker.ProcessEvents
local events = {
  left = function(process)
    current = current ~= process and current or nil
  end,
  gone = function(process)
    alive[process] = nil
    current = current ~= process and current or nil
  end,
  failed = function(process, why, crashed)
    last_error = why
    log.warn('the Python worker: %s', why)
    if crashed then
      local now = uv.hrtime()
      crashes = now - process.started_at > STABLE and 1 or crashes + 1
      not_before = now + BACK_OFF[math.min(crashes, #BACK_OFF)] * 1e6 --[[@as integer]]
    end
  end,
}

--- Ends all processes and their calls.
---@param why string
local function end_all(why)
  for _, process in ipairs(vim.tbl_keys(alive)) do
    process:fail(why)
    if process.job then
      process:stop()
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
  local process = Process.new(events)
  current, alive[process] = process, true
  watch_exit()
  command.resolve(function(python, fault)
    if process.state ~= 'finding' then
      return -- ended since
    elseif python then
      process:spawn(python)
    else
      process:cannot_start(('%s. %s'):format(fault.message, fault.advice))
    end
  end)
  return process
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
  local process = current or start()
  if process.state == 'gone' then
    return ctx(nil, errors.new('execution_error', 'the Python worker cannot be started: ' .. last_error))
  end
  remote.call(process, ctx, tool, args, ctx.call.max_result)
end

--- Handles the process's report that it is ready.
---@param channel integer
---@param info { pid: integer, python: string, pynvim: string }
function M.ready(channel, info)
  for process in pairs(alive) do
    if process.job == channel then
      process:on_ready(info)
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

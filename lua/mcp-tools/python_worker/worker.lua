--- The host of tools written in Python: started with the first call, replaced when it must be.

local Process = require('mcp-tools.python_worker.process')
local errors = require('mcp-tools.errors')
local global_state = require('mcp-tools.util.global_state')
local log = require('mcp-tools.log')
local remote = require('mcp-tools.calls.remote')
local command = require('mcp-tools.python_worker.command')

local uv = vim.uv

local M = {}

--- A process that lived for so long before it crashed is no sign that the next will crash, too. ns
local STEADY = 60 * 1e9
--- ms before the process is started again, after so many crashes in a row.
local BACK_OFF = { 0, 1000, 2000, 4000, 8000, 16000, 30000 }

---@type mcp-tools.python_worker.Process?
local current
---@type table<mcp-tools.python_worker.Process, true> all that are not gone
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
    log.warn('the Python host: %s', why)
    if crashed then
      local now = uv.hrtime()
      crashes = now - process.started_at > STEADY and 1 or crashes + 1
      not_before = now + BACK_OFF[math.min(crashes, #BACK_OFF)] * 1e6
    end
  end,
}

--- Ends every process. Their calls end now.
---@param why string
local function end_all(why)
  for _, process in ipairs(vim.tbl_keys(alive)) do
    process:fail(why)
    if process.job then
      process:stop()
    end
  end
end

if global_state.python_host then
  global_state.python_host()
end
global_state.python_host = function()
  end_all('the plugin was loaded again')
end

local function watch_leave()
  if watching then
    return
  end
  watching = true
  vim.api.nvim_create_autocmd('VimLeavePre', {
    group = vim.api.nvim_create_augroup('mcp-tools.python_worker', {}),
    callback = function()
      end_all('the editor ended')
    end,
  })
end

---@return mcp-tools.python_worker.Process
local function start()
  local process = Process.new(events)
  current, alive[process] = process, true
  watch_leave()
  command.resolve(function(python, fault)
    if process.state ~= 'finding' then
      return -- ended meanwhile
    elseif python then
      process:spawn(python)
    else
      process:cannot_start(('%s. %s'):format(fault.message, fault.advice))
    end
  end)
  return process
end

--- Runs a tool. The call ends with its result, an error, or by itself.
---@param ctx mcp-tools.Ctx
---@param tool { key: string, name: string, source: table }
---@param args table
function M.call(ctx, tool, args)
  local wait = not_before - uv.hrtime()
  if not current and wait > 0 then
    local text = 'the Python host has crashed %d times in a row (%s); it is started again in %.0f s at the earliest'
    return ctx(nil, errors.new('busy', text:format(crashes, last_error, math.ceil(wait / 1e9))))
  end
  local process = current or start()
  if process.state == 'gone' then
    return ctx(nil, errors.new('execution_error', 'the Python host cannot be started: ' .. last_error))
  end
  remote.call(process, ctx, tool, args, ctx.call.max_result)
end

--- The process is there (it says so itself).
---@param channel integer
---@param info { pid: integer, python: string, pynvim: string }
function M.ready(channel, info)
  for process in pairs(alive) do
    if process.job == channel then
      process:arrived(info)
    end
  end
end

--- From now on calls go to a new process; those that run stay where they are.
function M.renew()
  if current then
    current:retire()
  end
end

--- The person wants a new process: what runs ends, and what crashes are known of is forgotten.
function M.restart()
  crashes, not_before, last_error = 0, 0, nil
  end_all('the Python host was restarted')
end

---@class mcp-tools.python_worker.HostStatus
---@field state 'none'|'finding'|'starting'|'ready'
---@field pid integer?
---@field python string?
---@field pynvim string?
---@field start_ms number? from the first call until it was there
---@field calls integer
---@field crashes integer in a row
---@field last_error string?

--- What health shows.
---@return mcp-tools.python_worker.HostStatus
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

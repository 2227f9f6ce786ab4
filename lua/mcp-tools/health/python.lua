--- Checks tools written in Python.

local config = require('mcp-tools.config')
local worker = require('mcp-tools.python_worker.worker')
local interpreter = require('mcp-tools.bridge.interpreter')
local python = require('mcp-tools.loading.python')

local health = vim.health

local M = {}

--- Returns what is wrong with the Python environment, as far as that is known without running it.
---@return mcp-tools.bridge.PythonFault?
local function fault_of()
  return config.get('bridge.python') == nil and interpreter.environment_fault() or nil
end

---@return string
local function executable()
  return config.get('bridge.python') or interpreter.interpreter(interpreter.environment_dir())
end

---@type table<string, fun(status: mcp-tools.python_worker.WorkerStatus)>
local STATES = {
  none = function()
    health.info('the worker is not running; the first call of a tool starts it')
  end,
  finding = function()
    health.info('the worker is about to start')
  end,
  starting = function()
    health.info('the worker is starting')
  end,
  ready = function(status)
    local text = 'the worker is running: process %d, Python %s, pynvim %s, started in %.0f ms, calls: %d'
    health.ok(text:format(status.pid, status.python, status.pynvim, status.start_ms or 0, status.calls))
  end,
}

--- Returns how to fix a worker that did not start.
---@param why string
---@return string
local function advice(why)
  local module = why:match("No module named '([%w_.]+)'")
  if module and config.get('bridge.python') == nil then
    return 'Run :McpTools install'
  elseif module == 'pynvim' then
    return ('Install it: %s -m pip install "pynvim>=0.6,<0.7"'):format(executable())
  end
  return 'See :McpTools log; :McpTools restart restarts the worker'
end

function M.check()
  local status = worker.status()
  local modules = python.found()
  local tools = 0
  for _, module in ipairs(modules) do
    tools = tools + #module.tools
  end
  if #modules == 0 then
    health.info('no modules: `python.modules` is empty, and no directory `mcp_tools/` on the runtimepath has one')
  else
    health.info(('modules: %d, tools: %d'):format(#modules, tools))
  end
  local fault = fault_of()
  if fault then
    health[#modules > 0 and 'error' or 'info'](('tools cannot run: %s'):format(fault.message), fault.advice)
  else
    health.info('tools run with ' .. executable())
    local missing = interpreter.packages_fault()
    if missing then
      health.warn(missing.message, missing.advice)
    end
  end
  STATES[status.state](status)
  if status.last_error then
    local what = status.crashes > 0 and ('the worker has crashed %d times in a row'):format(status.crashes)
      or 'the worker did not start'
    health.warn(('%s: %s'):format(what, status.last_error), advice(status.last_error))
  end
end

return M

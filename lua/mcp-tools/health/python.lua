--- Health of tools written in Python.

local config = require('mcp-tools.config')
local host = require('mcp-tools.python_worker.worker')
local interpreter = require('mcp-tools.bridge.interpreter')
local python = require('mcp-tools.loading.python')

local health = vim.health

local M = {}

--- What the Python lacks, when that can be told without running it.
---@return mcp-tools.bridge.PythonFault?
local function fault_of()
  return config.get('bridge.python') == nil and interpreter.environment_fault() or nil
end

---@return string
local function program()
  return config.get('bridge.python') or interpreter.interpreter(interpreter.environment_dir())
end

---@type table<string, fun(status: mcp-tools.python_worker.HostStatus)>
local STATES = {
  none = function()
    health.info('the host does not run; the first call of a tool starts it')
  end,
  finding = function()
    health.info('the host is about to be started')
  end,
  starting = function()
    health.info('the host is starting')
  end,
  ready = function(status)
    local text = 'the host runs: process %d, Python %s, pynvim %s, there after %.0f ms, calls: %d'
    health.ok(text:format(status.pid, status.python, status.pynvim, status.start_ms or 0, status.calls))
  end,
}

--- What mends a host that did not start.
---@param why string
---@return string
local function advice(why)
  local module = why:match("No module named '([%w_.]+)'")
  if module and config.get('bridge.python') == nil then
    return 'Run :McpTools install'
  elseif module == 'pynvim' then
    return ('Install it: %s -m pip install "pynvim>=0.6,<0.7"'):format(program())
  end
  return 'See :McpTools log; :McpTools restart starts it afresh'
end

function M.check()
  local status = host.status()
  local modules = python.found()
  local tools = 0
  for _, module in ipairs(modules) do
    tools = tools + #module.tools
  end
  if #modules == 0 then
    health.info('no modules: `python.modules` is empty, and no folder `mcp_tools/` on the runtimepath has one')
  else
    health.info(('modules: %d, tools: %d'):format(#modules, tools))
  end
  local fault = fault_of()
  if fault then
    health[#modules > 0 and 'error' or 'info'](('they cannot run: %s'):format(fault.message), fault.advice)
  else
    health.info('they run by ' .. program())
    local lacking = interpreter.packages_fault()
    if lacking then
      health.warn(lacking.message, lacking.advice)
    end
  end
  STATES[status.state](status)
  if status.last_error then
    local what = status.crashes > 0 and ('the host has crashed, %d times in a row'):format(status.crashes)
      or 'the host did not start'
    health.warn(('%s: %s'):format(what, status.last_error), advice(status.last_error))
  end
end

return M

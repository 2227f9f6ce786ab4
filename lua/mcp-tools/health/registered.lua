--- Checks what is registered: tools, resources, prompts, Python tools, mounted servers; and terminal agents, assistants
--- and other plugins for them.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local interpreter = require('mcp-tools.bridge.interpreter')
local loading = require('mcp-tools.loading')
local kinds = require('mcp-tools.registry.kinds')
local listing = require('mcp-tools.scope.listing')
local mounts = require('mcp-tools.mounts')
local python_modules = require('mcp-tools.loading.python')
local report = require('mcp-tools.loading.report')
local sanitize = require('mcp-tools.util.sanitize')
local selection = require('mcp-tools.loading.selection')
local source = require('mcp-tools.registry.source')
local worker = require('mcp-tools.python_worker.worker')

local health = vim.health

local M = {}

--- For JSON, with the tokenizers of current models.
local BYTES_PER_TOKEN = 4

--- Formats what definitions cost a model that gets them with every request: bytes, and roughly tokens.
---@param bytes integer
---@return string
local function cost(bytes)
  return ('%.1f kB, ~%d tokens'):format(bytes / 1000, math.ceil(bytes / BYTES_PER_TOKEN))
end

--- Reports tools by group with their cost, and notes on their definitions.
function M.tools()
  local groups, sizes, notes, count, total = {}, {}, {}, 0, 0
  for _, tool in ipairs(core.get().registry:list('tools')) do
    local group, size = source.group(tool), listing.size(tool, config.get().tool_prefix)
    groups[group] = groups[group] or {}
    sizes[group] = (sizes[group] or 0) + size
    table.insert(groups[group], tool.name)
    count, total = count + 1, total + size
    for _, note in ipairs(tool.lint) do
      table.insert(notes, ('tool %s: %s'):format(tool.name, note))
    end
  end
  for group, names in vim.spairs(groups) do
    health.ok(('%s (%d): %s'):format(group, #names, table.concat(names, ', ')))
  end
  if count > 0 then
    local each = {}
    for group in vim.spairs(groups) do
      table.insert(each, ('%s %s'):format(group, cost(sizes[group])))
    end
    health.info('cost of the definitions for a model that gets all of them: ' .. cost(total))
    health.info('by group: ' .. table.concat(each, '; '))
    health.info('to expose fewer tools to a client: :h mcp-tools-scopes')
  end
  if selection.is_empty('tools') then
    health[count == 0 and 'warn' or 'info'](
      'the bundled tools are off',
      count == 0 and 'Write `require("mcp-tools").setup({ tools = "recommended" })`' or nil
    )
  end
  for _, note in ipairs(notes) do
    health.info(note)
  end
  for _, item in ipairs(report.unknown_names(core.get().registry)) do
    if vim.startswith(item.option, 'approval') then
      health.warn(report.describe(item), 'The option has no effect until something has this name')
    end
  end
end

--- Reports resources and prompts, and notes on their definitions.
function M.resources_and_prompts()
  local notes = {}
  for _, row in ipairs(kinds.rows) do
    local names, entries = {}, row.grouped and {} or core.get().registry:list(row.kind)
    for _, entry in ipairs(entries) do
      table.insert(names, entry.key)
      for _, note in ipairs(entry.lint) do
        table.insert(notes, ('%s: %s'):format(entry.key, note))
      end
    end
    if not row.grouped then
      health[#names > 0 and 'ok' or 'info'](('%s (%d): %s'):format(row.heading, #names, table.concat(names, ', ')))
    end
  end
  for _, note in ipairs(notes) do
    health.info(note)
  end
end

--- Reports what was found in other plugins, and everything that could not be loaded.
function M.found()
  core.get()
  for _, origin in ipairs(loading.report()) do
    local age = origin.age_ms and ('searched %d s ago'):format(origin.age_ms / 1000) or 'not searched yet'
    health.info(('%s: %d %s, %s'):format(origin.name, #origin.found, #origin.found == 1 and 'file' or 'files', age))
    for _, file in ipairs(origin.found) do
      local tools = #file.tools > 0 and table.concat(file.tools, ', ') or 'nothing'
      -- The tools of a mount are registered by its server, not found in a file.
      health.info(origin.name == 'mounts' and file.file or ('%s: %s'):format(file.file, tools))
    end
  end
  for _, failure in ipairs(report.failures(core.get().registry)) do
    local error = failure.error:gsub('\nstack traceback:.*', '') -- the log has it
    local mount = failure.source:match('^mount (.+)$')
    health.error(
      ('%s could not be loaded: %s'):format(failure.source, error),
      mount and ('Correct it, then run `:McpTools mounts retry %s`'):format(mount)
        or 'Correct it, then run `:McpTools tools reload`; or remove its name from setup()'
    )
  end
end

---@return string
local function executable()
  return config.get('bridge.python') or interpreter.interpreter(interpreter.environment_dir())
end

local WORKER_STATES = {
  none = 'the worker is not running; the first call of a tool starts it',
  finding = 'the worker is about to start',
  starting = 'the worker is starting',
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

--- Checks tools written in Python.
function M.python()
  local status = worker.status()
  local modules = python_modules.found()
  local tools = 0
  for _, module in ipairs(modules) do
    tools = tools + #module.tools
  end
  if #modules == 0 then
    health.info('no modules: `python.modules` is empty, and no directory `mcp_tools/` on the runtimepath has one')
  else
    health.info(('modules: %d, tools: %d'):format(#modules, tools))
  end
  local fault = config.get('bridge.python') == nil and interpreter.environment_fault()
  if fault then
    health[#modules > 0 and 'error' or 'info'](('tools cannot run: %s'):format(fault.message), fault.advice)
  else
    health.info('tools run with ' .. executable())
    local missing = interpreter.packages_fault()
    if missing then
      health.warn(missing.message, missing.advice)
    end
  end
  if status.state == 'ready' then
    local text = 'the worker is running: process %d, Python %s, pynvim %s, started in %.0f ms, calls: %d'
    health.ok(text:format(status.pid, status.python, status.pynvim, status.start_ms or 0, status.calls))
  else
    health.info(WORKER_STATES[status.state])
  end
  if status.last_error then
    local what = status.crashes > 0 and ('the worker has crashed %d times in a row'):format(status.crashes)
      or 'the worker did not start'
    health.warn(('%s: %s'):format(what, status.last_error), advice(status.last_error))
  end
end

---@type table<string, fun(text: string, status: mcp-tools.MountStatus)>
local MOUNT_STATES = {
  ready = health.ok,
  connecting = health.info,
  off = health.info,
  stopped = function(text)
    health.info(text .. ': the bridge is not running')
  end,
  waiting = function(text, status)
    health.error(text, ('See :McpTools log; `:McpTools mounts retry %s` retries now'):format(status.name))
  end,
  wrong = function(text)
    health.error(text, 'Correct it, then run `:McpTools mounts retry`')
  end,
}

--- Checks the mounted servers.
function M.mounts()
  local list = mounts.status()
  if #list == 0 then
    health.info('none; see :h mcp-tools-mounts')
  end
  for _, status in ipairs(list) do
    MOUNT_STATES[status.state](mounts.describe(status), status)
    for _, fault in ipairs(status.faults) do
      local text = ('%s: not exposed: %s'):format(status.name, sanitize.line(fault))
      health.warn(text, 'Report it to the author of the server')
    end
  end
end

-- Agents --------------------------------------------------------------------------------------------------------------

---@param agent mcp-tools.agents.Status
local function report_agent(agent)
  local name = agent.label and ('%s (%s)'):format(agent.label, agent.name) or agent.name
  if agent.fault then
    health.error(('%s: %s'):format(name, agent.reason), 'Fix this, then run :McpTools restart')
  elseif agent.state == 'on' and #agent.files == 0 then
    health.info(('%s: its endpoint is open, but it has no discovery file'):format(name))
  elseif agent.state == 'on' then
    health.ok(('%s can find this editor: %s'):format(name, table.concat(agent.files, ', ')))
    if #agent.sessions == 0 and agent.connect then
      health.info(('%s is not connected: %s'):format(name, agent.connect))
    end
    if agent.proposes then
      health.info(('%s proposes edits %s'):format(name, agent.proposes))
    end
  else
    health.info(('%s: %s, %s'):format(name, agent.state, agent.reason or 'unknown reason'))
  end
  for _, session in ipairs(agent.sessions) do
    local tools = vim.tbl_keys(session.asked)
    table.sort(tools)
    local asked = #tools > 0 and ('; it has called ' .. table.concat(tools, ', ')) or ''
    health.info(sanitize.line(('connected: %s %s%s'):format(session.client, session.version, asked)))
  end
end

--- Checks which terminal agents can find this editor, which are connected, and why others cannot.
function M.terminal_agents()
  if not config.get('agents') then
    return health.info('no agent links: the option `agents` is empty (tools work without it)')
  end
  for _, agent in ipairs(require('mcp-tools.agents').status()) do -- start-up cost: not loaded without the option
    report_agent(agent)
  end
end

--- Returns whether a plugin with this Lua module is installed; it may be loaded later.
---@param module string
---@return boolean
local function is_installed(module)
  return package.loaded[module] ~= nil
    or #vim.api.nvim_get_runtime_file(('lua/%s.lua'):format(module), false) > 0
    or #vim.api.nvim_get_runtime_file(('lua/%s/init.lua'):format(module), false) > 0
end

--- Assistants that get their tools from files of `callers/`: module, name.
local ASSISTANTS = { { 'codecompanion', 'CodeCompanion' }, { 'avante', 'Avante' }, { 'mcphub', 'MCP Hub' } }

---@param server mcp-tools.integration.Status
local function report_server(server)
  local name = sanitize.line(('%s at %s (%s)'):format(server.label, server.url, server.via))
  if server.state == 'connected' then
    health.ok(name .. ' has these tools')
  elseif server.state == 'others' then
    health.info(name .. ' already has a server of this name, from its own configuration or another editor')
  elseif server.fault then
    health.warn(
      sanitize.line(('%s: %s'):format(name, server.fault)),
      'It is retried for ten minutes, and after :McpTools restart; see :McpTools log'
    )
  else
    health.info(name .. ' gets these tools when the bridge is ready')
  end
end

--- Checks assistants, and servers of agents.
function M.assistants()
  local callers = package.loaded['mcp-tools.callers.assistant'] -- not loaded: no assistant has asked for tools
  local integrations = package.loaded['mcp-tools.agents.integrations']
  local servers, is_known = integrations and integrations.status() or {}, false
  for _, assistant in ipairs(ASSISTANTS) do
    local host, label = unpack(assistant)
    local count = callers and callers.counts[host]
    if count then
      health.ok(('%s has %d of these tools'):format(label, count))
    elseif is_installed(host) then
      health.info(('%s is installed, but has not asked for these tools: `:h mcp-tools-%s`'):format(label, host))
    end
    is_known = is_known or count ~= nil or is_installed(host)
  end
  vim.tbl_map(report_server, servers)
  if not is_known and #servers == 0 then
    health.info('no assistant plugin (CodeCompanion, Avante, MCP Hub) is installed')
  end
end

return M

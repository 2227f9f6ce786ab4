--- Subcommands for the bridge: start, stop, restart, install, endpoint, status, dashboard, log.

local bridge = require('mcp-tools.bridge')
local bundled = require('mcp-tools.loading.bundled')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')
local trim = require('mcp-tools.util.trim')

---@type table<string, mcp-tools.Subcommand>
local M = {}

local uv = vim.uv

--- Finds a directory that was typed; reports an unknown one.
---@param text string
---@return boolean ok
---@return string? directory nil if none was typed
local function directory_of(text)
  if text == '' then
    return true
  end
  -- First the literal path: a directory may have `$` or `*` in its name.
  local path = uv.fs_realpath(text) or uv.fs_realpath(vim.fn.expand(text))
  local stat = path and uv.fs_stat(path)
  if stat and stat.type == 'directory' then
    return true, path
  end
  notify.error(("'%s' is not a directory"):format(text))
  return false
end

---@param lead string
---@return string[]
local function complete_directory(lead)
  return vim.fn.getcompletion(lead, 'dir')
end

---@type mcp-tools.Subcommand
M.start = {
  usage = '[DIR]',
  description = 'start the bridge; DIR sets its project from now on, which is the one that contains DIR',
  run = function(rest)
    local ok, root = directory_of(rest)
    local port = bridge.get_port()
    if ok and port then
      local advice = root and '; :McpTools restart DIR changes its project' or ''
      notify.info(('the bridge is already running on port %d%s'):format(port, advice))
    elseif ok then
      bridge.start({ announce = true, root = root })
    end
  end,
  complete = complete_directory,
}

---@type mcp-tools.Subcommand
M.stop = {
  description = 'stop the bridge',
  run = function()
    bridge.stop(function()
      notify.info('the bridge has stopped')
    end)
  end,
}

---@type mcp-tools.Subcommand
M.restart = {
  usage = '[DIR]',
  description = 'restart the bridge on the same port and token, or for the project that contains DIR; also restarts the'
    .. ' worker of Python tools',
  run = function(rest)
    local ok, root = directory_of(rest)
    if not ok then
      return
    end
    local worker = package.loaded['mcp-tools.python_worker.worker'] -- start-up cost: unless it is loaded, none runs
    if worker then
      worker.restart()
    end
    bridge.restart({ announce = true, root = root })
  end,
  complete = complete_directory,
}

---@type mcp-tools.Subcommand
M.install = {
  description = 'install or update the Python environment of the bridge (downloads packages); with ! rebuild it',
  bang = true,
  run = function(_, bang)
    bridge.install({ force = bang })
  end,
}

local ENDPOINT_TITLE = 'the token gives access to your tools'

-- The format that most clients read.
local JSON = [[
{
  "mcpServers": {
    "nvim-tools": {
      "type": "http",
      "url": "%s",
      "headers": { "Authorization": "Bearer %s" }
    }
  }
}]]

---@param register string
---@param what string
---@param text string
local function yank(register, what, text)
  vim.fn.setreg(register, text)
  notify.info(("the %s is in register '%s'"):format(what, register))
end

---@param endpoint { url: string, token: string }
local function show_endpoint(endpoint)
  local header, json = 'Authorization: Bearer ' .. endpoint.token, JSON:format(endpoint.url, endpoint.token)
  local lines = { endpoint.url, header, '', unpack(vim.split(json, '\n')) }
  local function yank_part()
    local line = vim.api.nvim_win_get_cursor(0)[1]
    local part = ({ { 'URL', endpoint.url }, { 'header', header } })[line] or { 'JSON', json }
    yank(vim.v.register, part[1], part[2])
  end
  local description = 'yank the URL, the header or the JSON'
  local keys = { { lhs = 'y', word = 'yank', description = description, run = yank_part } }
  scratch.show('endpoint', lines, { title = ENDPOINT_TITLE, keys = keys })
end

---@type mcp-tools.Subcommand
M.endpoint = {
  usage = '[REGISTER]',
  description = 'show what a client needs: URL, header with the token, and both as JSON; with a register, yank the JSON'
    .. ' into it',
  run = function(rest)
    local endpoint = bridge.endpoint()
    if not endpoint then
      return notify.error('the bridge is not running', bridge.status().to_do or 'Try again in a moment')
    elseif rest == '' then
      return show_endpoint(endpoint)
    end
    local register = rest:match('^"?([%a"*+])$')
    if not register then
      return notify.error(("'%s' is not a register: :McpTools endpoint [REGISTER], such as +"):format(rest))
    end
    yank(register, 'JSON', JSON:format(endpoint.url, endpoint.token))
  end,
}

local REFRESH = 1000 -- ms

---@param lines string[]
---@param label string
---@param value? string
local function add(lines, label, value)
  if value and value ~= '' then
    table.insert(lines, ('  %-11s %s'):format(label, sanitize.line(value)))
  end
end

---@param status mcp-tools.bridge.Status
---@return string?
local function port_text(status)
  if not status.port then
    return status.wanted_port and ('%d wanted'):format(status.wanted_port)
  elseif status.wanted_port and status.wanted_port ~= status.port then
    local holder = status.port_holder == 'ours' and 'another editor of yours' or 'another process'
    return ('%d (%d is used by %s)'):format(status.port, status.wanted_port, holder)
  end
  return tostring(status.port)
end

---@param sessions? { count: integer, calls: integer, clients: table[] }
---@return string
local function client_text(sessions)
  local names = {}
  for _, client in ipairs(sessions and sessions.clients or {}) do
    local version, transport = client.version or '', client.transport or ''
    local text = ('%s %s %s'):format(client.name or '?', version, transport)
    table.insert(names, sanitize.line(trim(text)))
  end
  return #names > 0 and table.concat(names, ', ') or 'none'
end

--- Describes the session of an agent: its name, and the tools it has called.
---@param session mcp-tools.agents.Session
---@return string
local function session_text(session)
  local asked = {}
  for tool, times in vim.spairs(session.asked) do
    table.insert(asked, times > 1 and ('%s ×%d'):format(tool, times) or tool)
  end
  local who = trim(('%s %s'):format(session.client, session.version))
  local what = #asked > 0 and ', has called ' .. table.concat(asked, ', ') or ''
  return sanitize.line(('connected: %s%s'):format(who ~= '' and who or 'an agent', what))
end

--- Adds the agents of the option `agents`, with the reason for those that are off.
---@param lines string[]
local function add_agents(lines)
  local agents = package.loaded['mcp-tools.agents'] -- start-up cost: not loaded without the option
  for i, agent in ipairs(agents and agents.status() or {}) do
    local reason = agent.reason and ': ' .. agent.reason or ''
    local text = ('%s  %s%s'):format(agent.label or agent.name, agent.state, reason)
    add(lines, i == 1 and 'agents' or '', sanitize.line(text))
    local function more(label, value)
      if value and agent.state == 'on' then
        table.insert(lines, ('  %-11s   %s: %s'):format('', label, sanitize.line(value)))
      end
    end
    more('to connect', #agent.sessions == 0 and agent.connect or nil)
    more('proposes edits', agent.proposes)
    for _, session in ipairs(agent.sessions) do
      table.insert(lines, ('  %-11s   %s'):format('', session_text(session)))
    end
  end
end

---@param lines string[]
local function add_calls(lines)
  local calls = core.parts().executor:pending()
  add(lines, 'calls', #calls == 0 and 'none running' or ('%d running'):format(#calls))
  for _, call in ipairs(calls) do
    local since = call.started_at or call.created_at
    local seconds = since and (vim.uv.hrtime() - since) / 1e9 or 0
    local client = call.client and call.client.name or call.host
    local text = ('%s  %s  %s  %.1f s  %s'):format(call.id, call.name, call.state, seconds, client or '')
    table.insert(lines, '    ' .. sanitize.line(text))
  end
end

--- Describes the worker of Python tools, if one runs.
---@return string?
local function python_text()
  local worker = package.loaded['mcp-tools.python_worker.worker'] -- start-up cost: unless it is loaded, none runs
  local status = worker and worker.status()
  if not status or status.state == 'none' then
    return nil
  end
  return ('%s%s, calls: %d'):format(status.state, status.pid and ', process ' .. status.pid or '', status.calls)
end

--- Adds the mounted servers.
---@param lines string[]
local function add_mounts(lines)
  local mounts = package.loaded['mcp-tools.mounts'] -- start-up cost: not loaded without a mount
  for i, mount in ipairs(mounts and mounts.status() or {}) do
    add(lines, i == 1 and 'mounts' or '', mounts.describe(mount))
  end
end

---@return string[]
local function lines_now()
  local status = bridge.status()
  local restarts = status.tries > 0 and (' (restarted %d×)'):format(status.tries) or ''
  local lines = { 'bridge: ' .. status.state .. restarts }
  add(lines, 'endpoint', status.url)
  add(lines, 'port', port_text(status))
  add(lines, 'project', status.root)
  add(lines, 'process', status.pid and tostring(status.pid))
  -- Counts without loading definitions: that takes a while, and no client may ever ask for them.
  local tools = core.parts().registry.entries.tools
  add(lines, 'tools', tostring(vim.tbl_count(tools) + bundled.count_pending('tools')))
  add(lines, 'clients', client_text(status.sessions))
  add_agents(lines)
  add(lines, 'python', python_text())
  add_mounts(lines)
  add_calls(lines)
  add(lines, 'options', status.refusal)
  add(lines, 'last error', status.last_error)
  add(lines, 'to do', status.to_do)
  add(lines, 'note', status.note)
  add(lines, 'log', log.path())
  return lines
end

---@type mcp-tools.Subcommand
M.status = {
  description = 'show the bridge, its clients, agents, the worker of Python tools and the running calls; the window'
    .. ' updates automatically',
  run = function()
    scratch.show('status', lines_now, { every = REFRESH })
  end,
}

---@type mcp-tools.Subcommand
M.dashboard = {
  description = 'show the dashboard (|mcp-tools-dashboard|): the current bridge, clients, calls, tools and open'
    .. ' questions, with keys to act on them; |:McpTools| alone does the same',
  run = function()
    local parts = core.get()
    -- Start-up cost: `:McpTools status` needs neither.
    local groups = require('mcp-tools.groups')
    require('mcp-tools.ui.dashboard').open({
      style = config.get('ui.dashboard'),
      registry = parts.registry,
      executor = parts.executor,
      gateway = parts.gateway,
      history = parts.history,
      bridge = bridge.status,
      items = groups.items,
      run = function(text)
        vim.api.nvim_cmd({ cmd = 'McpTools', args = { text } }, {})
      end,
    })
  end,
}

--- In bytes: about a thousand lines.
local LOG_TAIL = 128 * 1024

local function show_log()
  log.tail(LOG_TAIL, function(lines)
    -- Without a readable file, the messages in memory are shown.
    lines = lines or log.lines()
    if #lines == 0 then
      lines = { 'The log is empty: ' .. log.path() }
    end
    lines = vim.tbl_map(sanitize.text, lines)
    scratch.show('log', lines, { filetype = 'log', at_end = true, again = show_log })
  end)
end

---@type mcp-tools.Subcommand
M.log = {
  description = 'show the end of the log',
  run = show_log,
}

return M

--- Subcommands for the bridge: start, stop, restart, install, endpoint, status, dashboard, log.

local bridge = require('mcp-tools.bridge')
local core = require('mcp-tools.core')
local dashboard = require('mcp-tools.ui.dashboard')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')

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
    local worker = package.loaded['mcp-tools.python_worker.worker'] -- start-up cost: not loaded if no worker runs
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

---@param parts mcp-tools.Core
---@return mcp-tools.DashboardParts
local function dashboard_parts(parts)
  return vim.tbl_extend('error', parts, {
    bridge = bridge.status,
    run = function(text)
      vim.api.nvim_cmd({ cmd = 'McpTools', args = { text } }, {})
    end,
  })
end

---@type mcp-tools.Subcommand
M.status = {
  description = 'show the bridge, its clients, agents, the worker of Python tools and the running calls; the window'
    .. ' updates automatically',
  run = function()
    dashboard.show_status(dashboard_parts(core.parts()))
  end,
}

---@type mcp-tools.Subcommand
M.dashboard = {
  description = 'show the dashboard (|mcp-tools-dashboard|): the current bridge, clients, calls, tools and open'
    .. ' questions, with keys to act on them; |:McpTools| alone does the same',
  run = function()
    dashboard.open(dashboard_parts(core.get()))
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

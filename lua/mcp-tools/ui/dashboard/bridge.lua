--- Sections of the dashboard: the bridge, its Python environment and the log.

local log = require('mcp-tools.log')

local STATE_GROUPS = { ready = 'Good', failed = 'Bad', stopped = 'Dim' }

---@param status mcp-tools.bridge.Status
---@return string?
local function port_note(status)
  if not status.wanted_port or not status.port or status.wanted_port == status.port then
    return nil
  end
  local holder = status.port_holder == 'ours' and 'another editor of yours' or 'another process'
  return ('port %d is taken by %s'):format(status.wanted_port, holder)
end

--- Describes the worker of Python tools, if one runs.
---@return string?
local function worker_text()
  local worker = package.loaded['mcp-tools.python_worker.worker'] -- start-up cost: unless it is loaded, none runs
  local status = worker and worker.status()
  if status and status.state ~= 'none' then
    return ('%s%s, calls: %d'):format(status.state, status.pid and ', process ' .. status.pid or '', status.calls)
  end
end

--- Adds a table of labels and values, without the empty values.
---@param rows mcp-tools.Rows
---@param list { [1]: string, [2]: string?, [3]: string? }[] label, value, highlight group
local function add_values(rows, list)
  local filled = {}
  for _, each in ipairs(list) do
    if each[2] and each[2] ~= '' then
      table.insert(filled, { cells = { { each[1], 'Dim' }, { each[2], each[3] } } })
    end
  end
  rows:table(filled)
end

---@type mcp-tools.DashboardSection
local endpoint = {
  title = 'Bridge',
  in_status = true,
  rows = function(rows, parts)
    local status = parts.bridge()
    local restarts = status.tries > 0 and (', restarted %d×'):format(status.tries) or ''
    add_values(rows, {
      { 'state', '● ' .. status.state .. restarts, STATE_GROUPS[status.state] or 'Busy' },
      { 'endpoint', status.url, 'Title' },
      { 'port', port_note(status), 'Warn' },
      { 'project', status.root and vim.fn.fnamemodify(status.root, ':~') },
      { 'python', worker_text() },
      { 'options', status.refusal, 'Bad' },
      { 'last error', status.last_error, 'Bad' },
      { 'to do', status.to_do, 'Warn' },
      { 'note', status.note, 'Warn' },
      { 'log', vim.fn.fnamemodify(log.path(), ':~'), 'Dim' },
    })
  end,
  keys = {
    {
      lhs = 'y',
      description = 'yank the URL of the endpoint',
      run = function(parts)
        local url = parts.bridge().url
        if not url then
          return parts.run('endpoint') -- reports why it has no URL
        end
        vim.fn.setreg(vim.v.register, url)
        vim.api.nvim_echo({ { ('register %s has %s'):format(vim.v.register, url) } }, false, {})
      end,
    },
    {
      lhs = 'Y',
      description = 'yank the client configuration as JSON, including the token',
      run = function(parts)
        parts.run('endpoint "' .. vim.v.register)
      end,
    },
    {
      lhs = 'S',
      description = 'start or stop the bridge',
      run = function(parts)
        parts.run(parts.bridge().url and 'stop' or 'start')
      end,
    },
  },
}

---@type mcp-tools.DashboardSection
local environment = {
  title = 'Environment',
  folded = true,
  note = function(parts)
    local status = parts.bridge()
    return status.python_version and 'Python ' .. status.python_version or 'unknown until the bridge starts'
  end,
  rows = function(rows, parts)
    local status = parts.bridge()
    local list = {
      { 'bridge', status.pid and ('process %d, from %s'):format(status.pid, status.source or '?') },
      { 'command', status.command and table.concat(status.command, ' ') },
    }
    for name, version in vim.spairs(status.versions) do
      table.insert(list, { name, version })
    end
    add_values(rows, list)
  end,
  keys = {
    {
      lhs = 'I',
      description = 'install or update the Python environment (downloads packages)',
      run = function(parts)
        parts.run('install')
      end,
    },
  },
}

local MAX_LOG_LINES = 8
local LEVEL_GROUPS = { ERROR = 'Bad', WARN = 'Warn', INFO = 'Busy', DEBUG = 'Dim' }

---@type mcp-tools.DashboardSection
local log_section = {
  title = 'Log',
  folded = true,
  note = function()
    local bad = vim.tbl_filter(function(line)
      return line:find('^%S+ ERROR ') or line:find('^%S+ WARN ')
    end, log.lines())
    return #bad > 0 and ('%d warnings and errors; L shows the log'):format(#bad) or 'L shows the log'
  end,
  rows = function(rows)
    local list = {}
    for _, line in ipairs(log.lines(MAX_LOG_LINES)) do
      local time, level, text = line:match('^%d+%-%d+%-%d+T(%S-)%.%d+ (%u+) +%[%d+%] ([^\n]*)')
      if time then
        table.insert(list, { cells = { { time, 'Dim' }, { level, LEVEL_GROUPS[level] }, text } })
      end
    end
    rows:table(list)
  end,
  keys = {
    { lhs = 'L', description = 'show the log', run = 'log' },
  },
}

---@type mcp-tools.DashboardSection[]
return { endpoint, environment, log_section }

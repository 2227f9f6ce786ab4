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

---@param parts mcp-tools.DashboardParts
---@return boolean
local function is_running(parts)
  return parts.bridge().url ~= nil
end

---@type mcp-tools.DashboardSection
local endpoint = {
  title = 'Bridge',
  order = 10,
  rows = function(rows, parts)
    local status = parts.bridge()
    local list = {}
    local function add(label, text, colour)
      if text and text ~= '' then
        table.insert(list, { cells = { { label, 'Dim' }, { text, colour } } })
      end
    end
    local restarts = status.tries > 0 and (', restarted %d×'):format(status.tries) or ''
    add('state', '● ' .. status.state .. restarts, STATE_GROUPS[status.state] or 'Busy')
    add('endpoint', status.url, 'Title')
    add('port', port_note(status), 'Warn')
    add('project', status.root and vim.fn.fnamemodify(status.root, ':~'))
    add('options', status.refusal, 'Bad')
    add('last error', status.last_error, 'Bad')
    add('to do', status.to_do, 'Warn')
    add('note', status.note, 'Warn')
    add('log', vim.fn.fnamemodify(log.path(), ':~'), 'Dim')
    rows:table(list)
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
        parts.run(is_running(parts) and 'stop' or 'start')
      end,
    },
  },
}

---@type mcp-tools.DashboardSection
local environment = {
  title = 'Environment',
  order = 90,
  folded = true,
  note = function(parts)
    local status = parts.bridge()
    return status.python_version and 'Python ' .. status.python_version or 'unknown until the bridge starts'
  end,
  rows = function(rows, parts)
    local status, list = parts.bridge(), {}
    local function add(label, text)
      if text then
        table.insert(list, { cells = { { label, 'Dim' }, text } })
      end
    end
    add('bridge', status.pid and ('process %d, from %s'):format(status.pid, status.source or '?'))
    add('command', status.command and table.concat(status.command, ' '))
    for name, version in vim.spairs(status.versions) do
      add(name, version)
    end
    local worker = package.loaded['mcp-tools.python_worker.worker'] -- start-up cost
    local python = worker and worker.status()
    if python and python.state ~= 'none' then
      local pid = python.pid and ', process ' .. python.pid or ''
      add('tools', ('%s%s, calls: %d'):format(python.state, pid, python.calls))
    end
    add('', 'I installs or updates it')
    rows:table(list)
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
  order = 100,
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
    {
      lhs = 'L',
      description = 'show the log',
      run = function(parts)
        parts.close()
        parts.run('log')
      end,
    },
  },
}

---@type mcp-tools.DashboardSection[]
return { endpoint, environment, log_section }

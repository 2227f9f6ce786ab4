--- Section: what the bridge runs on, and the process of tools in Python.

---@type mcp-tools.DashboardSection
return {
  title = 'Environment',
  order = 90,
  folded = true,
  note = function(parts)
    local status = parts.bridge()
    return status.python_version and 'Python ' .. status.python_version or 'not known until the bridge starts'
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
    local host = package.loaded['mcp-tools.python_worker.worker'] -- start-up cost: it has never run before it is loaded
    local python = host and host.status()
    if python and python.state ~= 'none' then
      local pid = python.pid and ', process ' .. python.pid or ''
      add('tools', ('%s%s, calls: %d'):format(python.state, pid, python.calls))
    end
    add('', 'I builds it, or renews it')
    rows:table(list)
  end,
  keys = {
    {
      lhs = 'I',
      description = 'build or renew the Python environment (downloads packages)',
      run = function(parts)
        parts.run('install')
      end,
    },
  },
}

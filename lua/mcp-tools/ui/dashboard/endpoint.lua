--- Section: the bridge, and where clients reach it. Never the token.

local log = require('mcp-tools.log')

local COLOURS = { ready = 'Good', failed = 'Bad', stopped = 'Dim' }

---@param status mcp-tools.bridge.Status
---@return string?
local function port_note(status)
  if not status.wanted_port or not status.port or status.wanted_port == status.port then
    return nil
  end
  local holder = status.port_holder == 'ours' and 'another editor of yours' or 'another program'
  return ('port %d is taken by %s'):format(status.wanted_port, holder)
end

---@param parts mcp-tools.DashboardParts
---@return boolean
local function is_there(parts)
  return parts.bridge().url ~= nil
end

---@type mcp-tools.DashboardSection
return {
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
    add('state', '● ' .. status.state .. restarts, COLOURS[status.state] or 'Busy')
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
          return parts.run('endpoint') -- says why there is none
        end
        vim.fn.setreg(vim.v.register, url)
        vim.api.nvim_echo({ { ('register %s has %s'):format(vim.v.register, url) } }, false, {})
      end,
    },
    {
      lhs = 'Y',
      description = 'yank the configuration for a client as JSON; it has the token',
      run = function(parts)
        parts.run('endpoint "' .. vim.v.register)
      end,
    },
    {
      lhs = 'S',
      description = 'start the bridge, or stop it',
      run = function(parts)
        parts.run(is_there(parts) and 'stop' or 'start')
      end,
    },
  },
}

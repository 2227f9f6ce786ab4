--- Sections of the dashboard: connected clients, terminal agents and mounted servers.

local Rows = require('mcp-tools.ui.window.rows')
local format = require('mcp-tools.ui.dashboard.format')

--- Maximum width of a client's name.
local MAX_NAME = 24

---@param parts mcp-tools.DashboardParts
---@param name string
---@return mcp-tools.Piece
local function last_seen(parts, name)
  local at = parts.history.last_of(name)
  return { at and ('last call %s ago'):format(format.age(vim.uv.hrtime() - at)) or 'no call yet', 'Dim' }
end

---@param parts mcp-tools.DashboardParts
---@return mcp-tools.TableRow[]
local function connected(parts)
  local list, sessions = {}, parts.bridge().sessions
  for i, client in ipairs(sessions and sessions.clients or {}) do
    local name = tostring(client.name or '?')
    table.insert(list, {
      cells = {
        { '●', 'Good' },
        { (Rows.clip(name, MAX_NAME)), 'Name' },
        tostring(client.version or ''),
        tostring(client.transport or ''),
        last_seen(parts, name),
      },
      item = { kind = 'client', id = ('client %d %s'):format(i, name) },
    })
  end
  return list
end

---@param parts mcp-tools.DashboardParts
---@return mcp-tools.TableRow[]
local function terminal_agents(parts)
  local agents, list = package.loaded['mcp-tools.agents'], {} -- start-up cost
  for _, agent in ipairs(agents and agents.status() or {}) do
    local label = agent.label or agent.name
    for i, session in ipairs(agent.sessions) do
      local name = session.client ~= '' and session.client or label
      table.insert(list, {
        cells = {
          { '●', 'Good' },
          { (Rows.clip(name, MAX_NAME)), 'Name' },
          session.version,
          'agent',
          last_seen(parts, session.client),
        },
        item = { kind = 'client', id = ('agent %s %d'):format(agent.name, i) },
      })
    end
    if #agent.sessions == 0 then
      local why = agent.reason or agent.state == 'on' and agent.connect
      local reason = why and ': ' .. why or ''
      table.insert(list, {
        cells = { { '○', 'Dim' }, { label, 'Dim' }, '', 'agent', { agent.state .. reason, 'Dim' } },
        item = { kind = 'client', id = 'agent ' .. agent.name },
      })
    end
  end
  return list
end

---@type mcp-tools.DashboardSection
local clients = {
  title = 'Clients',
  order = 50,
  note = function(parts)
    local sessions = parts.bridge().sessions
    local count = sessions and #sessions.clients or 0
    return count == 0 and 'none connected; C connects one' or ('%d connected'):format(count)
  end,
  rows = function(rows, parts)
    rows:table(vim.list_extend(connected(parts), terminal_agents(parts)))
  end,
  keys = {
    {
      lhs = 'C',
      description = 'connect a client (shows the change first)',
      run = function(parts)
        parts.close()
        parts.run('connect')
      end,
    },
  },
}

local MOUNT_GROUPS =
  { ready = 'Good', connecting = 'Busy', waiting = 'Warn', wrong = 'Bad', off = 'Dim', stopped = 'Dim' }

---@return mcp-tools.MountStatus[]
local function all_mounts()
  local mounts = package.loaded['mcp-tools.mounts'] -- start-up cost
  return mounts and mounts.status() or {}
end

---@type mcp-tools.DashboardSection
local mounts_section = {
  title = 'Mounted servers',
  order = 60,
  hidden = function()
    return #all_mounts() == 0
  end,
  rows = function(rows)
    local list = {}
    for _, mount in ipairs(all_mounts()) do
      local notes = {}
      table.insert(notes, mount.restarts > 0 and ('restarted %d×'):format(mount.restarts) or nil)
      table.insert(notes, mount.next_ms and ('retry in %d s'):format(math.ceil(mount.next_ms / 1000)) or nil)
      table.insert(notes, mount.error)
      table.insert(notes, #mount.faults > 0 and ('%d definitions ignored'):format(#mount.faults) or nil)
      local colour = MOUNT_GROUPS[mount.state] or 'Dim'
      table.insert(list, {
        cells = {
          { '●', colour },
          { mount.name, 'Name' },
          { mount.state, colour },
          mount.server or '',
          { table.concat(notes, ', '), mount.error and 'Bad' or 'Dim' },
        },
        item = { kind = 'mount', id = 'mount ' .. mount.name, value = mount.name },
      })
    end
    rows:table(list, { least = { [3] = #'connecting' } })
  end,
  keys = {
    {
      lhs = 'R',
      description = 'reconnect the mounted server under the cursor',
      item = { 'mount' },
      run = function(parts, item)
        parts.run('mounts retry ' .. item.value)
      end,
    },
  },
  details = {
    mount = function(parts)
      parts.close()
      parts.run('mounts')
    end,
  },
}

---@type mcp-tools.DashboardSection[]
return { clients, mounts_section }

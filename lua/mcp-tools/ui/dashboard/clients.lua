--- Section: clients that are connected, and agents that found the editor by themselves.

local Rows = require('mcp-tools.ui.window.rows')
local format = require('mcp-tools.ui.dashboard._format')

--- Cells of a name, which clients choose themselves: what stands behind it has room.
local NAME = 24

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
        { (Rows.clip(name, NAME)), 'Name' },
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
local function companions(parts)
  local ide, list = package.loaded['mcp-tools.agents'], {} -- start-up cost: it is loaded once a companion is named
  for _, companion in ipairs(ide and ide.status() or {}) do
    local label = companion.label or companion.name
    for i, session in ipairs(companion.sessions) do
      local name = session.client ~= '' and session.client or label
      table.insert(list, {
        cells = {
          { '●', 'Good' },
          { (Rows.clip(name, NAME)), 'Name' },
          session.version,
          'companion',
          last_seen(parts, session.client),
        },
        item = { kind = 'client', id = ('companion %s %d'):format(companion.name, i) },
      })
    end
    if #companion.sessions == 0 then
      local why = companion.reason or companion.state == 'on' and companion.connect
      local reason = why and ': ' .. why or ''
      table.insert(list, {
        cells = { { '○', 'Dim' }, { label, 'Dim' }, '', 'companion', { companion.state .. reason, 'Dim' } },
        item = { kind = 'client', id = 'companion ' .. companion.name },
      })
    end
  end
  return list
end

---@type mcp-tools.DashboardSection
return {
  title = 'Clients',
  order = 50,
  note = function(parts)
    local sessions = parts.bridge().sessions
    local count = sessions and #sessions.clients or 0
    return count == 0 and 'none connected; C connects one' or ('%d connected'):format(count)
  end,
  rows = function(rows, parts)
    rows:table(vim.list_extend(connected(parts), companions(parts)))
  end,
  keys = {
    {
      lhs = 'C',
      description = 'connect a client: its configuration is changed once you agree',
      run = function(parts)
        parts.close()
        parts.run('connect')
      end,
    },
  },
}

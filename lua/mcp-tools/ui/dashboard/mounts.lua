--- Section: other MCP servers whose tools are offered here.

local COLOURS = { ready = 'Good', connecting = 'Busy', waiting = 'Warn', wrong = 'Bad', off = 'Dim', stopped = 'Dim' }

---@return mcp-tools.MountStatus[]
local function all()
  local mounts = package.loaded['mcp-tools.mounts'] -- start-up cost: it is loaded once one is asked for
  return mounts and mounts.status() or {}
end

---@type mcp-tools.DashboardSection
return {
  title = 'Mounted servers',
  order = 60,
  hidden = function()
    return #all() == 0
  end,
  rows = function(rows)
    local list = {}
    for _, mount in ipairs(all()) do
      local notes = {}
      table.insert(notes, mount.restarts > 0 and ('restarted %d×'):format(mount.restarts) or nil)
      table.insert(notes, mount.next_ms and ('again in %d s'):format(math.ceil(mount.next_ms / 1000)) or nil)
      table.insert(notes, mount.error)
      table.insert(notes, #mount.faults > 0 and ('%d things left out'):format(#mount.faults) or nil)
      local colour = COLOURS[mount.state] or 'Dim'
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
      description = 'connect the mounted server under the cursor anew',
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

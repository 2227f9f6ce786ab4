--- Sections of the dashboard: open questions, calls, jobs, changes, clients and mounted servers.

local Rows = require('mcp-tools.ui.window.rows')
local age = require('mcp-tools.ui.call_line').age
local approvals = require('mcp-tools.ui.approval')
local changes = require('mcp-tools.editor.edit.history')
local reviews = require('mcp-tools.editor.review')
local sanitize = require('mcp-tools.util.sanitize')

--- Formats a duration in at most six cells.
---@param ms number
---@return string
local function duration(ms)
  if ms < 10 then
    return ('%.1f ms'):format(ms)
  elseif ms < 1000 then
    return ('%.0f ms'):format(ms)
  elseif ms < 60e3 then
    return ('%.1f s'):format(ms / 1e3)
  end
  return age(ms * 1e6)
end

local BARS = { '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█' }

--- Formats values as bars of one cell, relative to the largest.
---@param values number[]
---@return string
local function sparkline(values)
  local most = 0
  for _, value in ipairs(values) do
    most = math.max(most, value)
  end
  local out = {}
  for i, value in ipairs(values) do
    local step = most > 0 and math.ceil(value / most * #BARS) or 1
    out[i] = BARS[math.max(1, math.min(#BARS, step))]
  end
  return table.concat(out)
end

--- Formats a progress bar.
---@param share number 0 to 1
---@param cells integer
---@return string
local function bar(share, cells)
  local full = math.floor(math.max(0, math.min(1, share)) * cells + 0.5)
  return ('█'):rep(full) .. ('░'):rep(cells - full)
end

---@type mcp-tools.DashboardSection
local waiting = {
  title = 'Waiting for you',
  optional = true,
  rows = function(rows)
    local interview, list = package.loaded['mcp-tools.ui.interview'], {} -- start-up cost
    for _, each in ipairs({
      { approvals.count(), 'question%s for approval', 'approve look' },
      { interview and interview.count() or 0, 'interview%s', 'answer' },
      { reviews.count(), 'review%s', 'review' },
    }) do
      local count, text, command = unpack(each)
      if count > 0 then
        text = ('%d %s'):format(count, text:format(count == 1 and '' or 's'))
        table.insert(list, {
          cells = { { '!', 'Warn' }, { text, 'Warn' }, { '<CR> to answer', 'Dim' } },
          item = { kind = 'waiting', id = 'waiting ' .. command, value = command },
        })
      end
    end
    rows:table(list)
  end,
  details = {
    waiting = function(parts, item)
      parts.close() -- it would cover the question
      parts.run(item.value)
    end,
  },
}

local MAX_CALLS = 12
--- Width of a progress bar.
local BAR = 10

---@param call mcp-tools.Call
---@return mcp-tools.Piece
local function progress_of(call)
  local latest = call.latest
  if not latest then
    return { (call.state:gsub('_', ' ')), call.state == 'running' and 'Busy' or 'Warn' }
  elseif latest.total and latest.total > 0 then
    local share = latest.done / latest.total
    return { ('%s %3.0f%%'):format(bar(share, BAR), math.floor(math.min(100, share * 100))), 'Busy' }
  end
  return { ('%g'):format(latest.done), 'Busy' }
end

---@type mcp-tools.DashboardSection
local in_flight = {
  title = 'Calls in flight',
  in_status = true,
  note = function(parts)
    local count = #parts.executor:pending()
    return count == 0 and 'none' or tostring(count)
  end,
  rows = function(rows, parts)
    local list, calls, now = {}, parts.executor:pending(), vim.uv.hrtime()
    for i = 1, math.min(#calls, MAX_CALLS) do
      local call = calls[i]
      table.insert(list, {
        cells = {
          { call.name, 'Name' },
          progress_of(call),
          { age(now - call.created_at), 'Number' },
          { call.client.name or call.host, 'Dim' },
          call.latest and call.latest.message or '',
        },
        item = { kind = 'call', id = 'call ' .. call.id, value = call.id },
      })
    end
    rows:table(list, { right = { [3] = true }, min_widths = { [2] = BAR + 5, [3] = 4 } })
    if #calls > MAX_CALLS then
      rows:add({ { ('  and %d more'):format(#calls - MAX_CALLS), 'Dim' } })
    end
  end,
  keys = {
    {
      lhs = 'x',
      description = 'cancel the call in flight or stop the job under the cursor',
      word = 'cancel',
      item = { 'call', 'job' },
      run = function(parts, item)
        parts.run((item.kind == 'job' and 'jobs stop ' or 'cancel ') .. item.value)
      end,
    },
  },
}

---@return mcp-tools.shell.Job[]
local function running()
  local jobs = package.loaded['mcp-tools.editor.shell.jobs'] -- start-up cost
  return jobs and jobs.running() or {}
end

---@type mcp-tools.DashboardSection
local jobs = {
  title = 'Jobs',
  optional = true,
  note = function()
    return tostring(#running())
  end,
  rows = function(rows)
    local list = {}
    for _, job in ipairs(running()) do
      table.insert(list, {
        cells = {
          { job.id, 'Name' },
          { age((os.time() - job.started_at) * 1e9), 'Number' },
          { job.owner.client, 'Dim' },
          job.command.shown,
        },
        item = { kind = 'job', id = 'job ' .. job.id, value = job.id },
      })
    end
    rows:table(list, { right = { [2] = true } })
  end,
}

local MAX_LAST_CALLS = 6

local SIGNS = {
  done = { '✓', 'Good' },
  failed = { '✗', 'Bad' },
  timed_out = { '✗', 'Bad' },
  cancelled = { '−', 'Warn' },
}

---@type mcp-tools.DashboardSection
local last_calls = {
  title = 'Last calls',
  note = function(parts)
    return #parts.executor.history.list(1) == 0 and 'none yet' or nil
  end,
  rows = function(rows, parts)
    local list, now = {}, vim.uv.hrtime()
    for _, call in ipairs(parts.executor.history.list(MAX_LAST_CALLS)) do
      local ended = call.state == 'done' and '' or (call.code or call.state):gsub('_', ' ')
      table.insert(list, {
        cells = {
          SIGNS[call.state],
          { call.name, 'Name' },
          { duration(call.ms), 'Number' },
          { sparkline(parts.executor.history.times(call.name)), 'Busy' },
          { age(now - call.ended_at) .. ' ago', 'Dim' },
          { call.client, 'Dim' },
          { ended, 'Bad' },
        },
        item = { kind = 'past', id = 'past ' .. call.id, value = call },
      })
    end
    rows:table(list, { right = { [3] = true, [5] = true }, min_widths = { [3] = 6, [5] = 8 }, shrinks = 6 })
  end,
  details = { past = 'audit' },
}

---@param count integer
---@param what string
---@return string
local function counted(count, what)
  return ('%d %s%s'):format(count, what, count == 1 and '' or 's')
end

---@type mcp-tools.DashboardSection
local changes_section = {
  title = 'Changes by agents',
  optional = true,
  rows = function(rows)
    local files, count, latest = {}, 0, nil
    for _, change in ipairs(changes.list()) do -- newest first
      if not change.reverted then
        files[change.path], count, latest = true, count + 1, latest or change
      end
    end
    if latest then
      local text = ('%s in %s'):format(counted(count, 'edit'), counted(vim.tbl_count(files), 'file'))
      local cells = { text, { latest.tool, 'Name' }, vim.fs.basename(latest.path), { '<CR> to list', 'Dim' } }
      rows:table({ { cells = cells, item = { kind = 'changes', id = 'changes' } } })
    end
  end,
  details = { changes = 'changes' },
}

--- The connection of a terminal agent besides that for tools.
local LINK = 'editor link'
--- Maximum width of a client's name.
local MAX_NAME = 24

---@param parts mcp-tools.DashboardParts
---@param session string
---@return string
local function last_seen(parts, session)
  local at = parts.executor.history.last_of(session)
  return at and ('last call %s ago'):format(age(vim.uv.hrtime() - at)) or 'no call yet'
end

---@param id string
---@param is_on boolean
---@param name string
---@param version any
---@param transport any
---@param note string
---@param details? string default: the note
---@return mcp-tools.TableRow
local function client_row(id, is_on, name, version, transport, note, details)
  return {
    cells = {
      is_on and { '●', 'Good' } or { '○', 'Dim' },
      { (Rows.clip(name, MAX_NAME)), is_on and 'Name' or 'Dim' },
      tostring(version or ''),
      tostring(transport or ''),
      { note, 'Dim' },
    },
    item = { kind = 'client', id = id, value = details or note },
  }
end

---@param parts mcp-tools.DashboardParts
---@return mcp-tools.TableRow[]
local function connected(parts)
  local list, sessions = {}, parts.bridge().sessions
  for i, client in ipairs(sessions and sessions.clients or {}) do
    local name = tostring(client.name or '?')
    local id, seen = ('client %d %s'):format(i, name), last_seen(parts, client.key or name)
    local transport = client.transport ~= 'http' and client.transport or '' -- also that of a client over stdio
    table.insert(list, client_row(id, true, name, client.version, transport, seen))
  end
  return list
end

---@return mcp-tools.TableRow[]
local function terminal_agents()
  local agents, list = package.loaded['mcp-tools.agents'], {} -- start-up cost
  for _, agent in ipairs(agents and agents.status() or {}) do
    local label = agent.label or agent.name
    for i, session in ipairs(agent.sessions) do
      local name = session.client ~= '' and session.client or label
      local note = 'gets what you select and open'
      table.insert(list, client_row(('agent %s %d'):format(agent.name, i), true, name, session.version, LINK, note))
    end
    if #agent.sessions == 0 then
      local note = agent.state .. (agent.reason and ': ' .. agent.reason or '')
      if not agent.reason and agent.connect then
        note = ('%s by the option `agents`: %s'):format(agent.state, agent.connect)
      end
      local details = agent.proposes and ('%s. It proposes edits %s'):format(note, agent.proposes)
      table.insert(list, client_row('agent ' .. agent.name, false, label, '', LINK, note, details))
    end
  end
  return list
end

---@type mcp-tools.DashboardSection
local clients_section = {
  title = 'Clients',
  in_status = true,
  note = function(parts)
    local sessions = parts.bridge().sessions
    local count = sessions and #sessions.clients or 0
    return count == 0 and 'no open session (:McpTools connect)' or ('%d connected'):format(count)
  end,
  rows = function(rows, parts)
    local list, short = vim.list_extend(connected(parts), terminal_agents()), Rows.new(rows.width)
    short:table(list)
    for i, row in ipairs(short.list) do
      table.insert(rows.list, row)
      local item = list[i].item
      local is_open = parts.open and parts.open[item.id]
      for _, piece in ipairs(is_open and Rows.broken(sanitize.line(item.value), rows.width - 8) or {}) do
        rows:add({ '      ', { piece, 'Dim' } })
      end
    end
  end,
  details = {
    client = function(parts, item)
      parts.open[item.id] = not parts.open[item.id]
    end,
  },
  keys = {
    {
      lhs = 'C',
      description = 'connect a client (shows the change first)',
      run = function(parts) -- without closing the dashboard: the user may choose no client
        parts.run('connect')
      end,
    },
  },
}

local MOUNT_GROUPS =
  { ready = 'Good', connecting = 'Busy', waiting = 'Warn', wrong = 'Bad', off = 'Dim', stopped = 'Dim' }

---@type mcp-tools.DashboardSection
local mounts_section = {
  title = 'Mounted servers',
  in_status = true,
  optional = true,
  rows = function(rows)
    local mounts, list = package.loaded['mcp-tools.mounts'], {} -- start-up cost
    for _, mount in ipairs(mounts and mounts.status() or {}) do
      local notes = { mount.error }
      table.insert(notes, mount.restarts > 0 and ('restarted %d×'):format(mount.restarts) or nil)
      table.insert(notes, mount.next_ms and ('retry in %d s'):format(math.ceil(mount.next_ms / 1000)) or nil)
      table.insert(notes, #mount.faults > 0 and ('%d definitions ignored'):format(#mount.faults) or nil)
      local color = MOUNT_GROUPS[mount.state] or 'Dim'
      table.insert(list, {
        cells = {
          { '●', color },
          { mount.name, 'Name' },
          { mount.state, color },
          mount.server or '',
          { table.concat(notes, ', '), mount.error and 'Bad' or 'Dim' },
        },
        item = { kind = 'mount', id = 'mount ' .. mount.name, value = mount.name },
      })
    end
    rows:table(list, { min_widths = { [3] = #'connecting' } })
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
  details = { mount = 'mounts' },
}

---@type mcp-tools.DashboardSection[]
return { waiting, in_flight, jobs, last_calls, changes_section, clients_section, mounts_section }

--- Sections of the dashboard: what is going on and what waits for the user.

local approvals = require('mcp-tools.ui.approval')
local changes = require('mcp-tools.editor.edit.history')
local format = require('mcp-tools.ui.dashboard.format')
local reviews = require('mcp-tools.editor.review')

---@return { kind: string, count: integer, text: string, command: string }[]
local function questions()
  local interview = package.loaded['mcp-tools.ui.interview'] -- start-up cost
  local list = {
    { kind = 'approval', count = approvals.count(), text = 'question%s for approval', command = 'approve look' },
    { kind = 'interview', count = interview and interview.count() or 0, text = 'interview%s', command = 'answer' },
    { kind = 'review', count = reviews.count(), text = 'review%s', command = 'review' },
  }
  return vim.tbl_filter(function(each)
    return each.count > 0
  end, list)
end

---@type mcp-tools.DashboardSection
local waiting = {
  title = 'Waiting for you',
  order = 20,
  hidden = function()
    return #questions() == 0
  end,
  rows = function(rows)
    local list = {}
    for _, each in ipairs(questions()) do
      local text = ('%d %s'):format(each.count, each.text:format(each.count == 1 and '' or 's'))
      table.insert(list, {
        cells = { { '!', 'Warn' }, { text, 'Warn' }, { '<CR> to answer', 'Dim' } },
        item = { kind = 'waiting', id = 'waiting ' .. each.kind, value = each.command },
      })
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
    return { ('%s %3.0f%%'):format(format.bar(share, BAR), math.min(100, share * 100)), 'Busy' }
  end
  return { ('%g'):format(latest.done), 'Busy' }
end

---@type mcp-tools.DashboardSection
local in_flight = {
  title = 'Calls in flight',
  order = 30,
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
          { format.age(now - call.created_at), 'Number' },
          { call.client.name or call.host, 'Dim' },
          call.latest and call.latest.message or '',
        },
        item = { kind = 'call', id = 'call ' .. call.id, value = call.id },
      })
    end
    rows:table(list, { right = { [3] = true }, least = { [2] = BAR + 5, [3] = 4 } })
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
  return vim.tbl_filter(function(job)
    return job.result == nil
  end, jobs and jobs.all() or {})
end

---@type mcp-tools.DashboardSection
local jobs = {
  title = 'Jobs',
  order = 31,
  note = function()
    return tostring(#running())
  end,
  hidden = function()
    return #running() == 0
  end,
  rows = function(rows)
    local list = {}
    for _, job in ipairs(running()) do
      table.insert(list, {
        cells = {
          { job.id, 'Name' },
          { format.age((os.time() - job.started_at) * 1e9), 'Number' },
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
  order = 40,
  note = function(parts)
    return #parts.history.list(1) == 0 and 'none yet' or nil
  end,
  rows = function(rows, parts)
    local list, now = {}, vim.uv.hrtime()
    for _, call in ipairs(parts.history.list(MAX_LAST_CALLS)) do
      local ended = call.state == 'done' and '' or (call.code or call.state):gsub('_', ' ')
      table.insert(list, {
        cells = {
          SIGNS[call.state],
          { call.name, 'Name' },
          { format.ms(call.ms), 'Number' },
          { format.sparkline(parts.history.times(call.name)), 'Busy' },
          { format.age(now - call.ended_at) .. ' ago', 'Dim' },
          { call.client, 'Dim' },
          { ended, 'Bad' },
        },
        item = { kind = 'past', id = 'past ' .. call.id, value = call },
      })
    end
    rows:table(list, { right = { [3] = true, [5] = true }, least = { [3] = 6, [5] = 8 }, gives = 6 })
  end,
  details = {
    past = function(parts)
      parts.close()
      parts.run('audit')
    end,
  },
}

---@return mcp-tools.Change[] newest first, without reverted ones
local function kept_changes()
  return vim.tbl_filter(function(change)
    return not change.reverted
  end, changes.list())
end

---@type mcp-tools.DashboardSection
local changes_section = {
  title = 'Changes by agents',
  order = 45,
  hidden = function()
    return #kept_changes() == 0
  end,
  rows = function(rows)
    local list, files = kept_changes(), {}
    for _, change in ipairs(list) do
      files[change.path] = true
    end
    local count, places = #list, vim.tbl_count(files)
    local text = ('%d edit%s in %d file%s'):format(count, count == 1 and '' or 's', places, places == 1 and '' or 's')
    rows:table({
      {
        cells = { text, { list[1].tool, 'Name' }, vim.fs.basename(list[1].path), { '<CR> to list', 'Dim' } },
        item = { kind = 'changes', id = 'changes' },
      },
    })
  end,
  details = {
    changes = function(parts)
      parts.close()
      parts.run('changes')
    end,
  },
}

---@type mcp-tools.DashboardSection[]
return { waiting, in_flight, jobs, last_calls, changes_section }

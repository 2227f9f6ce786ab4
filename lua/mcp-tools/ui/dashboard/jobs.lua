--- Section: commands that clients have left running.

local format = require('mcp-tools.ui.dashboard._format')

---@return mcp-tools.shell.Job[]
local function running()
  local jobs = package.loaded['mcp-tools.editor.shell.jobs'] -- start-up cost: it is loaded with the first job
  return vim.tbl_filter(function(job)
    return job.result == nil
  end, jobs and jobs.all() or {})
end

---@type mcp-tools.DashboardSection
return {
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

--- `:McpTools jobs`: commands that clients have left running.

local jobs = require('mcp-tools.editor.shell.jobs')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.layout.scratch')

local api = vim.api

local REFRESH_MS = 500

---@return mcp-tools.shell.Job[]
local function running()
  return vim.tbl_filter(function(job)
    return job.result == nil
  end, jobs.all())
end

---@param job mcp-tools.shell.Job
---@return string
local function row_of(job)
  local since = os.date('%H:%M:%S', job.started_at)
  local text = ('%-6s %s  %s: %s'):format(job.id, since, job.owner.client, job.command.shown)
  return sanitize.line(job.result and text .. ' (ended)' or text)
end

---@param list mcp-tools.shell.Job[]
local function stop(list)
  for _, job in ipairs(list) do
    job:stop()
  end
  notify.info(#list == 1 and ('%s is being stopped'):format(list[1].id) or ('%d jobs are being stopped'):format(#list))
end

local function show()
  local list = running()
  --- What has ended keeps its row until `r`: no key may act on another job than the one that was under the cursor.
  local function rows()
    for _, job in ipairs(running()) do
      if not vim.list_contains(list, job) then
        table.insert(list, job)
      end
    end
    return #list > 0 and vim.tbl_map(row_of, list) or { 'no job is running' }
  end
  local keys = {
    {
      lhs = 'x',
      word = 'stop',
      description = 'stop this job',
      run = function()
        local job = list[api.nvim_win_get_cursor(0)[1]]
        if job and not job.result then
          stop({ job })
        end
      end,
    },
  }
  scratch.show('jobs', rows, { title = 'jobs of clients', keys = keys, again = show, every = REFRESH_MS })
end

---@type mcp-tools.Subcommand
return {
  usage = '[stop ID | stop all]',
  description = 'list the commands that clients have left running (`shell_jobs`), of ended sessions too; stop one, or'
    .. ' all of them',
  run = function(rest)
    if rest == '' then
      return show()
    end
    local id = rest:match('^stop%s+(%S+)$')
    local found = vim.tbl_filter(function(job)
      return id == 'all' or job.id == id
    end, running())
    if not id then
      notify.error(':McpTools jobs [stop ID | stop all]')
    elseif #found == 0 then
      notify.info(id == 'all' and 'no job is running' or ('no job %s is running'):format(id))
    else
      stop(found)
    end
  end,
  arguments = 2,
  complete = function(_, rest)
    if not rest:find('%S') then
      return { 'stop' }
    end
    local ids = vim.tbl_map(function(job)
      return job.id
    end, running())
    table.insert(ids, 'all')
    return ids
  end,
}

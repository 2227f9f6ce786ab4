--- Activity: what assistants are doing and what waits for the person, in few words, where the eyes are.
---
--- A call costs two counts. While there are calls, and a second after the last one, a timer looks a few times a second;
--- whatever happened meanwhile is one event. Else there is none.

local companion_sessions = require('mcp-tools.editor.agents')
local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local kinds = require('mcp-tools.calls.kinds')
local log = require('mcp-tools.log')
local progress = require('mcp-tools.ui.activity.progress')
local queue = require('mcp-tools.ui.approval')
local reviews = require('mcp-tools.editor.review')
local timer = require('mcp-tools.util.timer')

local api, uv = vim.api, vim.uv

local M = {}

--- How often calls are looked at (ms), and how long none may come until the work counts as done (ns).
local LOOK, QUIET = 200, 1e9

---@class mcp-tools.Burst calls that follow each other closely
---@field began_at integer ns
---@field last_at integer ns
---@field running integer
---@field calls integer that have ended
---@field failed integer
---@field last? mcp-tools.Call the one that ended last
---@field looks mcp-tools.Timer

local executor ---@type mcp-tools.Executor?
local burst ---@type mcp-tools.Burst?
local last ---@type mcp-tools.Activity?
local scheduled = false

---@return string[]
local function client_names()
  local names = {}
  for _, client in ipairs(current.said.sessions and current.said.sessions.clients or {}) do
    table.insert(names, tostring(client.name or '?'))
  end
  if #names == 0 then -- an agent of a companion may be there before the bridge has counted it
    for _, session in ipairs(companion_sessions.sessions()) do
      table.insert(names, session.client)
    end
  end
  return names
end

---@param count integer
---@param what string
---@return string?
local function some(count, what)
  return count > 0 and ('%d %s%s'):format(count, what, count == 1 and '' or 's') or nil
end

---@return { approvals: integer, interviews: integer, reviews: integer }
local function what_waits()
  local interview = package.loaded['mcp-tools.ui.interview'] -- start-up cost: nobody was asked before it is loaded
  return { approvals = queue.count(), interviews = interview and interview.count() or 0, reviews = reviews.count() }
end

--- Calls of tools that have not ended, oldest first.
---@return mcp-tools.Call[]
local function calls_now()
  if not burst or burst.running == 0 or not executor then
    return {}
  end
  return vim.tbl_filter(function(call)
    return call.kind == kinds.tool
  end, executor:pending())
end

---@param call mcp-tools.Call
---@return integer?
local function percent_of(call)
  local at = call.latest
  if at and at.total and at.total > 0 then
    return math.floor(math.max(0, math.min(1, at.done / at.total)) * 100)
  end
end

---@param activity mcp-tools.Activity
---@return string
local function text_of(activity)
  local waiting, parts = activity.waiting, {}
  for _, part in ipairs({ { 'approvals', 'approval' }, { 'interviews', 'interview' }, { 'reviews', 'review' } }) do
    table.insert(parts, some(waiting[part[1]], part[2]))
  end
  if #parts > 0 then
    return table.concat(parts, ', ')
  elseif not activity.tool then
    return ''
  end
  local more = activity.calls > 1 and (' +%d'):format(activity.calls - 1) or ''
  return activity.tool .. (activity.percent and (' %d%%'):format(activity.percent) or '') .. more
end

--- What is going on now.
---@return mcp-tools.Activity
function M.get()
  local calls = calls_now()
  local first, waiting = calls[1], what_waits()
  local activity = {
    clients = client_names(),
    calls = #calls,
    tool = first and first.name,
    client = first and (first.client.name or first.host),
    percent = first and percent_of(first),
    waiting = waiting,
  }
  activity.text = text_of(activity)
  activity.state = waiting.approvals + waiting.interviews + waiting.reviews > 0 and 'waiting'
    or burst and 'working'
    or #activity.clients > 0 and 'connected'
    or current.get_port() and 'ready'
    or 'off'
  return activity
end

--- The line for a statusline, which is drawn often.
---@return string
function M.text()
  local waiting = what_waits()
  local idle = not burst and waiting.approvals + waiting.interviews + waiting.reviews == 0
  return idle and '' or M.get().text
end

--- Draws statuslines again that name us; others draw themselves, at the event.
local function redraw()
  if vim.o.statusline:find('mcp_tools', 1, true) or vim.o.winbar:find('mcp_tools', 1, true) then
    vim.cmd('redrawstatus!')
  elseif vim.o.tabline:find('mcp_tools', 1, true) then
    vim.cmd.redrawtabline()
  end
end

---@param activity mcp-tools.Activity
local function tell(activity)
  vim.g.mcp_tools_status = activity.text
  local opts = { pattern = 'McpToolsStatus', modeline = false, data = activity }
  local ok, err = pcall(api.nvim_exec_autocmds, 'User', opts)
  if not ok then
    log.warn('an autocommand for User McpToolsStatus failed: %s', tostring(err))
  end
  redraw()
end

--- Tells what is another than the last time.
local function look()
  local now, before = M.get(), last
  last = now
  if
    before
    and now.state == before.state
    and now.text == before.text
    and vim.deep_equal(now.clients, before.clients)
  then
    return
  end
  tell(vim.deepcopy(now))
end

--- Looks soon: what changes until then is one event.
local function look_soon()
  if not scheduled then
    scheduled = true
    vim.schedule(function()
      scheduled = false
      look()
    end)
  end
end

---@param ended mcp-tools.Burst
local function work_done(ended)
  burst = nil
  ended.looks:stop()
  local now = M.get()
  last = now
  local told = vim.deepcopy(now)
  told.state = now.state == 'waiting' and 'waiting' or 'done'
  told.done = {
    calls = ended.calls,
    failed = ended.failed,
    tool = ended.last and ended.last.name,
    client = ended.last and (ended.last.client.name or ended.last.host),
    ms = math.floor((ended.last_at - ended.began_at) / 1e6),
  }
  tell(told)
end

local function look_at_calls()
  local now = burst
  if now and now.running == 0 and uv.hrtime() - now.last_at > QUIET then
    return work_done(now)
  end
  look()
  if config.get().ui.progress then
    progress.show(calls_now(), percent_of)
  end
end

--- A call has come in, or has ended. Called for every one of them.
---@param call mcp-tools.Call
local function note(call)
  if call.kind ~= kinds.tool then
    return
  elseif not call.outcome then
    local now = uv.hrtime()
    burst = burst
      or {
        began_at = now,
        last_at = now,
        running = 0,
        calls = 0,
        failed = 0,
        looks = timer.every(LOOK, look_at_calls),
      }
    burst.running = burst.running + 1
  elseif burst then
    burst.running, burst.calls, burst.last_at = burst.running - 1, burst.calls + 1, call.ended_at
    burst.last = call
    burst.failed = burst.failed + (call.outcome.error and 1 or 0)
    progress.ended(call)
  end
end

--- Begins to tell of the calls of an executor, and of what waits.
---@param one mcp-tools.Executor
function M.follow(one)
  executor = one
  executor:watch(note)
  current.on_change(look_soon)
  api.nvim_create_autocmd('User', {
    group = api.nvim_create_augroup('mcp-tools.activity', {}),
    pattern = { 'McpToolsApproval', 'McpToolsReview', 'McpToolsInterview' },
    desc = 'mcp-tools: what waits for the person is another',
    callback = look_soon,
  })
  look_soon()
end

return M

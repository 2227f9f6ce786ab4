--- What assistants are doing and what waits for the user: for the statusline, and as messages about long calls.
---
--- Events are combined: a timer compares the state five times a second while calls run and for a second after the last
--- one. A call itself only updates two counters.

local approvals = require('mcp-tools.ui.approval')
local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local kinds = require('mcp-tools.calls.kinds')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local reviews = require('mcp-tools.editor.review')
local sanitize = require('mcp-tools.util.sanitize')
local terminal_agents = require('mcp-tools.editor.agents')
local timer = require('mcp-tools.util.timer')

local api, uv = vim.api, vim.uv

local M = {}

--- Interval of comparisons (ms), and time without calls after which the work is done (ns).
local INTERVAL, QUIET = 200, 1e9

---@class mcp-tools.Burst calls that follow each other closely
---@field began_at integer ns
---@field last_at integer ns
---@field running integer number of running calls
---@field calls integer number of ended calls
---@field failed integer
---@field last? mcp-tools.Call the call that ended last
---@field timer mcp-tools.Timer

local executor ---@type mcp-tools.Executor?
local burst ---@type mcp-tools.Burst?
local last ---@type mcp-tools.Activity?

---@return string[]
local function client_names()
  local names = current.client_names()
  if #names == 0 then -- a terminal agent may be connected before the bridge reports it
    for _, session in ipairs(terminal_agents.sessions()) do
      table.insert(names, session.client)
    end
  end
  return names
end

---@return { approvals: integer, interviews: integer, reviews: integer } waiting
---@return boolean any
local function waiting_counts()
  local interview = package.loaded['mcp-tools.ui.interview'] -- start-up cost
  local first, second, third = approvals.count(), interview and interview.count() or 0, reviews.count()
  return { approvals = first, interviews = second, reviews = third }, first + second + third > 0
end

--- Returns tool calls that have not ended, oldest first.
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
    local count = waiting[part[1]]
    table.insert(parts, count > 0 and ('%d %s%s'):format(count, part[2], count == 1 and '' or 's') or nil)
  end
  if #parts > 0 then
    return table.concat(parts, ', ')
  elseif not activity.tool then
    return ''
  end
  local more = activity.calls > 1 and (' +%d'):format(activity.calls - 1) or ''
  return activity.tool .. (activity.percent and (' %d%%'):format(activity.percent) or '') .. more
end

--- Returns the current activity.
---@return mcp-tools.Activity
function M.get()
  local calls = calls_now()
  local first, waiting, is_waiting = calls[1], waiting_counts()
  local activity = {
    clients = client_names(),
    calls = #calls,
    tool = first and first.name,
    client = first and (first.client.name or first.host),
    percent = first and percent_of(first),
    waiting = waiting,
  }
  activity.text = text_of(activity)
  activity.state = is_waiting and 'waiting'
    or burst and 'working'
    or #activity.clients > 0 and 'connected'
    or current.get_port() and 'ready'
    or 'off'
  return activity
end

--- Returns the text for a statusline; cheap, because it is drawn often.
---@return string
function M.text()
  return (burst or select(2, waiting_counts())) and M.get().text or ''
end

--- Redraws statuslines that use the variable; plugins redraw at the event.
local function redraw()
  if vim.o.statusline:find('mcp_tools', 1, true) or vim.o.winbar:find('mcp_tools', 1, true) then
    vim.cmd('redrawstatus!')
  elseif vim.o.tabline:find('mcp_tools', 1, true) then
    vim.cmd.redrawtabline()
  end
end

---@param activity mcp-tools.Activity
local function publish(activity)
  vim.g.mcp_tools_status = activity.text
  local opts = { pattern = 'McpToolsStatus', modeline = false, data = activity }
  local ok, err = pcall(api.nvim_exec_autocmds, 'User', opts)
  if not ok then
    log.warn('an autocommand for User McpToolsStatus failed: %s', tostring(err))
  end
  redraw()
end

--- Publishes the activity if it has changed.
local function compare()
  local now, before = M.get(), last
  last = now
  local same = before and now.state == before.state and now.text == before.text
  if not (same and vim.deep_equal(now.clients, before.clients)) then
    publish(vim.deepcopy(now))
  end
end

--- Compares later, so that several changes become one event.
local compare_soon = timer.soon(compare)

---@param ended mcp-tools.Burst
local function work_done(ended)
  burst = nil
  ended.timer:stop()
  local now = M.get()
  last = now
  local published = vim.deepcopy(now)
  published.state = now.state == 'waiting' and 'waiting' or 'done'
  published.done = {
    calls = ended.calls,
    failed = ended.failed,
    tool = ended.last and ended.last.name,
    client = ended.last and (ended.last.client.name or ended.last.host),
    ms = math.floor((ended.last_at - ended.began_at) / 1e6),
  }
  publish(published)
end

--- Shorter calls are not shown, ns.
local MIN_TIME = 1e9
local TITLE = 'mcp-tools'

---@class mcp-tools.ShownCall
---@field key string text and percentage on the screen
---@field text string
---@field record any the notification plugin's handle

local shown = {} ---@type table<string, mcp-tools.ShownCall> by call id
--- Whether Neovim has progress messages.
local IS_NATIVE = vim.fn.has('nvim-0.12') == 1

---@type table<string, string> by the call's state
local STATUS = { done = 'success', failed = 'failed', timed_out = 'failed', cancelled = 'cancel' }

--- Returns whether a message can be shown without covering the command line or a prompt, or causing one.
---@return boolean
local function can_show()
  return #api.nvim_list_uis() > 0
    and not api.nvim_get_mode().mode:find('^[rc]')
    and (IS_NATIVE and (vim.o.cmdheight > 0 or notify.has_room()) or not notify.is_builtin())
end

---@param call mcp-tools.Call
---@param item mcp-tools.ShownCall
---@param status 'running'|'success'|'failed'|'cancel'
---@param percent? integer
local function put(call, item, status, percent)
  local id = 'mcp-tools call ' .. call.id
  if IS_NATIVE then
    local line = notify.fitting(item.text, vim.v.echospace - #TITLE - 8) -- minus the title and a percentage
    local opts = { id = id, kind = 'progress', source = TITLE, title = TITLE, status = status, percent = percent }
    opts.data = { id = call.id, tool = call.name, client = call.client.name }
    api.nvim_echo({ { line } }, false, opts)
    return
  end
  local running = status == 'running'
  local text = percent and ('%s (%d%%)'):format(item.text, percent) or item.text
  local opts = { title = TITLE, id = id, replace = item.record, hide_from_history = running }
  if running then
    opts.timeout = false -- until it is replaced
  end
  item.record = vim.notify(text, vim.log.levels[status == 'failed' and 'WARN' or 'INFO'], opts)
end

--- Shows the progress of long calls.
---@param calls mcp-tools.Call[]
local function show_progress(calls)
  local now = uv.hrtime()
  for _, call in ipairs(calls) do
    if call.state == 'running' and now - call.started_at > MIN_TIME and can_show() then
      local percent, message = percent_of(call), call.latest and call.latest.message
      local text = call.name .. (message and ': ' .. sanitize.line((message:gsub('%s+', ' '))) or ' is running')
      local key = ('%s %s'):format(text, percent or '')
      local item = shown[call.id] or {}
      if item.key ~= key then
        item.key, item.text = key, text
        shown[call.id] = item
        log.guard('progress of a call', put, call, item, 'running', percent)
      end
    end
  end
end

--- Shows the end of a call if its progress was shown.
---@param call mcp-tools.Call
local function show_end(call)
  local item = shown[call.id]
  if not item then
    return
  end
  shown[call.id] = nil
  vim.schedule(function() -- after the result was sent
    if can_show() then
      local seconds = (call.ended_at - call.started_at) / 1e9
      item.text = ('%s: %s, %.1f s'):format(call.name, (call.state:gsub('_', ' ')), seconds)
      log.guard('progress of a call', put, call, item, STATUS[call.state], call.state == 'done' and 100 or nil)
    end
  end)
end

local function update()
  local now = burst
  if now and now.running == 0 and uv.hrtime() - now.last_at > QUIET then
    return work_done(now)
  end
  compare()
  if config.get().ui.progress then
    show_progress(calls_now())
  end
end

--- Counts a call that was received or has ended. Called for every call.
---@param call mcp-tools.Call
local function count(call)
  if call.kind ~= kinds.tool then
    return
  elseif not call.outcome then
    local now = uv.hrtime()
    if not burst then
      burst =
        { began_at = now, last_at = now, running = 0, calls = 0, failed = 0, timer = timer.every(INTERVAL, update) }
    end
    burst.running = burst.running + 1
  elseif burst then
    burst.running, burst.calls, burst.last_at = burst.running - 1, burst.calls + 1, call.ended_at
    burst.last = call
    burst.failed = burst.failed + (call.outcome.error and 1 or 0)
    show_end(call)
  end
end

--- Publishes the activity of an executor from now on.
---@param one mcp-tools.Executor
function M.follow(one)
  executor = one
  executor:watch(count)
  current.on_change(compare_soon)
  api.nvim_create_autocmd('User', {
    group = api.nvim_create_augroup('mcp-tools.activity', {}),
    pattern = { 'McpToolsApproval', 'McpToolsReview', 'McpToolsInterview' },
    desc = 'mcp-tools: update the activity',
    callback = compare_soon,
  })
  compare_soon()
end

return M

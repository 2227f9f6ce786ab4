--- Tracks debug sessions: stops, output, bound breakpoints and ends. Selects the session for a call.
---
--- When a session that a tool has resumed stops, nvim-dap must not move the user's cursor: the event gets DAP's
--- `preserveFocusHint`. After a step by the user, the cursor moves as usual.

local Output = require('mcp-tools.editor.dap.output')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local timer = require('mcp-tools.util.timer')

local M = {}

--- Maximum number of ended sessions whose output is kept.
local MAX_ENDED = 5
--- Time after the end of a session in which nvim-dap may still show messages, ms.
local LAST_MESSAGES_MS = 2000
--- Fields that identify the session that a tool has requested.
local SAME = { 'type', 'request', 'name', 'program', 'cwd' }

---@class mcp-tools.dap.Stop
---@field thread_id integer?
---@field reason string
---@field description string?
---@field text string?
---@field frames table[]? after they were requested
---@field total_frames integer?

---@class mcp-tools.dap.Bound how an adapter has bound a breakpoint
---@field verified boolean
---@field message string?
---@field line integer the actual line
---@field id integer?

---@class mcp-tools.dap.Entry
---@field id integer
---@field session table
---@field root integer id of the first session of its family; its own if it has no parent
---@field name string
---@field type string
---@field output mcp-tools.dap.Output shared by the family
---@field stop mcp-tools.dap.Stop? nil while it runs
---@field resumed_by 'tool'|'user'
---@field ended boolean
---@field exit_code integer?
---@field fault string? why it did not start
---@field bound table<string, table<integer, mcp-tools.dap.Bound>> by path and requested line
---@field seen { place: string, values: table<string, string> }? locals of the last answer
---@field filters mcp-tools.dap.Filters? requested by a tool
---@field remove_breakpoints fun()? removes the breakpoints of the call that started the session
---@field filters_sent boolean?
---@field started boolean? its program has begun
---@field ours boolean? started by a tool

---@type table<fun(), true>
local watchers = {}

--- Calls all watchers after the current event.
local function notify()
  vim.schedule(function()
    for _, fn in ipairs(vim.tbl_keys(watchers)) do
      if watchers[fn] then
        log.guard('change of a debug session', fn)
      end
    end
  end)
end

--- Calls `fn` after every event of a session.
---@param fn fun()
---@return fun() stop
function M.on_change(fn)
  watchers[fn] = true
  return function()
    watchers[fn] = nil
  end
end

--- Categories of output that users do not see.
local HIDDEN_CATEGORIES = { telemetry = true }

---@type table<table, true> arguments of requests by tools
local ours = setmetatable({}, { __mode = 'k' })

--- Marks a session as running.
---@param entry mcp-tools.dap.Entry
local function set_running(entry)
  entry.stop, entry.started = nil, true
end

--- Handlers by event.
---@type table<string, fun(entry: mcp-tools.dap.Entry, body: table)>
local EVENTS = {
  stopped = function(entry, body)
    -- Another thread: nvim-dap resumes it at once.
    if entry.stop and entry.stop.thread_id and entry.stop.thread_id ~= body.threadId then
      return
    end
    entry.started = true
    entry.stop = {
      thread_id = body.threadId,
      reason = tostring(body.reason),
      description = body.description,
      text = body.text,
    }
    if entry.resumed_by == 'tool' then
      body.preserveFocusHint = true
    end
    notify()
  end,
  continued = function(entry, body)
    if entry.stop and (body.allThreadsContinued ~= false or body.threadId == entry.stop.thread_id) then
      set_running(entry)
      notify()
    end
  end,
  output = function(entry, body)
    if type(body.output) == 'string' and not HIDDEN_CATEGORIES[body.category] then
      entry.output:add(body.category or 'console', body.output)
    end
  end,
  exited = function(entry, body)
    entry.exit_code = body.exitCode
  end,
  process = function(entry)
    entry.started = true
  end,
  breakpoint = function(entry, body)
    local changed = body.breakpoint or {}
    for _, lines in pairs(entry.bound) do
      for _, bound in pairs(lines) do
        if bound.id and bound.id == changed.id then
          bound.verified, bound.message = changed.verified == true, changed.message
          bound.line = changed.line or bound.line
        end
      end
    end
    notify()
  end,
}

--- Handles the response to a request that resumes a program.
local function resumed(entry, err, _, arguments)
  if not err and type(arguments) == 'table' and not ours[arguments] then
    entry.resumed_by = 'user'
  end
end

local function on_started(entry, err)
  if err then
    entry.fault = nvim_dap.fault(err)
  else
    entry.started = true
  end
  notify()
end

--- Handlers by request.
---@type table<string, fun(entry: mcp-tools.dap.Entry, err: any, body: any, arguments: any)>
local RESPONSES = {
  ['continue'] = resumed,
  next = resumed,
  stepIn = resumed,
  stepOut = resumed,
  stepBack = resumed,
  reverseContinue = resumed,
  initialize = function(entry, err)
    if err then
      on_started(entry, err)
    end
  end,
  launch = on_started,
  attach = on_started,
  setBreakpoints = function(entry, err, body, arguments)
    local path = ((arguments or {}).source or {}).path
    if err or not path or not body then
      return
    end
    local lines = {}
    for i, asked in ipairs(arguments.breakpoints or {}) do
      local bound = (body.breakpoints or {})[i] or {}
      lines[asked.line] = {
        verified = bound.verified == true,
        message = bound.message,
        line = bound.line or asked.line,
        id = bound.id,
      }
    end
    entry.bound[path] = lines
    notify()
  end,
  -- After nvim-dap has set its default filters, replaces them with those of the call.
  setExceptionBreakpoints = function(entry, err)
    if not err and entry.filters and not entry.filters_sent then
      entry.filters_sent = true
      local filters = entry.filters(entry.session.capabilities or {})
      entry.session:request('setExceptionBreakpoints', { filters = filters }, function() end)
    end
  end,
}

---@type mcp-tools.dap.Entry[] oldest first
local entries = {}
---@type table?
local attached

---@alias mcp-tools.dap.Filters fun(capabilities: table): string[] the adapter's exception filters to activate

---@class mcp-tools.dap.Expected a session that a tool will start
---@field config table
---@field known table<integer, table> sessions that existed before
---@field filters mcp-tools.dap.Filters?
---@field entry mcp-tools.dap.Entry?
---@field unwanted fun(entry: mcp-tools.dap.Entry)? called if the session is no longer needed

---@type mcp-tools.dap.Expected[]
local expected = {}

--- Restores nvim-dap's messages when no session of a tool is left.
local function release_messages()
  timer.after(LAST_MESSAGES_MS, function()
    local is_needed = #expected > 0
    for _, entry in ipairs(entries) do
      is_needed = is_needed or entry.ours and not entry.ended
    end
    if not is_needed then
      nvim_dap.release_messages()
    end
  end)
end

---@param entry mcp-tools.dap.Entry
local function finish(entry)
  if entry.ended then
    return
  end
  entry.ended, entry.stop = true, nil
  if entry.remove_breakpoints then
    entry.remove_breakpoints()
  end
  local ended = 0
  for i = #entries, 1, -1 do
    ended = ended + (entries[i].ended and 1 or 0)
    if entries[i].ended and ended > MAX_ENDED then
      table.remove(entries, i)
    end
  end
  release_messages()
  notify()
end

---@param session table
---@return table
local function root_of(session)
  while session.parent do
    session = session.parent
  end
  return session
end

--- Whether a session runs a configuration. Fields with `${…}` are ignored, because nvim-dap has expanded them.
---@param session table
---@param config table
---@return boolean
local function runs(session, config)
  return vim.iter(SAME):all(function(field)
    local wanted = config[field]
    return type(wanted) ~= 'string' or wanted:find('${', 1, true) ~= nil or session.config[field] == wanted
  end)
end

--- Assigns a new session to the tool that expects it.
---@param entry mcp-tools.dap.Entry
local function assign(entry)
  for i, each in ipairs(expected) do
    if not each.known[entry.id] and runs(entry.session, each.config) then
      table.remove(expected, i)
      each.entry, entry.ours = entry, true
      entry.resumed_by, entry.filters = 'tool', each.filters
      if each.unwanted then
        each.unwanted(entry)
      end
      return
    end
  end
end

--- Returns the entry of a session. A new session is added.
---@param session table
---@return mcp-tools.dap.Entry
local function track(session)
  local entry = M.get(session.id)
  if entry then
    return entry
  end
  local root = root_of(session)
  local parent = root ~= session and track(root) or nil
  entry = {
    id = session.id,
    session = session,
    root = root.id --[[@as integer]],
    name = tostring(session.config.name),
    type = tostring(session.config.type),
    output = parent and parent.output or Output.new(),
    resumed_by = parent and parent.resumed_by or 'user',
    ended = session.closed == true,
    bound = {},
    filters = parent and parent.filters,
  }
  table.insert(entries, entry)
  if session.on_close then
    session.on_close[nvim_dap.KEY] = vim.schedule_wrap(function()
      finish(entry)
    end)
  end
  if session.stopped_thread_id then
    entry.stop = { thread_id = session.stopped_thread_id, reason = 'stopped before' }
    entry.started = true
  end
  if not parent then
    assign(entry)
  end
  notify()
  return entry
end

--- Marks a thread as running before a tool resumes it, so that its last stop is not reported again.
---@param entry mcp-tools.dap.Entry
---@param arguments table of the request
---@return fun() undo
function M.resuming(entry, arguments)
  local stop = entry.stop
  ours[arguments] = true
  entry.resumed_by = 'tool'
  M.root(entry).resumed_by = 'tool'
  set_running(entry)
  return function()
    entry.stop = stop
  end
end

--- Begins to listen to nvim-dap, and adds existing sessions.
---@return table? dap
---@return mcp-tools.Error? err
function M.attach()
  local dap, err = nvim_dap.get()
  if not dap then
    return nil, err
  elseif dap == attached then
    return dap
  end
  attached, entries, expected = dap, {}, {}
  local before = dap.listeners.before
  for name, handler in pairs(EVENTS) do
    before['event_' .. name][nvim_dap.KEY] = function(session, body)
      handler(track(session), body or {})
    end
  end
  before.event_terminated[nvim_dap.KEY] = function(session)
    finish(track(session))
  end
  for name, handler in pairs(RESPONSES) do
    before[name][nvim_dap.KEY] = function(session, ...)
      handler(track(session), ...)
    end
  end
  dap.listeners.on_session = dap.listeners.on_session or {}
  dap.listeners.on_session[nvim_dap.KEY] = function(_, session)
    if session then
      track(session)
    end
  end
  for _, session in pairs(nvim_dap.sessions()) do
    track(session)
  end
  return dap
end

--- Expects a session: the next new one that runs this configuration belongs to a tool.
---@param config table
---@param filters mcp-tools.dap.Filters?
---@return mcp-tools.dap.Expected
function M.expect(config, filters)
  local each = { config = config, known = nvim_dap.sessions(), filters = filters }
  table.insert(expected, each)
  return each
end

---@param each mcp-tools.dap.Expected
function M.forget(each)
  expected = vim.tbl_filter(function(other)
    return other ~= each
  end, expected)
  release_messages()
end

--- Returns all entries, the oldest first.
---@return mcp-tools.dap.Entry[]
function M.all()
  return vim.list_slice(entries)
end

---@param id integer
---@return mcp-tools.dap.Entry?
function M.get(id)
  return vim.iter(entries):find(function(entry)
    return entry.id == id
  end)
end

--- Returns the first session of a family.
---@param entry mcp-tools.dap.Entry
---@return mcp-tools.dap.Entry
function M.root(entry)
  return M.get(entry.root) or entry
end

--- Returns a session and its child sessions.
---@param root integer
---@return mcp-tools.dap.Entry[]
function M.family(root)
  return vim.tbl_filter(function(entry)
    return entry.root == root
  end, M.all())
end

--- Returns the state of a session and its family.
---@param entry mcp-tools.dap.Entry
---@return 'stopped'|'running'|'ended' state
---@return mcp-tools.dap.Entry entry the stopped one, otherwise the root
function M.state(entry)
  for _, each in ipairs(M.family(entry.root)) do
    if each.stop and not each.ended then
      return 'stopped', each
    end
  end
  local root = M.root(entry)
  return root.ended and 'ended' or 'running', root
end

--- Argument of every tool for a session.
M.ARG = { type = 'integer', description = 'Session id; default: the focused session', minimum = 1, hidden = true }

--- Returns the latest active child session: the first session often only starts others, and has no program.
---@param entry mcp-tools.dap.Entry
---@return mcp-tools.dap.Entry
local function latest_child(entry)
  local family = M.family(entry.root)
  for i = #family, 1, -1 do
    if entry.id == entry.root and not family[i].ended then
      return family[i]
    end
  end
  return entry
end

---@param id integer?
---@return mcp-tools.dap.Entry?
local function selected(id)
  if id then
    return M.get(id)
  end
  local focused = nvim_dap.focused()
  local entry = focused and M.get(focused.id)
  if entry and not entry.ended then
    return latest_child(entry)
  end
  local all = M.all()
  for i = #all, 1, -1 do
    if not all[i].ended and all[i].root == all[i].id then
      return latest_child(all[i])
    end
  end
  return all[#all]
end

--- Returns a session, even if it has ended.
---@param args { session_id: integer? }
---@return mcp-tools.dap.Entry?
---@return mcp-tools.Error?
function M.any(args)
  if not nvim_dap.loaded() and not args.session_id then
    return nil, errors.new('not_found', 'no active debug session; debug_run starts one')
  end
  local dap, err = M.attach()
  if not dap then
    return nil, err
  end
  local entry = selected(args.session_id)
  if not entry then
    local text = args.session_id
        and ('session_id: there is no debug session %d; debug_inspect lists all'):format(args.session_id)
      or 'no active debug session; debug_run starts one'
    return nil, errors.new('not_found', text)
  end
  return entry
end

--- Returns a session that has not ended.
---@param args { session_id: integer? }
---@return mcp-tools.dap.Entry?
---@return mcp-tools.Error?
function M.active(args)
  local entry, err = M.any(args)
  if entry and entry.ended then
    local text = 'no active debug session: the last one has ended%s; debug_inspect has its output'
    local code = entry.exit_code and (' (exit code %d)'):format(entry.exit_code) or ''
    return nil, errors.new('not_found', text:format(code))
  end
  return entry, err
end

--- Returns a stopped session of a family.
---@param args { session_id: integer? }
---@return mcp-tools.dap.Entry?
---@return mcp-tools.Error?
function M.stopped(args)
  local entry, err = M.active(args)
  if not entry then
    return nil, err
  end
  local state, which = M.state(entry)
  if entry.stop then
    return entry
  elseif state ~= 'stopped' then
    local text = "the program is running; debug_step with how='wait' waits for a stop, how='pause' pauses it"
    return nil, errors.new('tool_error', text)
  end
  return which
end

return M

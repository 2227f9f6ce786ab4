--- Tracker of debug sessions: where they stop, what they print, which breakpoints are bound, how they end.
---
--- Receives: nvim-dap's listeners; word of who has a program go on.
--- Sends: an entry for each session, kept for a while after its end.
--- Does not know about: what events change in it (events.lua), calls and their answers.

local Output = require('mcp-tools.editor.dap.output')
local client = require('mcp-tools.editor.dap.client')
local events = require('mcp-tools.editor.dap.events')
local session_changed = require('mcp-tools.editor.dap.session_changed')
local timer = require('mcp-tools.util.timer')

local M = {}

--- Ended sessions whose output is kept.
local MAX_ENDED = 5
--- nvim-dap may still report something so long after a session has ended, ms.
local LAST_MESSAGES_MS = 2000
--- Fields by which a session is known to be the one that a tool has asked for.
local SAME = { 'type', 'request', 'name', 'program', 'cwd' }

---@class mcp-tools.dap.Stop
---@field thread_id integer?
---@field reason string
---@field description string?
---@field text string?
---@field frames table[]? once they have been asked for
---@field total_frames integer?

---@class mcp-tools.dap.Bound what an adapter has made of a breakpoint
---@field verified boolean
---@field message string?
---@field line integer where it is
---@field id integer?

---@class mcp-tools.dap.Entry
---@field id integer
---@field session table
---@field root integer id of the session that all came of; its own when nobody else's
---@field name string
---@field type string
---@field output mcp-tools.dap.Output of the root, for all of them
---@field stop mcp-tools.dap.Stop? nil while it runs
---@field resumed_by 'tool'|'person'
---@field ended boolean
---@field exit_code integer?
---@field fault string? why it could not be started
---@field bound table<string, table<integer, mcp-tools.dap.Bound>> path → line that was asked for
---@field seen { place: string, values: table<string, string> }? locals that were told last
---@field references table<integer, boolean> of variables at this stop; false: withheld
---@field filters string[]? of exceptions, that a tool has set
---@field filters_sent boolean?
---@field started boolean? its program runs
---@field ours boolean? a tool has started it

---@type table<integer, mcp-tools.dap.Entry>, integer[]
local entries, order = {}, {}
---@type table?
local attached

---@class mcp-tools.dap.Expected a session that a tool is about to start
---@field config table
---@field known table<integer, table>
---@field filters string[]?
---@field entry mcp-tools.dap.Entry?
---@field unwanted fun(entry: mcp-tools.dap.Entry)? nobody waits for it any more

---@type mcp-tools.dap.Expected[]
local expected = {}

--- Gives nvim-dap's messages back to the user when no session of a tool is left.
local function release_messages()
  timer.after(LAST_MESSAGES_MS, function()
    local is_needed = #expected > 0
    for _, entry in pairs(entries) do
      is_needed = is_needed or entry.ours and not entry.ended
    end
    if not is_needed then
      client.release_messages()
    end
  end)
end

---@param entry mcp-tools.dap.Entry
local function finish(entry)
  if entry.ended then
    return
  end
  entry.ended, entry.stop, entry.references = true, nil, {}
  local ended = vim.tbl_filter(function(id)
    return entries[id].ended
  end, order)
  for i = 1, #ended - MAX_ENDED do
    entries[ended[i]] = nil
  end
  order = vim.tbl_filter(function(id)
    return entries[id] ~= nil
  end, order)
  release_messages()
  session_changed.notify()
end

---@param session table
---@return table
local function root_of(session)
  while session.parent do
    session = session.parent
  end
  return session
end

--- Whether a session runs a configuration. nvim-dap puts values in place of its own variables.
---@param session table
---@param config table
---@return boolean
local function runs(session, config)
  return vim.iter(SAME):all(function(field)
    local wanted = config[field]
    return type(wanted) ~= 'string' or wanted:find('${', 1, true) ~= nil or session.config[field] == wanted
  end)
end

---@param entry mcp-tools.dap.Entry
local function claim(entry)
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

--- The entry of a session.
---@param session table
---@return mcp-tools.dap.Entry
local function track(session)
  local entry = entries[session.id]
  if entry then
    return entry
  end
  local root = root_of(session)
  local above = root ~= session and track(root) or nil
  entry = {
    id = session.id,
    session = session,
    root = root.id,
    name = tostring(session.config.name),
    type = tostring(session.config.type),
    output = above and above.output or Output.new(),
    resumed_by = above and above.resumed_by or 'person',
    ended = session.closed == true,
    bound = {},
    references = {},
    filters = above and above.filters,
  }
  entries[session.id] = entry
  table.insert(order, session.id)
  if session.on_close then
    session.on_close[client.KEY] = vim.schedule_wrap(function()
      finish(entry)
    end)
  end
  if session.stopped_thread_id then
    entry.stop = { thread_id = session.stopped_thread_id, reason = 'stopped before' }
    entry.started = true
  end
  if not above then
    claim(entry)
  end
  session_changed.notify()
  return entry
end

--- A tool has a stopped thread go on: from now on it runs, whatever comes first.
---@param entry mcp-tools.dap.Entry
---@param arguments table of its request
---@return fun() undo
function M.resuming(entry, arguments)
  local stop, references = entry.stop, entry.references
  events.mark(arguments)
  entry.resumed_by = 'tool'
  if entries[entry.root] then
    entries[entry.root].resumed_by = 'tool'
  end
  events.running(entry)
  return function()
    entry.stop, entry.references = stop, references
  end
end

--- A tool is about to stop what runs.
---@param entry mcp-tools.dap.Entry
function M.pausing(entry)
  entry.resumed_by = 'tool'
end

--- Listens to nvim-dap from now on. What is there already is taken as it is.
---@return table? dap
---@return mcp-tools.Error? err
function M.attach()
  local dap, err = client.get()
  if not dap then
    return nil, err
  elseif dap == attached then
    return dap
  end
  attached, entries, order, expected = dap, {}, {}, {}
  local before = dap.listeners.before
  for name, handler in pairs(events.EVENTS) do
    before['event_' .. name][client.KEY] = function(session, body)
      handler(track(session), body or {})
    end
  end
  before.event_terminated[client.KEY] = function(session)
    finish(track(session))
  end
  for name, handler in pairs(events.RESPONSES) do
    before[name][client.KEY] = function(session, ...)
      handler(track(session), ...)
    end
  end
  dap.listeners.on_session = dap.listeners.on_session or {}
  dap.listeners.on_session[client.KEY] = function(_, session)
    if session then
      track(session)
    end
  end
  for _, session in pairs(client.sessions()) do
    track(session)
  end
  return dap
end

--- The next new session that runs this configuration is a tool's.
---@param config table
---@param filters string[]? of exceptions
---@return mcp-tools.dap.Expected
function M.expect(config, filters)
  local each = { config = config, known = client.sessions(), filters = filters }
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

--- All that are known, the oldest first.
---@return mcp-tools.dap.Entry[]
function M.all()
  return vim.tbl_map(function(id)
    return entries[id]
  end, order)
end

---@param id integer
---@return mcp-tools.dap.Entry?
function M.get(id)
  return entries[id]
end

--- A session with those that it started.
---@param root integer
---@return mcp-tools.dap.Entry[]
function M.family(root)
  return vim.tbl_filter(function(entry)
    return entry.root == root
  end, M.all())
end

--- How it is with a session, the one that started it, and all that came of that.
---@param entry mcp-tools.dap.Entry
---@return 'stopped'|'running'|'ended' state
---@return mcp-tools.dap.Entry entry the one that has stopped, else the first
function M.state(entry)
  for _, each in ipairs(M.family(entry.root)) do
    if each.stop and not each.ended then
      return 'stopped', each
    end
  end
  local root = entries[entry.root] or entry
  return root.ended and 'ended' or 'running', root
end

return M

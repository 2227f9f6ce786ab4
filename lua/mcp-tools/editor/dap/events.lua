--- Events of debug adapters, and answers to nvim-dap's requests: what each changes in what is known of a session.
---
--- Receives: the entry of a session, and what its adapter said.
--- Sends: the entry changed; word of it (session_changed.lua).
--- Does not know about: which sessions there are (tracker.lua).
---
--- A stop in a session that a tool has going keeps nvim-dap from moving the person's cursor: the event gets DAP's own
--- `preserveFocusHint`. One after the person's own step moves it as ever.

local client = require('mcp-tools.editor.dap.client')
local session_changed = require('mcp-tools.editor.dap.session_changed')

local M = {}

--- What adapters send for their makers.
local NOT_OUTPUT = { telemetry = true }

---@type table<table, true> arguments of requests that are the tools'
local ours = setmetatable({}, { __mode = 'k' })

--- A request is a tool's, by its arguments: `session.request` hands them on as they were given.
---@param arguments table
function M.mark(arguments)
  ours[arguments] = true
end

--- Its program runs.
---@param entry mcp-tools.dap.Entry
function M.running(entry)
  entry.stop, entry.references, entry.started = nil, {}, true
end

--- By the name of the event.
---@type table<string, fun(entry: mcp-tools.dap.Entry, body: table)>
M.EVENTS = {
  stopped = function(entry, body)
    -- nvim-dap lets further threads that stop on their own go on at once.
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
    session_changed.notify()
  end,
  continued = function(entry, body)
    if entry.stop and (body.allThreadsContinued ~= false or body.threadId == entry.stop.thread_id) then
      M.running(entry)
      session_changed.notify()
    end
  end,
  output = function(entry, body)
    if type(body.output) == 'string' and not NOT_OUTPUT[body.category] then
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
    session_changed.notify()
  end,
}

--- Someone has a program go on.
local function resumed(entry, err, _, arguments)
  if not err and type(arguments) == 'table' and not ours[arguments] then
    entry.resumed_by = 'person'
  end
end

local function refused(entry, err)
  if err then
    entry.fault = client.fault(err)
    session_changed.notify()
  else
    entry.started = true
    session_changed.notify()
  end
end

--- By the name of the request.
---@type table<string, fun(entry: mcp-tools.dap.Entry, err: any, body: any, arguments: any)>
M.RESPONSES = {
  ['continue'] = resumed,
  next = resumed,
  stepIn = resumed,
  stepOut = resumed,
  stepBack = resumed,
  reverseContinue = resumed,
  initialize = function(entry, err)
    if err then
      refused(entry, err)
    end
  end,
  launch = refused,
  attach = refused,
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
    session_changed.notify()
  end,
  -- nvim-dap sets those of its defaults before the program runs; now those that the call asked for.
  setExceptionBreakpoints = function(entry, err)
    if not err and entry.filters and not entry.filters_sent then
      entry.filters_sent = true
      entry.session:request('setExceptionBreakpoints', { filters = entry.filters }, function() end)
    end
  end,
}

return M

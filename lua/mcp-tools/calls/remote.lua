--- Calls whose handlers run in another process: sends them there and ends them here.
---
--- The process gets `remote_call`, `remote_cancel` and `remote_answer`, and sends `remote_result`, `remote_progress`,
--- `remote_log` and `remote_ask`. Messages about a call that has ended are dropped and logged.

local content = require('mcp-tools.content')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')

local M = {}

--- ms after which a cancelled call is removed even if its function still runs.
M.STOP_TIMEOUT = 60000

--- A process that runs tools.
---@class mcp-tools.RemoteTarget
---@field send fun(self, event: string, ...) never throws
---@field settled? fun(self) called after a call has ended here, and after its function has ended in the process
---@field calls table<string, mcp-tools.Ctx> running calls by id
---@field stopping table<string, string> id → tool of cancelled calls whose function has not ended yet

---@type table<string, mcp-tools.RemoteTarget> id of a call → process that runs it
local targets = {}

---@param target table gets `calls` and `stopping`
---@return mcp-tools.RemoteTarget
function M.target(target)
  target.calls, target.stopping = {}, {}
  return target
end

---@param target mcp-tools.RemoteTarget
local function settled(target)
  if target.settled then
    target:settled()
  end
end

--- Runs a handler in the process. If the call ends before a result arrives, `remote_cancel` is sent. Does nothing if
--- the call has already ended.
---@param target mcp-tools.RemoteTarget
---@param ctx mcp-tools.Ctx
---@param tool table identifies the function in the process
---@param args table
---@param limit? integer maximum size of the result in bytes
function M.call(target, ctx, tool, args, limit)
  local id, call = ctx.id, ctx.call
  if call:ended() then
    return log.debug('call %s: ended before %s was started', id, tool.name)
  end
  targets[id], target.calls[id] = target, ctx
  call:on_end(function()
    if target.calls[id] then
      target.calls[id], target.stopping[id] = nil, tool.name
      target:send('remote_cancel', id, call.cancel_reason or 'ended')
      settled(target)
      vim.defer_fn(function()
        target.stopping[id] = nil
        targets[id] = nil
      end, M.STOP_TIMEOUT)
    end
  end)
  target:send('remote_call', id, tool, args, {
    host = ctx.host,
    client = next(ctx.client) and ctx.client or vim.empty_dict(),
    session = ctx.session,
    root = ctx.root,
    cwd = ctx.cwd,
    limit = limit,
  })
end

--- Ends all calls of a process that has exited.
---@param target mcp-tools.RemoteTarget
---@param err mcp-tools.Error
function M.lost(target, err)
  local calls = target.calls
  for id in pairs(target.stopping) do
    targets[id] = nil
  end
  target.calls, target.stopping = {}, {}
  for id, ctx in pairs(calls) do
    targets[id] = nil
    ctx(nil, err)
  end
end

--- Ends a call, by the kind of its outcome.
---@type table<string, fun(ctx: mcp-tools.Ctx, outcome: table)>
local OUTCOMES = {
  empty = function(ctx)
    ctx(nil)
  end,
  text = function(ctx, outcome)
    ctx(outcome.text)
  end,
  --- JSON that the handler on this side uses as a value.
  data = function(ctx, outcome)
    ctx(vim.json.decode(outcome.text))
  end,
  json = function(ctx, outcome)
    ctx(content.raw('json', outcome.text))
  end,
  --- JSON of an MCP result.
  content = function(ctx, outcome)
    ctx(content.raw('content', outcome.text, outcome.size))
  end,
  error = function(ctx, outcome)
    if outcome.trace then
      log.error('call %s threw: %s', ctx.id, outcome.trace)
      ctx.call.trace = outcome.trace
    end
    ctx(nil, errors.new(outcome.code, outcome.message, outcome.errors))
  end,
}

--- Returns the ctx of a running call; logs and returns nil if it has ended.
---@param id string
---@param what string the message, for the log
---@return mcp-tools.Ctx?, mcp-tools.RemoteTarget?
local function running(id, what)
  local target = targets[id]
  local ctx = target and target.calls[id]
  if not ctx then
    log.debug('call %s: has ended; %s was dropped', tostring(id), what)
  end
  return ctx, target
end

--- Returns a thrown error without file and line number.
---@param fault any
---@return string
local function error_text(fault)
  return (tostring(fault):gsub('^[^\n]-%.lua:%d+: ', ''))
end

--- Ends a call with the outcome that its process sent.
---@param ctx mcp-tools.Ctx
---@param outcome any `{ kind, … }`; unchecked
local function end_call(ctx, outcome)
  local finish = OUTCOMES[outcome.kind] or error(("unknown kind '%s'"):format(tostring(outcome.kind)), 0)
  finish(ctx, outcome)
end

---@type table<string, fun(id: string, ...)>
local verbs = {}

--- The function of a call has ended with an outcome for OUTCOMES.
function verbs.remote_result(id, outcome)
  local target = targets[id]
  if not target then
    return
  end
  targets[id] = nil
  local ctx = target.calls[id]
  target.calls[id], target.stopping[id] = nil, nil
  if ctx then
    local ok, fault = pcall(end_call, ctx, outcome)
    if not ok then
      ctx(nil, errors.new('execution_error', 'Tool execution error: its result cannot be read: ' .. error_text(fault)))
    end
  else
    log.info('call %s: had ended when its function ended; the result was dropped', id)
  end
  settled(target)
end

function verbs.remote_progress(id, done, total, message)
  local ctx = running(id, 'progress')
  if ctx and type(done) == 'number' then
    total = type(total) == 'number' and total or nil
    ctx:progress(done, total, type(message) == 'string' and message or nil)
  end
end

function verbs.remote_log(id, level, text)
  local ctx = running(id, 'a log message')
  if ctx then
    ctx:log(level, vim.json.decode(text))
  end
end

--- A question to the client: JSON text of `{"key": {"method": …, "params": …}}`.
function verbs.remote_ask(id, ask, text)
  local ctx, target = running(id, 'a question')
  if not ctx then
    return
  end
  local ok, fault = pcall(function()
    ctx:request_inputs(vim.json.decode(text), function(answers, err)
      target:send('remote_answer', id, ask, answers and answers.answer, err)
    end)
  end)
  if not ok then -- the function waits for an answer
    local err = errors.new('execution_error', 'the question cannot be read: ' .. error_text(fault))
    target:send('remote_answer', id, ask, nil, err)
  end
end

--- Handles a message of a process. Never throws: it is a notification, whose error Neovim would show to the user.
---@param verb string
---@param id string
---@param ... any
function M.receive(verb, id, ...)
  local fn = verbs[verb]
  if not fn then
    return log.warn("a tool process sent the unknown message '%s'", tostring(verb))
  end
  log.guard(('call %s: %s'):format(tostring(id), verb), fn, id, ...)
end

return M

--- Tools whose handlers run in another process: calls go there, and end here.
---
--- Receives: calls of their handlers; `remote_result`, `remote_progress`, `remote_log`, `remote_ask` from the process,
--- by `receive`; word that it is gone.
--- Sends: `remote_call`, `remote_cancel`, `remote_answer` to the process, by the target's own way.
--- Does not know about: Python, MCP, how a process is started.
---
--- A call ends once, and here: what the process says of it later is dropped and logged.

local content = require('mcp-tools.content')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')

local M = {}

--- ms; what was told to stop and has not been heard of for so long is forgotten.
M.PATIENCE = 60000

--- A process that runs tools.
---@class mcp-tools.RemoteTarget
---@field send fun(self, event: string, ...) never throws
---@field settled? fun(self) a call of it has left, or what was told to stop has stopped
---@field calls table<string, mcp-tools.Ctx> those that run
---@field stopping table<string, string> id → tool: told to stop, and not heard of since

---@type table<string, mcp-tools.RemoteTarget> id of a call → where it runs
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

--- Runs a handler in the process. The call must have a ctx; it ends when the process says so, or by itself: then the
--- process is told to stop. One that has ended already runs nothing.
---@param target mcp-tools.RemoteTarget
---@param ctx mcp-tools.Ctx
---@param tool table what the process needs to find its function
---@param args table
---@param limit? integer bytes of a result
function M.call(target, ctx, tool, args, limit)
  local id, call = ctx.id, ctx.call
  if call:ended() then
    return log.debug('call %s: it had ended before %s was run for it', id, tool.name)
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
      end, M.PATIENCE)
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

--- The process is gone: what runs there has ended.
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

--- A result as its process wrote it, for the registry.
---@type table<string, fun(ctx: mcp-tools.Ctx, outcome: table)>
local OUTCOMES = {
  empty = function(ctx)
    ctx(nil)
  end,
  text = function(ctx, outcome)
    ctx(outcome.text)
  end,
  --- Data for the handler here.
  data = function(ctx, outcome)
    ctx(vim.json.decode(outcome.text))
  end,
  json = function(ctx, outcome)
    ctx(content.raw('json', outcome.text))
  end,
  --- A result in MCP's own shape.
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

--- The ctx of a call that runs; nil, and a line in the log, when it has ended.
---@param id string
---@param what string
---@return mcp-tools.Ctx?, mcp-tools.RemoteTarget?
local function running(id, what)
  local target = targets[id]
  local ctx = target and target.calls[id]
  if not ctx then
    log.debug('call %s: %s came when it had ended; dropped', tostring(id), what)
  end
  return ctx, target
end

--- What was thrown, without the place in the plugin's own files.
---@param fault any
---@return string
local function why_of(fault)
  return (tostring(fault):gsub('^[^\n]-%.lua:%d+: ', ''))
end

--- Ends a call with what its process gave.
---@param ctx mcp-tools.Ctx
---@param outcome any a table like `{ kind, … }`, if the process keeps to it
local function settle(ctx, outcome)
  local give = OUTCOMES[outcome.kind] or error(('there are none of the kind %s'):format(tostring(outcome.kind)), 0)
  give(ctx, outcome)
end

---@type table<string, fun(id: string, ...)>
local verbs = {}

--- The end of a call: `{ kind, … }`, see `OUTCOMES`.
function verbs.remote_result(id, outcome)
  local target = targets[id]
  if not target then
    return
  end
  targets[id] = nil
  local ctx = target.calls[id]
  target.calls[id], target.stopping[id] = nil, nil
  if ctx then
    local ok, fault = pcall(settle, ctx, outcome)
    if not ok then
      ctx(nil, errors.new('execution_error', 'Tool execution error: its result cannot be read: ' .. why_of(fault)))
    end
  else
    log.info('call %s: its function came to an end after it had ended; dropped', id)
  end
  settled(target)
end

function verbs.remote_progress(id, done, total, message)
  local ctx = running(id, 'progress')
  if ctx and type(done) == 'number' then
    local whole = type(total) == 'number' and total or nil
    ctx:progress(done, whole, type(message) == 'string' and message or nil)
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
    local err = errors.new('execution_error', 'its question cannot be read: ' .. why_of(fault))
    target:send('remote_answer', id, ask, nil, err)
  end
end

--- What a process tells of a call. It never throws: who sends it does not wait for an answer, and an error would be
--- shown to the person.
---@param verb string
---@param id string
---@param ... any
function M.receive(verb, id, ...)
  local fn = verbs[verb]
  if not fn then
    return log.warn('a process of tools sent %s, which is unknown', tostring(verb))
  end
  log.guard(('call %s: %s'):format(tostring(id), verb), fn, id, ...)
end

return M

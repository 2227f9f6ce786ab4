--- Returned values of handlers that should have answered by their ctx: the commonest mistake, found soon.
---
--- Receives: a call whose handler has returned something and has not ended it; the handler's ctx.
--- Sends: the call its end, and its author a warning, when nobody can answer it any more; else a text for its timeout.
--- Does not know about: how handlers are run.
---
--- What a handler returns is ignored, and many return the handle of what they have started. Such a handler has given
--- its ctx to somebody; when nobody has it, no answer can come.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')

local M = {}

--- KiB of work for one step of the garbage collector: less than a millisecond.
local STEP = 1024
--- Full cycles after which an unreachable value is gone: the first may have begun while it was reachable.
local CYCLES = 2

---@class mcp-tools.CollectorWaiter
---@field cycles integer full cycles since it began to wait
---@field done fun()

---@type mcp-tools.CollectorWaiter[]
local waiters = {}

--- Calls `done` once everything that is unreachable now has been collected. A full collection would block the main
--- thread for as long as the heap is large, so it is done in steps, with a turn of the event loop between them.
---@param done fun()
local function after_collection(done)
  table.insert(waiters, { cycles = 0, done = done })
  if #waiters > 1 then
    return
  end
  local function step()
    if collectgarbage('step', STEP) then
      for _, waiter in ipairs(waiters) do
        waiter.cycles = waiter.cycles + 1
      end
      while waiters[1] and waiters[1].cycles >= CYCLES do
        vim.schedule(table.remove(waiters, 1).done) -- one that throws must not stop the others
      end
    end
    if waiters[1] then
      vim.defer_fn(step, 1)
    end
  end
  vim.defer_fn(step, 1)
end

--- Definitions whose calls have been answered later although something was returned.
---@type table<table, true>
local fine = setmetatable({}, { __mode = 'k' })

---@param handler function
---@return string
local function place_of(handler)
  local info = debug.getinfo(handler, 'S')
  return ('%s:%d'):format(info.short_src, info.linedefined)
end

--- What was returned, and what to write instead.
---@param value any
---@param message any returned after nil, as an error is
---@return string text, string remedy
local function told(value, message)
  if value == nil then
    local remedy = 'write `ctx:fail(message)` for `return nil, message`'
    return ('it returned nil and a %s, which is ignored'):format(type(message)), remedy
  end
  local remedy = 'write `ctx(result)` for `return result`, or call the function `run`'
  return ('it returned a %s, which is ignored'):format(type(value)), remedy
end

---@param call mcp-tools.Call
---@param text string
---@param remedy string
local function give_up(call, text, remedy)
  local place = place_of(call.definition.author or call.definition.handler)
  local whole = ('%s, and nothing is left that could answer (%s)'):format(text, place)
  notify.once('unanswered ' .. call.name, 'warn', whole, ('In %s %s'):format(call.name, remedy))
  local message = ('Tool execution error: %s, and nothing is left that could answer: %s'):format(text, remedy)
  call:finish('fail', { error = errors.new('execution_error', message) })
end

--- Looks after a handler that has returned something.
---@param call mcp-tools.Call running
---@param ctx mcp-tools.Ctx not to be held here
---@param value any
---@param message any
function M.look(call, ctx, value, message)
  local text, remedy = told(value, message)
  call.hint = ('%s: %s'):format(text, remedy)
  if fine[call.definition] then
    return
  end
  local held = setmetatable({ ctx }, { __mode = 'v' })
  after_collection(function()
    if call:ended() then
      return
    elseif held[1] then
      fine[call.definition] = true
      log.debug('call %s (%s): %s', call.id, call.name, call.hint)
    else
      give_up(call, text, remedy)
    end
  end)
end

return M

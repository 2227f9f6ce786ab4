--- Returned values of handlers that should have answered by their ctx: the commonest mistake, found at once.
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

--- Definitions whose calls have been answered later although something was returned: the look costs some ms.
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
  vim.schedule(function()
    if call:ended() then
      return
    end
    collectgarbage()
    if held[1] then
      fine[call.definition] = true
      log.debug('call %s (%s): %s', call.id, call.name, call.hint)
    else
      give_up(call, text, remedy)
    end
  end)
end

return M

--- Runs work outside calls, such as the preview in an approval question.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local project = require('mcp-tools.instances.project')
local task = require('mcp-tools.util.task')

local M = {}

local function nothing() end

--- Runs `fn` in a coroutine, with a ctx like that of a call. An error value that it throws counts as its result. Any
--- other error is logged, and `cb` is not called.
---@generic T
---@param fn fun(ctx: mcp-tools.Ctx): T
---@param cb fun(value: T)
function M.run(fn, cb)
  local over, hooks, call = false, {}, {}
  function call.ended()
    return over
  end
  function call.on_end(_, hook)
    table.insert(hooks, hook)
  end
  local fields = { root = project.root(), call = call, cancelled = call.ended }
  fields.on_cancel, fields.covers, fields.progress = nothing, nothing, nothing
  task.run(fields, fn --[[@as fun(task: mcp-tools.Task): any]], function(ok, value)
    over = true
    for _, hook in ipairs(hooks) do
      hook()
    end
    if ok or errors.is(value) then
      return cb(value)
    end
    log.error('work for a question failed: %s', value)
  end)
end

--- Errors that may not occur at the next attempt.
local TRANSIENT = { busy = true, timeout = true, cancelled = true }

--- Computes what a preview shows, then calls `again`, unless the error may not occur at the next attempt.
---@param fn fun(ctx: mcp-tools.Ctx): mcp-tools.Error?
---@param again fun(err: mcp-tools.Error?)
function M.prepare(fn, again)
  M.run(fn, function(err)
    if not (err and TRANSIENT[err.code]) then
      again(err)
    end
  end)
end

return M

--- Runs work outside calls, such as the preview in an approval question.

local log = require('mcp-tools.log')
local project = require('mcp-tools.instances.project')
local task = require('mcp-tools.util.task')

local M = {}

--- Returns a ctx like that of a call, and a function that ends it and its processes.
---@return table ctx
---@return fun() finish
local function new_ctx()
  local over, hooks = false, {}
  local function nothing() end
  local call = {}
  function call.ended()
    return over
  end
  function call.on_end(_, hook)
    table.insert(hooks, hook)
  end
  local ctx = { root = project.root(), call = call }
  ctx.on_cancel, ctx.cancelled, ctx.covers, ctx.progress = nothing, call.ended, nothing, nothing
  return ctx, function()
    over = true
    for _, hook in ipairs(hooks) do
      hook()
    end
  end
end

--- Runs `fn` in a coroutine. An error is logged, and `cb` is not called.
---@generic T
---@param fn fun(ctx: mcp-tools.Ctx): T
---@param cb fun(value: T)
function M.run(fn, cb)
  local fields, finish = new_ctx()
  task.run(fields, fn --[[@as fun(task: mcp-tools.Task): any]], function(ok, value)
    finish()
    if ok then
      cb(value)
    else
      log.error('work for a question failed: %s', value)
    end
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

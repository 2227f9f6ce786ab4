--- Calls tools from Lua: `require('mcp-tools').call(…)`.

local validate = require('mcp-tools.util.validate')
local core = require('mcp-tools.core')
local log = require('mcp-tools.log')
local results = require('mcp-tools.calls.result')
local Ctx = require('mcp-tools.calls.ctx')

local M = {}

--- Options of `call`.
---@class mcp-tools.CallOptions
---@field timeout integer? ms, for tools without their own; 0 = none
---@field on_progress? fun(progress: mcp-tools.Progress)
---@field on_state? fun(state: any)
---@field host string? name of the caller (default "nvim")

--- A running call.
---@class mcp-tools.Handle
---@field id string
---@field cancel fun(self): boolean

--- Makes a listener. While `execute` is still running it does not call `cb`, so that the caller gets the handle first.
local function listener_of(opts, cb)
  return {
    progress = opts.on_progress and function(_, call)
      opts.on_progress(call.latest)
    end,
    state = opts.on_state and function(_, _, state)
      opts.on_state(state)
    end,
    done = function(self, call)
      if self.returned then
        cb(results.value_of(call.outcome), call.outcome.error)
      end
    end,
  }
end

--- Starts a call.
---@param name string
---@param args table
---@param opts mcp-tools.CallOptions
---@param cb fun(result: any, err: mcp-tools.Error?)
---@return mcp-tools.Handle
function M.start(name, args, opts, cb)
  validate('opts.host', opts.host, 'string', true)
  validate('opts.timeout', opts.timeout, 'number', true)
  validate('opts.on_progress', opts.on_progress, 'callable', true)
  validate('opts.on_state', opts.on_state, 'callable', true)
  local listener = listener_of(opts, cb)
  local executor, parent = core.for_call('tool', name).executor, Ctx.running()
  local call = executor:execute(name, vim.deepcopy(args), {
    host = opts.host or 'nvim',
    timeout = opts.timeout,
    listener = listener,
  })
  listener.returned = true
  if parent and not parent:ended() and not call:ended() then
    call:on_end(parent:on_cancel(function()
      call:cancel('parent')
    end))
  end
  if call:ended() then
    cb(results.value_of(call.outcome), call.outcome.error)
  end
  return {
    id = call.id,
    cancel = function()
      return call:cancel('user')
    end,
  }
end

--- Calls a tool in a coroutine, and returns its result.
---@param name string
---@param args table
---@param opts mcp-tools.CallOptions
---@return any result, mcp-tools.Error? err
function M.await(name, args, opts)
  local co = coroutine.running()
  if not co or not coroutine.isyieldable() then
    error('call() without a callback works only in a coroutine; otherwise pass cb(result, err)', 3)
  end
  -- The coroutine of a `run` tool is resumed by its call, any other directly.
  local step = Ctx.step()
    or function()
      local ok, err = coroutine.resume(co)
      if not ok then
        log.error("the coroutine that called '%s' raised an error: %s", name, debug.traceback(co, tostring(err)))
      end
    end
  local ended, waiting
  M.start(name, args, opts, function(result, err)
    ended = { result = result, err = err }
    if waiting then
      step()
    end
  end)
  if not ended then
    waiting = true
    coroutine.yield(Ctx.AWAIT)
  end
  return ended.result, ended.err
end

return M

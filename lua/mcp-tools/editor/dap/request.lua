--- Requests to a debug adapter, awaited until the answer, a timeout, or the end of the session.

local await_until = require('mcp-tools.util.deadline').await_until
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local sessions = require('mcp-tools.editor.dap.sessions')

local M = {}

--- Default timeout, ms.
M.TIMEOUT_MS = 5000

--- Waits for an operation that runs outside the tool's coroutine, in which nvim-dap would yield.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param what string
---@param ms integer
---@param start fun(done: fun(value: any, err: mcp-tools.Error?))
---@return any value
---@return mcp-tools.Error? err
function M.await(ctx, entry, what, ms, start)
  local answer
  await_until(ctx, ms, function(check)
    local function finish(value, err)
      answer = answer or { value = value, err = err }
      check()
    end
    vim.schedule(function()
      if ctx:cancelled() then
        return
      end
      local ok, thrown = log.guard(what, start, finish)
      if not ok then
        local why = tostring(thrown):match('[^\n]*')
        finish(nil, errors.new('tool_error', ('%s failed: %s'):format(what, why)))
      end
    end)
    return sessions.on_change(check)
  end, function()
    return answer or entry.ended
  end)
  if answer then
    return answer.value, answer.err
  elseif entry.ended then
    return nil, errors.new('not_found', ('%s: the debug session has ended'):format(what))
  end
  return nil, errors.new('timeout', ('%s: the debug adapter did not answer within %d ms'):format(what, ms))
end

--- Sends a request and waits for its answer.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param command string
---@param arguments table?
---@param ms? integer
---@return table? body
---@return mcp-tools.Error? err
function M.send(ctx, entry, command, arguments, ms)
  return M.await(ctx, entry, command, ms or M.TIMEOUT_MS, function(done)
    if entry.ended or entry.session.closed then
      return done(nil, errors.new('not_found', 'the debug session has ended'))
    end
    entry.session:request(command, arguments, function(err, body)
      if err then
        return done(nil, errors.new('tool_error', ('%s failed: %s'):format(command, nvim_dap.fault(err))))
      end
      done(body or {})
    end)
  end)
end

return M

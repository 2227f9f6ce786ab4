--- Requests to a debug adapter, awaited: bounded in time, and over when their session is.
---
--- Receives: the ctx of a `run` function, the entry of a session, a DAP request.
--- Sends: its body, or an error value.
--- Does not know about: what the requests mean.

local client = require('mcp-tools.editor.dap.client')
local deadline = require('mcp-tools.util.deadline')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local session_changed = require('mcp-tools.editor.dap.session_changed')
local timer = require('mcp-tools.util.timer')

local M = {}

--- An adapter that takes longer is not asked further.
M.TIMEOUT_MS = 5000

--- Awaits what is started outside of the tool's coroutine, in which nvim-dap would yield.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param what string
---@param ms integer
---@param start fun(done: fun(value: any, err: mcp-tools.Error?))
---@return any value
---@return mcp-tools.Error? err
function M.await(ctx, entry, what, ms, start)
  return ctx:await(function(done)
    local limit, unwatch
    local function finish(value, err)
      if limit then
        limit:stop()
        unwatch()
      end
      done(value, err)
    end
    limit = timer.after(deadline.bound(ctx, ms), function()
      finish(nil, errors.new('timeout', ('%s: the debug adapter has not answered within %d ms'):format(what, ms)))
    end)
    unwatch = session_changed.on(function()
      if entry.ended then
        finish(nil, errors.new('not_found', ('%s: the debug session has ended'):format(what)))
      end
    end)
    ctx:on_cancel(function()
      limit:stop()
      unwatch()
    end)
    vim.schedule(function()
      if ctx:cancelled() then
        return
      end
      local ok, thrown = log.guard(what, start, finish)
      if not ok then
        local why = tostring(thrown):match('[^\n]*')
        finish(nil, errors.new('tool_error', ('%s could not be asked: %s'):format(what, why)))
      end
    end)
  end)
end

--- One request.
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
        return done(nil, errors.new('tool_error', ('%s failed: %s'):format(command, client.fault(err))))
      end
      done(body or {})
    end)
  end)
end

return M

--- Returns a summary of a debug session.

local stop = require('mcp-tools.editor.dap.stop')
local sessions = require('mcp-tools.editor.dap.sessions')

--- Returns the names of an adapter's capabilities.
---@param session table
---@return string[]
local function capabilities(session)
  local names = {}
  for name, value in pairs(session.capabilities or {}) do
    if value == true then
      table.insert(names, (name:gsub('^supports', ''):gsub('Request$', '')))
    end
  end
  table.sort(names)
  return names
end

return {
  name = 'dap_status',
  title = 'State of the debugger',
  description = 'Returns a summary of the debug session: whether one is active, id, name, status (stopped or running),'
    .. ' place, adapter.',
  args = {
    capabilities = { type = 'boolean', description = 'Include the capabilities of the adapter', default = false },
    session_id = sessions.ARG,
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local entry, err = sessions.active(args)
    if not entry then
      if args.session_id then
        return nil, err
      end
      return { active = false, message = err.message }
    end
    local state, which = sessions.state(entry)
    local frame = which.stop and stop.frame(ctx, which)
    return {
      active = true,
      id = which.id,
      name = which.name,
      status = state,
      reason = which.stop and which.stop.reason or nil,
      stopped_thread_id = which.stop and which.stop.thread_id or nil,
      at = frame and stop.named(frame, ctx.root) or nil,
      adapter_type = which.type,
      capabilities = args.capabilities and capabilities(which.session) or nil,
    }
  end,
}

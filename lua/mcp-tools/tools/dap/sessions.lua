--- Lists debug sessions, including ended ones.

local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local stop = require('mcp-tools.editor.dap.stop')
local sessions = require('mcp-tools.editor.dap.sessions')

return {
  name = 'dap_sessions',
  title = 'Debug sessions',
  description = 'Lists debug sessions, including child sessions and the last ended ones: id, name, status, place, lines'
    .. ' of output. focused marks the default session of the other tools.',
  annotations = { read_only = true, idempotent = true },
  run = function(ctx)
    if nvim_dap.loaded() then
      sessions.attach()
    end
    local focused, list = nvim_dap.focused(), {}
    for _, entry in ipairs(sessions.all()) do
      local frame = entry.stop and stop.frame(ctx, entry)
      table.insert(list, {
        id = entry.id,
        name = entry.name,
        adapter_type = entry.type,
        status = entry.ended and 'ended' or entry.stop and 'stopped' or 'running',
        at = frame and stop.named(frame, ctx.root) or nil,
        parent_id = entry.root ~= entry.id and entry.root or nil,
        focused = focused ~= nil and focused.id == entry.id or nil,
        exit_code = entry.exit_code,
        output_lines = entry.output.count,
      })
    end
    return { sessions = list }
  end,
}

--- Lists the threads of a debugged program.

local request = require('mcp-tools.editor.dap.request')
local sessions = require('mcp-tools.editor.dap.sessions')

--- Maximum number of threads in one answer.
local MAX = 200

return sessions.tool(sessions.active, {
  name = 'dap_threads',
  title = 'Threads of the program',
  description = 'Lists the threads of the debugged program: id, name, and whether it is the stopped one.',
  args = {
    timeout_ms = { type = 'integer', description = 'Timeout in ms', default = 5000, minimum = 1, maximum = 60000 },
  },
  annotations = { read_only = true },
  run = function(ctx, entry, args)
    local body, fault = request.send(ctx, entry, 'threads', nil, args.timeout_ms)
    if not body then
      return nil, fault
    end
    local all = body.threads or {}
    return {
      threads = vim.tbl_map(function(thread)
        local stopped = entry.stop ~= nil and entry.stop.thread_id == thread.id
        return { id = thread.id, name = thread.name, stopped = stopped or nil }
      end, vim.list_slice(all, 1, MAX)),
      total = #all,
    }
  end,
})

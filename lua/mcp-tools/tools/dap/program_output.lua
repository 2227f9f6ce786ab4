--- Returns the output of the program.

local output = require('mcp-tools.editor.dap.output')
local sessions = require('mcp-tools.editor.dap.sessions')
local time_slice = require('mcp-tools.util.time_slice')
local variables = require('mcp-tools.editor.dap.variables')

--- Maximum size of all lines, in bytes, and of one line, in characters.
local MAX, MAX_LINE = 32 * 1024, 2000

return sessions.tool(sessions.any, {
  name = 'dap_program_output',
  title = 'Output of the program',
  description = 'Returns the last output of the debugged program, also after its end. Keeps 1000 lines per session from'
    .. ' the first dap call on. To read on, pass next as since.',
  args = {
    category = {
      type = 'string',
      enum = { 'all', 'stdout', 'stderr', 'console' },
      description = 'Category',
      default = 'all',
    },
    lines = {
      type = 'integer',
      description = 'Maximum number of lines',
      default = 50,
      minimum = 1,
      maximum = output.MAX_LINES,
    },
    since = { type = 'integer', description = 'Only lines after this number', default = 0, minimum = 0 },
    include_metadata = { type = 'boolean', description = 'Include number and category of each line', default = false },
  },
  annotations = { read_only = true },
  run = function(ctx, entry, args)
    local found = entry.output:after(args.category, args.since)
    local pause, list, bytes = time_slice.of(ctx), {}, 0
    variables.refresh(ctx)
    local first = args.since > 0 and 1 or math.max(#found - args.lines, 0) + 1
    local last
    for i = first, math.min(first + args.lines - 1, #found) do
      local text = variables.text(found[i].text, MAX_LINE)
      bytes = bytes + #text
      if bytes > MAX and #list > 0 then
        break
      end
      last = found[i].seq
      table.insert(list, args.include_metadata and { seq = last, category = found[i].category, text = text } or text)
      pause()
    end
    entry.output.reported = math.max(entry.output.reported, last or 0)
    return {
      category = args.category,
      line_count = #list,
      lines = list,
      next = last or args.since,
      total = #found,
      ended = entry.ended or nil,
      exit_code = entry.exit_code,
    }
  end,
})

--- A plugin's readme.

local errors = require('mcp-tools.errors')
local folder = require('mcp-tools.editor.plugins.folder')
local plugins = require('mcp-tools.editor.plugins.list')
local result = require('mcp-tools.editor.result')

--- Of the text of one answer.
local MAX_BYTES = 64 * 1024

return {
  name = 'plugin_readme',
  title = "A plugin's readme",
  description = "Reads a plugin's readme, from start_line on; lines count from 1. When the answer has next_line there"
    .. ' is more.',
  args = {
    name = {
      type = 'string',
      description = 'As plugin_list names it; .nvim may be left out',
      required = true,
      minLength = 1,
      maxLength = 200,
    },
    start_line = { type = 'integer', description = 'First line', default = 1, minimum = 1 },
    limit = { type = 'integer', description = 'At most so many lines', default = 150, minimum = 1, maximum = 5000 },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  run = function(ctx, args)
    local plugin, err = plugins.find(args.name)
    if not plugin then
      return ctx(nil, err)
    end
    local name = folder.readme(plugin.path)
    if not name then
      return ctx(
        nil,
        errors.new('not_found', ('name: %s has no readme; plugin_info names its help'):format(plugin.name))
      )
    end
    local text, fault = folder.text(ctx, plugin.path .. '/' .. name)
    if not text then
      return ctx(nil, fault)
    end
    local lines = vim.split(text, '\n', { plain = true })
    if args.start_line > #lines then
      local message = 'start_line: line %d is beyond the end (%d lines)'
      return ctx(nil, errors.new('validation_error', message:format(args.start_line, #lines)))
    end
    local last, bytes = args.start_line - 1, 0
    while last < math.min(#lines, args.start_line + args.limit - 1) do
      bytes = bytes + #lines[last + 1] + 1
      if bytes > MAX_BYTES and last >= args.start_line then
        break
      end
      last = last + 1
    end
    return result.utf8({
      plugin = plugin.name,
      file = name,
      lines = #lines,
      text = table.concat(lines, '\n', args.start_line, last):sub(1, MAX_BYTES),
      next_line = last < #lines and last + 1 or nil,
    })
  end,
}

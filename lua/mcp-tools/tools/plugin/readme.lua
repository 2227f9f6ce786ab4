--- Reads a plugin's readme.

local errors = require('mcp-tools.errors')
local plugins = require('mcp-tools.editor.plugins')
local result = require('mcp-tools.editor.result')
local utf8 = require('mcp-tools.util.utf8')

return {
  name = 'plugin_readme',
  title = "A plugin's readme",
  description = "Returns a plugin's readme.",
  args = {
    name = plugins.NAME,
    start_line = { type = 'integer', description = 'First line', default = 1, minimum = 1 },
    limit = {
      type = 'integer',
      description = 'Maximum number of lines',
      default = 150,
      minimum = 1,
      maximum = 5000,
      hidden = true,
    },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  run = function(ctx, args)
    local plugin, err = plugins.find(args.name)
    if not plugin then
      return nil, err
    end
    local name = plugins.readme(plugin.path)
    if not name then
      return nil, errors.new('not_found', ('name: %s has no readme; plugin_info names its help'):format(plugin.name))
    end
    local text, fault = plugins.text(ctx, plugin.path .. '/' .. name)
    if not text then
      return nil, fault
    end
    local lines = vim.split(text, '\n', { plain = true })
    local bad = result.range_fault(args, #lines)
    if bad then
      return nil, bad
    end
    local part = vim.list_slice(lines, args.start_line, result.last_line(args, #lines))
    return result.lines(part, { plugin = (utf8.repair(plugin.name)), file = (utf8.repair(name)) }, args, #lines)
  end,
  render = function(value)
    local head = ('%s, lines %d-%d of %d'):format(value.file, value.start_line, value.end_line, value.lines)
    head = value.next_line and ('%s; start_line=%d goes on'):format(head, value.next_line) or head
    return head .. '\n' .. value.text
  end,
}

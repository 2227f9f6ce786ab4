--- Calls a public function of a plugin.

local arguments = require('mcp-tools.editor.arguments')
local errors = require('mcp-tools.errors')
local execute = require('mcp-tools.editor.execute')
local functions = require('mcp-tools.editor.plugins.functions')
local time_slice = require('mcp-tools.util.time_slice')

return {
  name = 'plugin_call',
  title = 'Call a plugin',
  description = 'Calls a public function of a plugin. Returns its result and what it printed.',
  search_hint = 'run a plugin',
  args = {
    module = vim.tbl_extend('error', functions.MODULE, { required = true }),
    ['function'] = { type = 'string', description = 'Name', required = true, minLength = 1, maxLength = 200 },
    args = { type = 'array', description = 'Arguments', items = {}, default = {} },
    max_bytes = arguments.bytes('Maximum bytes of result and output', 32768, 1048576),
  },
  annotations = { read_only = false, destructive = true, idempotent = false, open_world = true },
  explicit = true,
  always_ignores = { 'max_bytes' },
  needs_approval = 'it calls a function of a plugin, which can do whatever you can',
  preview = function(args)
    errors.check(functions.missing(args.module, args['function']))
    local list = {}
    for i, value in ipairs(args.args or {}) do
      list[i] = vim.inspect(value)
    end
    return ("require('%s').%s(%s)"):format(args.module, args['function'], table.concat(list, ', '))
  end,
  run = function(ctx, args)
    local fn = errors.unwrap(functions.find(args.module, args['function']))
    local list = { n = #args.args, unpack(args.args) }
    return execute.lua(ctx, fn, list, args.max_bytes, time_slice.of(ctx))
  end,
  render = execute.render,
}

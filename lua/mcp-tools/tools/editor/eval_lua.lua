--- Runs Lua code in the editor.

local arguments = require('mcp-tools.editor.arguments')
local errors = require('mcp-tools.errors')
local execute = require('mcp-tools.editor.execute')
local time_slice = require('mcp-tools.util.time_slice')

---@param code string
---@return function?
---@return mcp-tools.Error? err
local function chunk(code)
  local fn, fault = load(code, '=code', 't') -- no bytecode, which the user could not review
  return fn, not fn and errors.new('validation_error', 'code: ' .. fault) or nil
end

return {
  name = 'editor_eval_lua',
  title = 'Run Lua',
  description = 'Runs Lua code in the editor, after asking the user. Returns what it prints and its first result.',
  args = {
    code = {
      type = 'string',
      description = 'Lua chunk; `...` are its `args`',
      required = true,
      minLength = 1,
      maxLength = 100000,
    },
    args = { type = 'array', description = 'Arguments of the chunk', items = {}, default = {} },
    max_bytes = arguments.bytes('Maximum size of result and of output', 32768, 1048576),
  },
  annotations = { read_only = false, destructive = true, idempotent = false, open_world = true },
  explicit = true,
  always_ignores = { 'max_bytes' },
  needs_approval = 'it runs Lua in the editor, which can do anything that you can',
  preview = function(args)
    local fn, err = chunk(args.code)
    return fn and args.code, err
  end,
  run = function(ctx, args)
    local fn = errors.unwrap(chunk(args.code))
    local list = { n = #args.args, unpack(args.args) }
    return execute.lua(ctx, fn, list, args.max_bytes, time_slice.of(ctx))
  end,
  render = execute.render,
}

--- Starts a program under the debugger and describes its first stop.

local control = require('mcp-tools.editor.dap.control')
local launch = require('mcp-tools.editor.dap.launch')
local project = require('mcp-tools.instances.project')

--- Fields of a configuration, and arguments of the wait.
local ARGS = {
  configuration = { type = 'string', description = 'Name from dap_configurations; other arguments override it' },
  type = { type = 'string', description = 'Adapter, such as python; required without configuration' },
  request = { type = 'string', enum = { 'launch', 'attach' }, description = 'Required without configuration' },
  name = { type = 'string', description = 'Any name for the session; required without configuration' },
  program = { type = 'string', description = 'File to run; may contain ${file}, ${workspaceFolder}' },
  args = { type = 'array', items = { type = 'string' }, description = 'Arguments of the program' },
  cwd = { type = 'string', description = 'Working directory; default: the project' },
  env = { type = 'object', additionalProperties = { type = 'string' }, description = 'Environment variables to add' },
  host = { type = 'string', description = 'Attach to it' },
  port = { type = 'integer', description = 'Attach to it', minimum = 1, maximum = 65535 },
  console = {
    type = 'string',
    enum = { 'internalConsole', 'integratedTerminal', 'externalTerminal' },
    description = 'Default: internalConsole; others open a window, and their output is not available',
  },
  options = { type = 'object', description = 'Other fields of the adapter, such as {"stopOnEntry": true}' },
  exception_filters = {
    type = 'array',
    items = { type = 'string' },
    description = 'Exception filters of the adapter from the start, such as raised',
  },
  wait_until_paused = control.WAIT_ARGS.wait_until_paused,
  wait_timeout_ms = control.WAIT_ARGS.wait_timeout_ms,
}

return {
  name = 'dap_run',
  title = 'Start debugging',
  description = 'Starts a program in the debugger and returns its first stop: reason, place, five lines of code,'
    .. ' callers, locals, output; or its end. Set breakpoints first (dap_set_breakpoint). Requires type, request and'
    .. ' name, or configuration.',
  args = ARGS,
  annotations = { read_only = false, destructive = false, open_world = true },
  timeout = control.TOOL_TIMEOUT,
  always_for = { 'configuration', 'type', 'request', 'program', 'args', 'cwd', 'env', 'host', 'port', 'options' },
  needs_approval = function(args)
    return ('it runs %s under the debugger'):format(args.program or args.configuration or args.name or 'a program')
  end,
  preview = function(args)
    return launch.preview(args, project.root())
  end,
  run = function(ctx, args)
    local config, err = launch.configuration(args, ctx.root)
    err = config and launch.has_changed(args, config) or err
    if not config or err then
      return nil, err
    end
    return launch.run(ctx, config, args)
  end,
}

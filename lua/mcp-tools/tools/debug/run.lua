--- Runs a program or a test under the debugger to its first stop.

local breakpoints = require('mcp-tools.editor.dap.breakpoints')
local command = require('mcp-tools.editor.shell.command')
local control = require('mcp-tools.editor.dap.control')
local errors = require('mcp-tools.errors')
local launch = require('mcp-tools.editor.dap.launch')
local plan = require('mcp-tools.editor.runner.plan')
local project = require('mcp-tools.instances.project')
local stop = require('mcp-tools.editor.dap.stop')

--- Fields of a configuration that guill/mcp-tools.nvim has as arguments.
local OPTIONS = { 'type', 'request', 'name', 'cwd', 'env', 'host', 'port' }

--- Returns the filters for exceptions that are raised, also if the program catches them.
---@param capabilities table
---@return string[]
local function raised(capabilities)
  local names = vim.tbl_map(function(filter)
    return filter.filter
  end, capabilities.exceptionBreakpointFilters or {})
  for _, name in ipairs({ 'raised', 'all' }) do
    if vim.list_contains(names, name) then
      return { name }
    end
  end
  return names
end

--- Returns debugpy's filter for exceptions that the project's own code does not catch, such as that of a failed test.
---@return string[]
local function unhandled()
  return { 'userUnhandled' }
end

---@return string[]
local function none()
  return {}
end

--- Returns the configuration that runs a test. Only pytest can run under the debugger.
---@param args table
---@param root string
---@return table config
---@return mcp-tools.shell.Command command
local function of_test(args, root)
  local extra = vim.list_extend({ '--capture=no' }, args.args or {})
  local pytest = errors.unwrap(plan.of({ tests = { args.test }, runner = 'pytest', args = extra }, root)).command
  return vim.tbl_deep_extend('force', {
    type = 'python',
    request = 'launch',
    name = args.test,
    module = 'pytest',
    python = pytest.argv[1],
    args = vim.list_slice(pytest.argv, 4), -- after `python -m pytest`
    cwd = pytest.cwd,
    env = pytest.env,
    console = 'internalConsole',
    justMyCode = true,
  }, args.options or {}),
    pytest
end

---@param args table
---@param root string
---@return table config
---@return mcp-tools.shell.Command? command of a test
local function configuration(args, root)
  local given = vim.tbl_filter(function(name)
    return args[name] ~= nil
  end, { 'program', 'test', 'configuration' })
  if vim.list_contains(given, 'test') and #given > 1 then
    error(errors.new('validation_error', 'test: cannot be used together with program or configuration'), 0)
  elseif args.test then
    return of_test(args, root)
  end
  return errors.unwrap(launch.configuration(args, root))
end

---@param args table
---@return mcp-tools.dap.Filters?
local function filters(args)
  if args.exceptions then
    return raised
  elseif args.exceptions == false then
    return none
  end
  return args.test and unhandled or nil
end

--- Breakpoints of one run; messages are for the user's own, which stay.
local POINT = vim.deepcopy(breakpoints.POINT)
POINT.properties.log_message.hidden = true

return {
  name = 'debug_run',
  title = 'Debug',
  description = 'Runs a program or a test under the debugger until a breakpoint, an exception or its end. Returns the'
    .. ' stop: place, source, callers, local variables (or the values of `expressions`), output. The breakpoints given'
    .. ' here are removed at the end.',
  search_hint = 'debugger, run or debug a failing test, breakpoint, value at run time, launch, attach',
  args = {
    program = { type = 'string', description = 'File to run' },
    test = { type = 'string', description = 'Pytest test to run instead' },
    configuration = { type = 'string', description = 'Launch configuration to run instead' },
    args = { type = 'array', items = { type = 'string' }, description = 'Command-line arguments' },
    breakpoints = { type = 'array', items = POINT, description = 'Where to stop' },
    exceptions = { type = 'boolean', description = 'Stop where an exception is raised; default: if it is not caught' },
    expressions = control.ARGS.expressions,
    options = {
      type = 'object',
      description = 'Other fields of the launch configuration: `cwd`, `env`, `stopOnEntry`; for attaching `type`,'
        .. ' `request`, `host`, `port`',
      hidden = true,
    },
    timeout_ms = control.ARGS.timeout_ms,
  },
  aliases = {
    dap_run = function(args)
      local options = {}
      for _, name in ipairs(OPTIONS) do
        options[name], args[name] = args[name], nil
      end
      args.options = options
      return control.old_wait(args)
    end,
  },
  annotations = { read_only = false, destructive = true, open_world = true },
  recommended = true,
  timeout = control.TOOL_TIMEOUT,
  always_ignores = { 'timeout_ms' },
  needs_approval = function(args)
    return ('it runs %s under the debugger'):format(args.program or args.test or args.configuration or 'a program')
  end,
  preview = function(args)
    errors.check(args.breakpoints and breakpoints.refusal(args.breakpoints))
    local config, shown = configuration(args, project.root())
    errors.check(launch.refusal(config))
    local text = shown and 'under the debugger ' .. command.preview(shown) or launch.preview(args, config)
    local lines = { text }
    for _, point in ipairs(args.breakpoints or {}) do
      table.insert(lines, breakpoints.preview(point))
    end
    for _, expression in ipairs(args.expressions or {}) do
      table.insert(lines, 'Evaluates: ' .. expression)
    end
    return table.concat(lines, '\n')
  end,
  run = function(ctx, args)
    local config = configuration(args, ctx.root)
    errors.check(launch.has_changed(args, config))
    local remove = args.breakpoints and errors.unwrap(breakpoints.add(ctx, args.breakpoints)) or nil
    local answer = errors.unwrap(launch.run(ctx, config, args, filters(args), remove))
    if answer.status == 'ended' and args.breakpoints and #args.breakpoints > 0 then
      answer.note = 'it reached none of the breakpoints'
    end
    return answer
  end,
  render = stop.render,
}

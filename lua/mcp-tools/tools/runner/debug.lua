--- Runs one test under the debugger and describes its first stop.

local command = require('mcp-tools.editor.shell.command')
local control = require('mcp-tools.editor.dap.control')
local errors = require('mcp-tools.errors')
local launch = require('mcp-tools.editor.dap.launch')
local plan = require('mcp-tools.editor.runner.plan')
local project = require('mcp-tools.instances.project')

--- debugpy's filter for exceptions that the project's own code does not catch, such as that of a failed test.
local FAILURES = { 'userUnhandled' }

--- Returns the plan for one test. It always uses pytest, the only runner with support for the debugger.
---@param args table
---@param root string
---@return mcp-tools.runner.Plan?
---@return mcp-tools.Error? err
local function plan_of(args, root)
  if (args.test == nil) == (args.path == nil and args.bufnr == nil) then
    return nil, errors.new('validation_error', 'give exactly one of test, path and bufnr')
  end
  return plan.of({
    path = args.path,
    bufnr = args.bufnr,
    line = args.line,
    scope = not args.test and 'nearest' or nil,
    tests = args.test and { args.test } or nil,
    runner = 'pytest',
    args = vim.list_extend({ '--capture=no' }, args.args or {}),
  }, root)
end

---@param what mcp-tools.runner.Plan
---@param args table
---@return table
local function configuration(what, args)
  local argv = what.command.argv
  return {
    type = args.type,
    request = 'launch',
    name = 'runner_debug',
    module = 'pytest',
    python = argv[1],
    args = vim.list_slice(argv, 4), -- after `python -m pytest`
    cwd = what.command.cwd,
    env = what.command.env,
    console = 'internalConsole',
    justMyCode = true,
  }
end

return {
  name = 'runner_debug',
  title = 'Debug a test',
  description = 'Runs one pytest test in the debugger (nvim-dap, debugpy) and returns the first stop, at a breakpoint'
    .. ' or at its failure: place, code, callers, locals, output. Continue with the dap tools. Requires test, or a'
    .. ' file and a line in the test.',
  args = {
    test = { type = 'string', description = 'Id from runner_run or runner_discover' },
    path = { type = 'string', description = 'Test file' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0 },
    line = { type = 'integer', description = 'Line in the test; default: the cursor', minimum = 1 },
    args = { type = 'array', items = { type = 'string' }, description = 'Additional arguments for pytest' },
    type = { type = 'string', description = 'Adapter of nvim-dap', default = 'python' },
    stop_at_failure = { type = 'boolean', description = 'Stop where the test fails', default = true },
    wait_until_paused = control.WAIT_ARGS.wait_until_paused,
    wait_timeout_ms = control.WAIT_ARGS.wait_timeout_ms,
  },
  annotations = { read_only = false, destructive = true, open_world = true },
  timeout = control.TOOL_TIMEOUT,
  always_for = { 'type', 'test', 'args' },
  needs_approval = 'it runs a test, and with it code of the project, under the debugger',
  preview = function(args)
    local what, err = plan_of(args, project.root())
    err = what and launch.refusal(configuration(what, args)) or err
    if not what or err then
      return nil, err
    end
    return 'under the debugger ' .. command.preview(what.command)
  end,
  run = function(ctx, args)
    local what, err = plan_of(args, ctx.root)
    if not what then
      return nil, err
    end
    local answer, fault = launch.run(ctx, configuration(what, args), {
      wait_until_paused = args.wait_until_paused,
      wait_timeout_ms = args.wait_timeout_ms,
      exception_filters = args.stop_at_failure and FAILURES or nil,
    })
    if not answer then
      return nil, fault
    end
    return answer
  end,
}

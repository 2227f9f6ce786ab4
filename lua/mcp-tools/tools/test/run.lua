--- Runs tests, or waits for a run that takes longer.

local background = require('mcp-tools.editor.process.background')
local buffers = require('mcp-tools.editor.buffer')
local command = require('mcp-tools.editor.shell.command')
local errors = require('mcp-tools.errors')
local sessions = require('mcp-tools.util.session')
local plan = require('mcp-tools.editor.runner.plan')
local project = require('mcp-tools.instances.project')
local redacted_text = require('mcp-tools.editor.result.redacted_text')
local report = require('mcp-tools.editor.runner.report')
local runs = require('mcp-tools.editor.runner.runs')
local utf8 = require('mcp-tools.util.utf8')

--- Returns the run that a call waits for; starts it unless the call names one.
---@param ctx mcp-tools.Ctx
---@param args table
---@return mcp-tools.runner.Run?
---@return mcp-tools.Error? err
local function run_of(ctx, args)
  if args.run then
    local run = runs.get(ctx, args.run)
    if run and args.cancel then
      runs.cancel(run)
    end
    local text = 'run: there is no run %s; leave it out to start one'
    return run, not run and errors.new('not_found', text:format(utf8.cut(args.run, 200))) or nil
  end
  local what = errors.unwrap(plan.of(args, ctx.root))
  redacted_text.learn(ctx, ctx.root) -- before progress reports them
  local run = errors.unwrap(runs.start(what, { root = ctx.root, owner = sessions.owner_of(ctx) }))
  run.unsaved = buffers.unsaved(ctx.root)
  ctx:on_cancel(function()
    runs.cancel(run)
  end)
  return run
end

return {
  name = 'test_run',
  title = 'Run tests',
  description = 'Runs tests: all, of a file, the one at a line, by name or id, or those that failed last (also when the'
    .. ' user ran them). Returns counts and each failure with path, line and message; a long run returns `run` to'
    .. ' wait for.',
  search_hint = 'pytest, jest, neotest, npm test, make test, unit tests, failing, rerun',
  args = {
    path = { type = 'string', description = 'Test file or directory' },
    line = { type = 'integer', description = 'Line in the test', minimum = 1 },
    at_cursor = { type = 'boolean', description = "The test at the user's cursor", default = false },
    tests = { type = 'array', items = { type = 'string' }, minItems = 1, description = 'Test names or ids' },
    last_failed = { type = 'boolean', description = 'Those that failed last', default = false },
    run = { type = 'string', description = 'Run to wait for' },
    timeout_ms = {
      type = 'integer',
      description = 'Maximum time to wait',
      default = 45000, -- below the limit of every client
      minimum = 0,
      maximum = command.TIMEOUT.maximum,
    },
    cancel = { type = 'boolean', description = 'End `run`', default = false, hidden = true },
    runner = {
      type = 'string',
      description = 'neotest, pytest, npm:<script> or make:<target>',
      hidden = true,
    },
    args = {
      type = 'array',
      items = { type = 'string' },
      description = 'Additional arguments for the runner',
      hidden = true,
    },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
    limit = {
      type = 'integer',
      description = 'Maximum number of failures',
      default = 20,
      minimum = 0,
      maximum = 100,
      hidden = true,
    },
    offset = { type = 'integer', description = 'Number of failures to skip', default = 0, minimum = 0, hidden = true },
  },
  annotations = { read_only = false, destructive = true, open_world = true },
  recommended = true,
  always_load = true,
  timeout = command.TOOL_TIMEOUT,
  always_ignores = { 'timeout_ms', 'limit', 'offset' },
  short_lived = { 'run', 'at_cursor', 'last_failed', 'bufnr' },
  needs_approval = function(args, call)
    return not args.run and 'it runs tests, and with them code of the project' or runs.reason(call, args.run)
  end,
  preview = function(args)
    if args.run then
      return (args.cancel and 'ends ' or 'waits for ') .. args.run
    end
    errors.check(runs.refusal())
    return plan.preview(args, project.root())
  end,
  run = function(ctx, args)
    local run = errors.unwrap(run_of(ctx, args))
    run.on_output = redacted_text.progress(ctx)
    background.await(ctx, run, args.timeout_ms)
    run.on_output = nil
    runs.read_so_far(ctx, run)
    return report.of(run, args)
  end,
  render = report.render,
}

--- Runs tests.

local background = require('mcp-tools.editor.process.background')
local command = require('mcp-tools.editor.shell.command')
local errors = require('mcp-tools.errors')
local owners = require('mcp-tools.util.owner')
local plan = require('mcp-tools.editor.runner.plan')
local redacted_text = require('mcp-tools.editor.result.redacted_text')
local project = require('mcp-tools.instances.project')
local runs = require('mcp-tools.editor.runner.runs')
local buffers = require('mcp-tools.editor.buffer')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum wait for the results of a cancelled run, ms.
local END_MS = 5000

---@param ctx mcp-tools.Ctx
---@param args table
local function cancel(ctx, args)
  local run = runs.get(ctx, args.cancel)
  if not run then
    return nil, errors.new('not_found', ('cancel: there is no run %s'):format(utf8.cut(args.cancel, 200)))
  end
  runs.cancel(run)
  background.await(ctx, run, END_MS)
  return runs.report(run, { limit = args.limit, offset = 0 })
end

return {
  name = 'runner_run',
  title = 'Run tests',
  description = 'Runs tests: the one nearest to a line, a file, all, or by id; with neotest, pytest, an npm script or a'
    .. ' make target. Returns failures with path, line and message, and fills the quickfix list. background=true'
    .. ' returns at once: poll runner_results, end with cancel.',
  args = {
    scope = {
      type = 'string',
      enum = { 'nearest', 'file', 'all' },
      description = 'Default: nearest with line, file with path or bufnr, otherwise all',
    },
    path = { type = 'string', description = 'Test file' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0 },
    line = { type = 'integer', description = 'Line in the test; default: the cursor', minimum = 1 },
    tests = {
      type = 'array',
      items = { type = 'string' },
      minItems = 1,
      description = 'Ids from failures (pytest, neotest)',
    },
    runner = {
      type = 'string',
      description = 'neotest, pytest, npm:<script> or make:<target>; default: chosen by file and project',
    },
    args = { type = 'array', items = { type = 'string' }, description = 'Additional arguments for the runner' },
    timeout_ms = command.TIMEOUT,
    background = { type = 'boolean', description = 'Return at once', default = false },
    cancel = { type = 'string', description = 'run_id to end instead' },
    quickfix = { type = 'boolean', description = 'Fill the quickfix list', default = true },
    limit = runs.ARGS.limit,
  },
  annotations = { read_only = false, destructive = true, open_world = true },
  timeout = command.TOOL_TIMEOUT,
  always_for = { 'runner', 'tests', 'args' },
  short_lived = { 'cancel' },
  needs_approval = function(args, call)
    return not args.cancel and 'it runs tests, and with them code of the project' or runs.reason(call, args.cancel)
  end,
  preview = function(args)
    if args.cancel then
      return 'ends ' .. args.cancel
    end
    local busy = runs.refusal()
    if busy then
      return nil, busy
    end
    return plan.preview(args, project.root())
  end,
  run = function(ctx, args)
    if args.cancel then
      return cancel(ctx, args)
    end
    local what, err = plan.of(args, ctx.root)
    if not what then
      return nil, err
    end
    redacted_text.learn(ctx, ctx.root) -- before progress reports them
    local run, busy = runs.start(what, {
      root = ctx.root,
      owner = owners.of(ctx),
      timeout = args.timeout_ms,
      quickfix = args.quickfix,
      on_output = not args.background and redacted_text.progress(ctx) or nil,
    })
    if not run then
      return nil, busy
    end
    local not_seen = buffers.unsaved(ctx.root)
    if not args.background then
      ctx:on_cancel(function()
        runs.cancel(run)
      end)
      background.await(ctx, run)
    end
    local result = runs.report(run, { limit = args.limit, offset = 0 })
    result.unsaved = not_seen
    return result
  end,
}

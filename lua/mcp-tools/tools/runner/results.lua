--- Returns the results of a test run so far.

local background = require('mcp-tools.editor.process.background')
local deadline = require('mcp-tools.util.deadline')
local errors = require('mcp-tools.errors')
local runs = require('mcp-tools.editor.runner.runs')
local utf8 = require('mcp-tools.util.utf8')

return {
  name = 'runner_results',
  title = 'Test results',
  description = 'Returns the results of a test run: state (running, done, cancelled, timed_out), counts, and a page of'
    .. ' failures. For runs in the background, or to read the last run again; 20 runs are kept. next_offset means'
    .. ' there are more failures.',
  args = vim.tbl_extend('error', runs.ARGS, {
    run_id = { type = 'string', description = 'Default: the last run of this session' },
    wait_ms = background.WAIT,
  }),
  annotations = { read_only = true, idempotent = true },
  needs_approval = function(args, call)
    return runs.reason(call, args.run_id)
  end,
  run = function(ctx, args)
    local run = runs.get(ctx, args.run_id)
    if not run then
      local what = args.run_id and 'run_id: there is no run ' .. utf8.cut(args.run_id, 200)
        or 'this session has run no tests yet'
      return nil, errors.new('not_found', what .. '; runner_run starts one')
    end
    local ms = args.wait_ms > 0 and deadline.bound(ctx, args.wait_ms) or 0
    background.await(ctx, run, ms)
    return runs.report(run, args)
  end,
}

--- What a run of tests has come to so far.

local background = require('mcp-tools.editor.process.background')
local deadline = require('mcp-tools.util.deadline')
local errors = require('mcp-tools.errors')
local report = require('mcp-tools.editor.runner.report')
local runs = require('mcp-tools.editor.runner.runs')
local utf8 = require('mcp-tools.util.utf8')

return {
  name = 'runner_results',
  description = 'What a run of tests came to: state (running, done, cancelled, timed_out), counts, failures in pages;'
    .. ' of runner_run with background, or the last run again. 20 runs are kept. When the answer has next_offset there'
    .. ' are more failures.',
  args = vim.tbl_extend('error', report.ARGS, {
    run_id = { type = 'string', description = 'The run; default: the last one' },
    wait_ms = {
      type = 'integer',
      description = 'Wait so long for its end',
      default = 0,
      minimum = 0,
      maximum = 120000,
    },
  }),
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local run = runs.get(ctx, args.run_id)
    if not run then
      local what = args.run_id and 'run_id: there is no run ' .. utf8.cut(args.run_id, 200)
        or 'no tests have been run yet'
      return ctx(nil, errors.new('not_found', what .. '; runner_run starts one'))
    end
    local ms = args.wait_ms > 0 and deadline.bound(ctx, args.wait_ms) or 0
    background.await(ctx, run, ms)
    return report.of(run, args)
  end,
}

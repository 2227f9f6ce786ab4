--- Counts steps with a pause before each, to test progress and cancellation.

return {
  name = 'test_progress',
  title = 'Test: report progress',
  description = 'Runs the given number of steps with a pause before each, and reports progress. For testing progress,'
    .. ' timeouts and cancellation.',
  args = {
    steps = { type = 'integer', description = 'Number of steps', default = 5, minimum = 1, maximum = 10000 },
    delay_ms = {
      type = 'integer',
      description = 'Pause before each step in ms',
      default = 200,
      minimum = 0,
      maximum = 60000,
    },
  },
  annotations = { read_only = true },
  run = function(ctx, args)
    for step = 1, args.steps do
      ctx:await(function(done)
        vim.defer_fn(done, args.delay_ms)
      end)
      ctx:progress(step, args.steps, ('step %d of %d'):format(step, args.steps))
    end
    return { steps = args.steps }
  end,
}

--- Lets the person choose: a tool that answers when somebody does (guill's name and shape).

return {
  name = 'test_async_prompt',
  description = 'Asks the person at the editor to choose one of the options. For trying a tool that answers later.',
  args = {
    prompt = { type = 'string', description = 'Question to show', required = true },
    options = {
      type = 'array',
      items = { type = 'string' },
      minItems = 1,
      description = 'Options to choose from',
      required = true,
    },
  },
  annotations = { read_only = true },
  execute = function(ctx, args)
    -- Later: vim.ui.select may hold the editor, and the request that brought the call must be answered first.
    vim.schedule(function()
      if ctx:cancelled() then
        return
      end
      vim.ui.select(args.options, { prompt = args.prompt }, function(choice, index)
        if not ctx:cancelled() then
          ctx(choice and { selected = choice, index = index } or { cancelled = true })
        end
      end)
    end)
  end,
}

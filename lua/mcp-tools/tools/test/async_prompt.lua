--- Lets the user choose, to test a tool that answers later; compatible with guill/mcp-tools.nvim.

local sanitize = require('mcp-tools.util.sanitize')

return {
  name = 'test_async_prompt',
  title = 'Test: ask for a choice',
  description = 'Asks the user to choose one of the options. For testing a tool that answers later.',
  args = {
    prompt = { type = 'string', description = 'Question to show', maxLength = 500, required = true },
    options = {
      type = 'array',
      items = { type = 'string', maxLength = 200 },
      minItems = 1,
      maxItems = 50,
      description = 'Options to choose from',
      required = true,
    },
  },
  annotations = { read_only = true },
  needs_approval = 'it opens a menu that can block the editor until the user chooses',
  execute = function(ctx, args)
    -- Scheduled: vim.ui.select may block the main thread, and the request must be answered first.
    vim.schedule(function()
      if ctx:cancelled() then
        return
      end
      local menu = { prompt = sanitize.line(args.prompt), format_item = sanitize.line }
      vim.ui.select(args.options, menu, function(choice, index)
        if not ctx:cancelled() then
          ctx(choice and { selected = choice, index = index } or { cancelled = true })
        end
      end)
    end)
  end,
}

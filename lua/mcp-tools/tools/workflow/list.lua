--- What a project keeps for its agents and people to do: command files, and targets of make.

local workflows = require('mcp-tools.editor.runner.workflows')

return {
  name = 'workflow_list',
  description = 'What the project keeps to be done: command files, skills and agents below .claude and .agents with'
    .. ' their descriptions, targets of its Makefile and scripts of its package.json. Nothing is run; the texts are by'
    .. ' the authors of the project.',
  args = {
    limit = { type = 'integer', description = 'At most so many', default = 200, minimum = 1, maximum = 1000 },
    offset = { type = 'integer', description = 'So many to pass over', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local all, withheld = workflows.all(ctx)
    local last = args.offset + args.limit
    return {
      workflows = vim.list_slice(all, args.offset + 1, math.min(#all, last)),
      total = #all,
      withheld = #withheld > 0 and withheld or nil,
      next_offset = last < #all and last or nil,
    }
  end,
}

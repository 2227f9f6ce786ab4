-- The editor's side of `make demo`: a plugin manager would load the plugin, a user would write the rest.

vim.opt.runtimepath:prepend(vim.fs.dirname(vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))))

local mcp_tools = require('mcp-tools')
_G.Demo = {
  stopped = vim.NIL --[[@as any]],
  ready = false,
}

mcp_tools.setup({
  tools = { 'test', 'buffer' },
  bridge = { python = vim.env.MCP_TOOLS_DEMO_PYTHON },
  on_ready = function()
    Demo.ready = true
  end,
})

mcp_tools.register({
  name = 'word_count',
  description = 'Counts the words of a text.',
  args = { text = { type = 'string', description = 'Text to count', required = true } },
  annotations = { read_only = true },
  execute = function(ctx, args)
    ctx({ words = #vim.split(vim.trim(args.text), '%s+') })
  end,
})

mcp_tools.register({
  name = 'slow_search',
  description = 'Searches for a while, reports how far it is, and stops when it is cancelled.',
  args = { parts = { type = 'integer', description = 'Parts to search', default = 5 } },
  annotations = { read_only = true },
  timeout = 1000,
  run = function(ctx, args)
    ctx:on_cancel(function(reason)
      Demo.stopped = ('slow_search stopped after part %d (%s)'):format(Demo.part, reason)
    end)
    for part = 1, args.parts do
      ctx:await(function(done)
        vim.defer_fn(done, 120)
      end)
      Demo.part = part
      ctx:progress(part, args.parts, ('part %d of %d'):format(part, args.parts))
    end
    return ('searched %d parts'):format(args.parts)
  end,
})

mcp_tools.register({
  name = 'delete_everything',
  description = 'Would delete everything, which is why it asks first.',
  annotations = { destructive = true },
  execute = function(ctx)
    ctx('it ran, and that should not have happened')
  end,
})

--- The report of `:checkhealth mcp-tools`, as lines.
function Demo.health()
  vim.cmd('checkhealth mcp-tools')
  local lines = vim.api.nvim_buf_get_lines(0, 0, -1, false)
  vim.cmd('bwipeout!')
  return lines
end

function Demo.start()
  mcp_tools.start()
  return true
end

function Demo.endpoint()
  return Demo.ready and mcp_tools.endpoint() or vim.NIL
end

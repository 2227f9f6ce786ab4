-- claudecode.nvim beside the agent of Claude Code: never two files for one folder, since the agent connects to
-- neither then. Without a checkout (CLAUDECODE) a double stands for it: its table, as its own health check reads it.

local agent = require('mcp-tools.agents.known.claude')
local t = require('helpers')

local CHECKOUT = vim.env.CLAUDECODE

describe('claudecode.nvim', function()
  it('has the agent of Claude Code stay off for as long as it runs', function()
    t.eq(nil, agent.skip())
    package.loaded.claudecode = { state = {} }
    t.eq(nil, agent.skip())
    package.loaded.claudecode.state.server = {}
    t.matches('claudecode.nvim is running', agent.skip())
    package.loaded.claudecode = true -- of another plugin
    t.eq(nil, agent.skip())
    package.loaded.claudecode = nil
  end)

  if CHECKOUT then
    it('itself does so, and keeps its own file', function()
      vim.opt.runtimepath:prepend(CHECKOUT)
      vim.env.CLAUDE_CONFIG_DIR = vim.fn.tempname()
      local theirs = require('claudecode')
      theirs.setup({ auto_start = false, log_level = 'error' })
      t.eq(nil, agent.skip())
      t.ok((theirs.start(false)))
      local lock = ('%s/ide/%d.lock'):format(vim.env.CLAUDE_CONFIG_DIR, theirs.state.port)
      t.matches('claudecode.nvim is running', agent.skip())
      t.eq(1, vim.fn.filereadable(lock))
      t.ok(theirs.stop())
      t.eq({ nil, 0 }, { agent.skip(), vim.fn.filereadable(lock) })
      vim.env.CLAUDE_CONFIG_DIR = nil
    end)
  end
end)

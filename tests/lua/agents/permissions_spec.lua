-- Which tools agents may run without asking.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local permissions = require('mcp-tools.agents.permissions')
local t = require('helpers')

local function names() return permissions.names(core.get().registry) end

describe('permissions', function()
  it('are for bundled tools that only read and for which Neovim does not ask', function()
    require('mcp-tools').register({
      name = 'own_reader',
      description = 'Reads',
      annotations = { read_only = true },
      execute = function() end,
    })
    config.setup({
      tools = { 'file_read', 'file_write', 'file_list', 'editor_registers', 'git_log', 'git_show', 'editor_open' },
      approval = { default = 'deny', tools = { git_log = 'ask' }, groups = { file = 'allow', git = 'deny' } },
    })
    t.eq({ 'nvim_file_list', 'nvim_file_read' }, names())
    config.setup({ tools = { 'file_write', 'file_read' }, tool_prefix = 'my_' })
    t.eq({ 'my_file_read' }, names())
  end)

  it('are not granted if there are none, or if Neovim would not ask either', function()
    config.setup({ tools = { 'file_write' } })
    local none, why = names()
    t.eq(nil, none)
    t.matches('switched on', why)
    config.setup({ tools = { 'file_read' }, approval = { default = 'allow' } })
    none, why = names()
    t.eq(nil, none)
    t.matches('Set it to "ask" first', why)
  end)

  it('never include tools that write or run something', function()
    config.setup({
      tools = { all = true, editor_command = true, editor_eval_lua = true, plugin_call = true },
      approval = { default = 'ask' },
    })
    local found = table.concat(names(), ' ') .. ' '
    for _, word in ipairs({ 'edit ', 'write', 'move', 'replace', 'rename', 'run ', 'eval', 'call ', 'debug' }) do
      t.ok(not found:find(word, 1, true), word .. found)
    end
  end)
end)

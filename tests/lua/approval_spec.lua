local approval = require('mcp-tools.approval')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local t = require('helpers')

describe('open questions', function()
  after_each(function()
    core.get().executor:cancel_where(t.returns(true), 'user')
    core.get().registry:clear('tools')
    config.reset()
  end)

  it('are listed as copies, oldest first', function()
    config.setup({ approval = { ask_in = 'client' } })
    local got
    core.registry():add('tools', {
      name = 'asks',
      description = 'x',
      needs_approval = true,
      args = { list = { type = 'array' } },
      execute = function(_, args) got = args end,
    })
    for _, id in ipairs({ 'one', 'two' }) do
      local opts = { id = id, host = 'mcp', session = 's', capabilities = { elicitation = {} } }
      core.get().executor:execute('asks', { list = { 1 } }, opts)
    end
    local list = t.wait(function() return #approval.list() == 2 and approval.list() end)
    local one = list[1]
    t.eq({ 'one', 'two' }, { one.id, list[2].id })
    t.eq({ 'asks', 'mcp', 's', {} }, { one.tool, one.host, one.session, one.files })
    t.ok(vim.list_contains(one.choices, 'once'))
    t.eq({ nil, 0 }, { approval.current(), approval.count() })
    one.args.list[1], one.choices[1], one.id = 'other', 'other', 'other'
    t.eq(nil, one.call)
    t.ok(approval.answer('one', 'once'))
    t.wait(function() return got end)
    t.eq({ list = { 1 } }, got)
    t.eq(false, (approval.answer('other', 'once')))
  end)
end)

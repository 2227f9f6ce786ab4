-- The API for another plugin that passes our tools to its own model.

local assistant = require('mcp-tools.callers.assistant')
local config = require('mcp-tools.config')
local mcp = require('mcp-tools')
local t = require('helpers')

local function register(name, def)
  local base = { name = name, description = name, needs_approval = false, execute = t.answers('done') }
  mcp.register(vim.tbl_extend('force', base, def or {}))
end

local function names(offered) return t.field('name', offered) end

--- Calls a tool and waits for the outcome.
local function call(name, args, opts, hooks)
  local outcome, count = nil, 0
  assistant.start('my_plugin', name, args, opts or {}, hooks or {}, function(found)
    outcome, count = found, count + 1
  end)
  t.eq(nil, outcome)
  t.wait(function() return outcome end)
  t.eq(1, count)
  return outcome
end

describe('an assistant', function()
  before_each(function()
    config.reset()
    config.setup({ approval = { default = 'allow' } })
    require('mcp-tools.core').get().registry:clear('tools')
  end)

  it('gets only its own extras of a definition; the tool gets the caller', function()
    local who
    register('one', {
      callers = { my_plugin = { icon = 'x' }, other = { icon = 'y' } },
      args = { n = { type = 'integer', required = true } },
      execute = function(ctx)
        who = { ctx.host, ctx.client.name, ctx.session }
        ctx('done')
      end,
    })
    local offered = assistant.offered('my_plugin')
    t.eq({ { 'nvim_one' }, { icon = 'x' } }, { names(offered), offered[1].extras })
    t.eq({ 'n' }, offered[1].parameters.required)
    offered[1].parameters.required, offered[1].extras.icon = nil, nil -- copies
    local again = assistant.offered('my_plugin')[1]
    t.eq({ 'n', 'x' }, { again.parameters.required[1], again.extras.icon })
    t.eq({}, assistant.offered('stranger')[1].extras)
    t.eq('done', call('one', { n = 1 }, {}, { session = 'talk 1' }).text)
    t.eq({ 'my_plugin', 'my_plugin', 'talk 1' }, who)
  end)

  it('gets no names that model services refuse', function()
    for _, name in ipairs({ 'good', 'a.b', 'a b', 'ä', ('x'):rep(60), ('x'):rep(59) }) do
      register(name)
    end
    t.eq({ 'nvim_good', 'nvim_' .. ('x'):rep(59) }, names(assistant.offered('my_plugin')))
  end)

  it('calls tools of mounted servers by their names', function()
    local def = { name = 'server__one', description = 'x', execute = t.answers('done') }
    t.ok(require('mcp-tools.core').registry():add('tools', def, { origin = 'mounted', name = 'server' }))
    t.eq({ 'server__one' }, names(assistant.offered('my_plugin')))
    t.eq('done', call('server__one', {}).text)
  end)

  it('sees fewer tools by its options, by those for clients, and as a catalog', function()
    register('one')
    register('two', { annotations = { read_only = true } })
    t.eq({ 'nvim_one', 'nvim_two' }, names(assistant.offered('my_plugin')))
    t.eq({ 'nvim_two' }, names(assistant.offered('my_plugin', { readonly = true })))
    t.eq({ 'nvim_one' }, names(assistant.offered('my_plugin', { tools = 'one' })))
    t.eq({ 'nvim_one' }, names(assistant.offered('my_plugin', { tools = { 'nvim_one' } })))
    t.eq({}, names(assistant.offered('my_plugin', { tools = {} })))
    t.eq('unknown_tool', call('one', {}, { readonly = true }).error.code)
    config.setup({ clients = { my_plugin = { tools = { 'two' } } } })
    t.eq({ 'nvim_two' }, names(assistant.offered('my_plugin')))
    config.setup({ clients = { my_plugin = { tools = { 'two' }, catalogue = 'search' } } })
    t.eq({ 'nvim_tools_search', 'nvim_tools_describe', 'nvim_tools_call' }, names(assistant.offered('my_plugin')))
    t.eq('done', call('nvim_tools_call', { name = 'nvim_two' }).text)
    t.eq('not_found', call('nvim_tools_call', { name = 'nvim_one' }).error.code)
  end)

  it('sees the tools of its own list, even after a list that looks the same', function()
    register('one')
    register('two')
    t.eq({}, names(assistant.offered('my_plugin', { tools = { 'one,two' } })))
    t.eq({ 'nvim_one', 'nvim_two' }, names(assistant.offered('my_plugin', { tools = { 'one', 'two' } })))
  end)

  it('gets an error for a mistyped option', function()
    local offered, codecompanion = assistant.offered, require('mcp-tools.callers.codecompanion')
    for _, case in ipairs({
      { 'opts.tools%[1%]: expected string', offered, 'my_plugin', { tools = { { 'one' } } } },
      { 'opts.tools%[one%]: expected string, got boolean', offered, 'my_plugin', { tools = { one = true } } },
      { 'opts.tools: must be a list', offered, 'my_plugin', { tools = { one = 'one' } } },
      { 'opts.tool: unknown option', offered, 'my_plugin', { tool = { 'one' } } },
      { 'opts.readonly: expected boolean', offered, 'my_plugin', { readonly = 'yes' } },
      { 'opts.group: expected string', codecompanion.setup, { group = true } },
      { 'opts.read_only: unknown option', codecompanion.tools, { read_only = true } },
    }) do
      t.raises(case[1], function() case[2](unpack(case, 3)) end)
    end
  end)

  it('gets text for a model, whatever a tool returns', function()
    local value
    register('gives', { execute = function(ctx) ctx(value) end })
    local content = mcp.content
    for expected, each in pairs({
      ['plain'] = 'plain',
      ['{"a":[1]}'] = { a = { 1 } },
      ['one\n[image, image/png: not shown here]'] = { content.text('one'), content.image('\1', 'image/png') },
      ['the file'] = content.resource({ uri = 'file:///a', text = 'the file' }),
      ['[name](file:///b)'] = content.resource_link({ uri = 'file:///b', name = 'name' }),
      ['{"n":1}'] = content.result({ content = {}, structured = { n = 1 } }),
    }) do
      value = each
      local outcome = call('gives', {})
      t.eq({ true, expected }, { outcome.ok, outcome.text })
    end
    value = nil
    t.eq({ '', {} }, { call('gives', {}).text, call('gives', {}).content })
    value = { content.text('one'), content.image('\1', 'image/png') }
    t.eq({ type = 'image', data = 'AQ==', mimeType = 'image/png' }, call('gives', {}).content[2])
  end)

  it('gets an error for arguments that are not an object, and for a result that is too large', function()
    register('one')
    t.eq('validation_error', call('one', 'text').error.code)
    t.eq('validation_error', call('one', { 1, 2 }).error.code)
    config.setup({ limits = { tool_result = 1024 } })
    register('large', { execute = function(ctx) ctx({ mcp.content.text(('x'):rep(1025)) }) end })
    t.eq('too_large', call('large', {}).error.code)
  end)

  it('answers requests of a tool through the editor of the user', function()
    local input = vim.ui.input
    vim.ui.input = function(_, done) done('Ada') end
    local function execute(ctx)
      local schema = { type = 'object', properties = { name = { type = 'string' } } }
      ctx:elicit('Who are you?', schema, function(answer, err) ctx(answer and answer.content, err) end)
    end
    register('asks', { execute = execute })
    local outcome = call('asks', {})
    vim.ui.input = input
    t.eq('{"name":"Ada"}', outcome.text)
  end)
end)

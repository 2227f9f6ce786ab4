-- Which of the enabled tools a client sees and may call, through the verbs that the bridge uses.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local log = require('mcp-tools.log')
local mcp_tools = require('mcp-tools')
local t = require('helpers')
local wire = require('mcp-tools.rpc')

describe('the scope of a client', function()
  local CHANNEL = 0
  local count = 0

  local function setup(options)
    config.setup(vim.tbl_extend('force', { approval = { default = 'allow' } }, options or {}))
    core.get()
  end

  --- Names that a client gets, without the prefix.
  local function listed(scope, client)
    local reply = wire.list('tools', nil, { client = client or 'c', scope = scope })
    return vim.tbl_map(function(tool) return (tool.name:gsub('^nvim_', '')) end, vim.json.decode(reply.json))
  end

  local function call(name, scope, client, args)
    count = count + 1
    return wire.execute(name, args or vim.empty_dict(), {
      channel = CHANNEL,
      call_id = 's' .. count,
      client = { name = client or 'c', version = '1' },
      scope = scope,
    }).result
  end

  --- Asserts that a call is answered like one of a name that does not exist.
  local function is_unknown(result, name)
    t.eq({ 'failed', 'unknown_tool' }, { result.state, result.error.code })
    t.eq('Unknown tool: ' .. name, result.error.message)
  end

  before_each(function()
    config.reset()
    CHANNEL = vim.fn.jobstart({ vim.v.progpath, '--clean', '--embed', '--headless' }, { rpc = true })
    wire.hello(CHANNEL, { protocol = wire.PROTOCOL, role = 'client' })
    local function noop(ctx) ctx('ok') end
    mcp_tools.register({ name = 'mine', description = 'd', annotations = { read_only = true }, execute = noop })
    mcp_tools.register({ name = 'writes', description = 'd', execute = noop })
    setup({ tools = { 'buffer', 'file', 'test' } })
  end)

  after_each(function()
    wire.lost(CHANNEL)
    vim.fn.jobstop(CHANNEL)
    config.reset()
    core.registry():clear('tools')
  end)

  describe('a scope', function()
    it('contains groups and tools, with or without the prefix', function()
      local all = listed()
      t.ok(vim.list_contains(all, 'mine') and vim.list_contains(all, 'test_echo'))
      t.eq({ 'mine', 'test_echo' }, listed({ tools = { 'mine', 'nvim_test_echo' } }))
      t.eq({ 'mine', 'writes' }, listed({ tools = { 'registered' } }))
      t.eq({}, listed({ tools = { 'mine\nwrites' } }))
      t.eq({ 'mine', 'writes' }, listed({ tools = { 'mine', 'writes' } })) -- not the list before
      t.eq({ all, all, {} }, { listed({ tools = { 'all' } }), listed({}), (listed({ tools = { '*' } })) })
      for _, name in ipairs(listed({ tools = { 'recommended' } })) do
        t.ok(core.registry():get(name).recommended, name)
      end
      t.ok(#listed({ tools = { 'buffer' } }) >= 2)
    end)

    it('hides tools from calls as it hides them from lists', function()
      local scope = { tools = { 'mine' } }
      t.eq({ 'ok', 'ok' }, { call('nvim_mine', scope).text, call('mine', scope).text })
      is_unknown(call('nvim_writes', scope), 'nvim_writes')
      is_unknown(call('nvim_nothing', scope), 'nvim_nothing')
      is_unknown(call('nvim_writs', scope), 'nvim_writs') -- without a suggestion outside the scope
      t.eq('ok', call('nvim_writes').text)
    end)

    it('that is read-only has no tool that may change something', function()
      local names = listed({ read_only = true })
      t.ok(vim.list_contains(names, 'mine') and vim.list_contains(names, 'test_echo'))
      t.ok(not vim.list_contains(names, 'writes'))
      is_unknown(call('nvim_writes', { read_only = true }), 'nvim_writes')
      t.eq({ 'mine' }, listed({ read_only = true, tools = { 'mine', 'writes' } }))
    end)

    it('has _meta for Claude Code only', function()
      local function meta_of(client, name)
        for _, tool in ipairs(vim.json.decode(wire.list('tools', nil, { client = client }).json)) do
          if tool.name == name then
            return tool._meta
          end
        end
      end
      local meta = meta_of('claude-code', 'nvim_file_read')
      t.eq({ true, true }, { meta['anthropic/alwaysLoad'], meta['anthropic/maxResultSizeChars'] > 100000 })
      t.matches('source of a function', meta['anthropic/searchHint'])
      t.eq(nil, meta_of('claude-code', 'mine'))
      for _, client in ipairs({ '', 'codex', 'my-claude-code' }) do
        t.eq(nil, meta_of(client, 'nvim_file_read'))
      end
    end)

    it('does not contain disabled tools', function()
      t.eq({}, listed({ tools = { 'bridge' } }))
      is_unknown(call('nvim_bridge_refresh', { tools = { 'bridge_refresh' } }), 'nvim_bridge_refresh')
    end)

    it('ignores unknown names; if none is left it is empty, which is logged', function()
      t.eq({ 'mine' }, listed({ tools = { 'nothing', 'mine' } }))
      local messages, real = {}, log.warn
      log.warn = function(...) table.insert(messages, string.format(...)) end
      t.eq({}, listed({ tools = { 'nothing' } }))
      log.warn = real
      t.eq(1, #messages)
      t.matches('nothing', messages[1])
    end)

    it('does not affect resources and prompts', function()
      core.get()
      local scope = { client = 'c', scope = { tools = { 'mine' }, read_only = true } }
      for _, kind in ipairs({ 'resources', 'templates', 'prompts' }) do
        t.eq(wire.list(kind).json, wire.list(kind, nil, scope).json)
      end
    end)
  end)

  describe('the option clients', function()
    it('restricts the client of that name, also within its scope', function()
      setup({ clients = { ['claude-code'] = { tools = { 'mine', 'test_echo' } } } })
      t.eq({ 'mine', 'test_echo' }, listed(nil, 'claude-code'))
      t.eq({ 'mine' }, listed({ tools = { 'mine', 'writes' } }, 'claude-code'))
      is_unknown(call('writes', nil, 'claude-code'), 'writes')
      is_unknown(call('writes', { tools = { 'writes' } }, 'claude-code'), 'writes')
      t.eq('ok', call('writes', nil, 'other').text)
      t.ok(#listed(nil, 'other') > 2)
    end)

    it('accepts a name, a list, or a map of unwanted tools', function()
      setup({
        clients = { a = { tools = 'mine' }, b = { tools = { mine = false, test = false } }, c = { readonly = true } },
      })
      t.eq({ 'mine' }, listed(nil, 'a'))
      local names = listed(nil, 'b')
      t.ok(vim.list_contains(names, 'writes') and vim.list_contains(names, 'buffer_list'))
      t.ok(not vim.list_contains(names, 'mine') and not vim.list_contains(names, 'test_echo'))
      t.ok(not vim.list_contains(listed(nil, 'c'), 'writes'))
      setup({ clients = { a = { tools = {} } } })
      t.eq({}, listed(nil, 'a'))
    end)

    it('changes the revision of the list for connected clients', function()
      local before = wire.list('tools').revision
      setup({ clients = { x = { tools = { 'mine' } } } })
      local between = wire.list('tools').revision
      t.ok(between > before)
      setup({ debug = false })
      t.eq(between, wire.list('tools').revision)
      setup({ catalogue = 'search' })
      t.ok(wire.list('tools').revision > between)
    end)

    it('reports all its faults', function()
      local bad = { a = { tool = 'x' }, b = { catalogue = 'serach' }, c = { tools = 1 }, d = 1 }
      local err = t.raises('none of its options were applied', function() config.setup({ clients = bad }) end)
      t.matches('clients.a.tool: unknown field %(did you mean tools%?%)', err)
      t.matches('clients.b.catalogue: expected "direct" or "search", got "serach" %(did you mean "search"%?%)', err)
      t.matches('clients.c.tools: expected a string, a list or a table, got number', err)
      t.matches('clients.d: expected a table, got number', err)
    end)
  end)

  describe('the catalogue', function()
    local SEARCH = { catalogue = 'search' }

    it('replaces all tools by the option, for a client, or by its scope', function()
      local three = { 'tools_search', 'tools_describe', 'tools_call' }
      t.eq(three, listed(SEARCH))
      setup({ clients = { a = { catalogue = 'search' } } })
      t.eq({ three, false }, { listed(nil, 'a'), listed()[1] == 'tools_search' })
      setup({ catalogue = 'search', clients = { b = { catalogue = 'direct' } } })
      t.eq(three, listed())
      t.ok(#listed(nil, 'b') > 3 and #listed({ catalogue = 'direct' }) > 3)
      is_unknown(call('tools_search', { catalogue = 'direct' }), 'tools_search')
    end)

    it('has less than 1.5 kB, whatever tools are on', function()
      setup({ tools = 'all' })
      t.ok(#wire.list('tools', nil, { client = 'c', scope = SEARCH }).json <= 1500)
    end)

    it('does not wait until all tools are loaded', function()
      config.reset()
      config.setup({ tools = 'all' })
      t.eq(nil, wire.list('tools', nil, { client = 'c', scope = SEARCH }).loading)
    end)

    it('finds tools by words, one line each, the best match first', function()
      local text = call('nvim_tools_search', SEARCH, nil, { query = 'read a file', limit = 50 }).text
      local lines = vim.split(text, '\n')
      t.matches('^nvim_file_read: ', lines[1])
      for _, line in ipairs(lines) do
        t.matches('^nvim_[%w_]+: ', line)
      end
      text = call('tools_search', SEARCH, nil, { query = 'buffer', limit = 1 }).text
      t.matches('^nvim_[%w_]+: .*\n%(%d+ more match: raise limit', text)
    end)

    it('finds the right tool first for the phrases of models (bench/choice)', function()
      setup({ tools = { all = true, editor_command = true } })
      local wrong = {}
      local phrases = vim.api.nvim_get_runtime_file('bench/choice/phrases.json', false)[1]
      for _, one in ipairs(vim.json.decode(table.concat(vim.fn.readfile(phrases)))) do
        local first = call('tools_search', SEARCH, nil, { query = one.phrase, limit = 1 }).text:match('^nvim_([%w_]+)')
        table.insert(wrong, not vim.list_contains(one.tools, first) and ('%s: %s'):format(one.phrase, first) or nil)
      end
      t.eq({}, wrong)
    end)

    it('lists all names by group without a query, and when nothing matches', function()
      local text = call('tools_search', SEARCH).text
      t.matches('registered: nvim_mine nvim_writes', text)
      t.matches('^No tool matches.*registered: nvim_mine', call('tools_search', SEARCH, nil, { query = 'zzz' }).text)
    end)

    it('describes tools as the list does, and reports unknown names', function()
      local result = call('tools_describe', SEARCH, nil, { names = { 'nvim_mine', 'test_echo', 'nothing' } })
      local value = vim.json.decode(result.text)
      t.eq({ 'nothing' }, value.unknown)
      local direct = {}
      for _, tool in ipairs(vim.json.decode(wire.list('tools').json)) do
        direct[tool.name] = tool
      end
      t.eq({ direct.nvim_mine, direct.nvim_test_echo }, value.tools)
    end)

    it('calls a tool like a direct call', function()
      local arguments = { text = 'hello' }
      t.eq('hello', call('nvim_tools_call', SEARCH, nil, { name = 'nvim_test_echo', arguments = arguments }).text)
      t.eq('ok', call('tools_call', SEARCH, nil, { name = 'mine' }).text)
      local wrong = call('tools_call', SEARCH, nil, { name = 'test_echo', arguments = { text = 1 } })
      t.eq({ 'validation_error', 'text' }, { wrong.error.code, wrong.error.errors[1].field })
      t.matches('test_echo', wrong.error.message)
      wrong = call('tools_call', SEARCH, nil, { name = 'test_echo', text = 'x' })
      t.eq({ 'validation_error', 'text' }, { wrong.error.code, wrong.error.errors[1].field })
      wrong = call('tools_call', SEARCH, nil, { name = 'nothing' })
      t.eq({ 'not_found', 'name: Unknown tool: nothing' }, { wrong.error.code, wrong.error.message })
      wrong = call('tools_call', SEARCH, nil, { name = 'test_ecko' })
      t.matches('did you mean test_echo', wrong.error.message)
      t.eq('ok', call('nvim_mine', SEARCH).text)
    end)

    it('uses approval, timeout and name of the tool that is called', function()
      setup({ approval = { tools = { mine = 'deny' } } })
      t.eq('access_denied', call('tools_call', SEARCH, nil, { name = 'mine' }).error.code)
      setup({ approval = { tools = { mine = 'allow', tools_call = 'deny' } } })
      t.eq('ok', call('tools_call', SEARCH, nil, { name = 'mine' }).text)
      local slow = { name = 'slow', description = 'd', timeout = 4321, annotations = { read_only = true } }
      slow.execute = function() end
      mcp_tools.register(slow)
      call('tools_call', SEARCH, nil, { name = 'slow' })
      local running = t.ok(core.get().executor:get('s' .. count))
      t.eq({ 'slow', 4321, true }, { running.name, running.timeout, running.definition.annotations.read_only })
      running:cancel('user')
    end)

    it('respects the scope', function()
      local scope = { catalogue = 'search', tools = { 'mine' } }
      t.eq('registered: nvim_mine', call('tools_search', scope).text)
      t.eq({ 'writes' }, vim.json.decode(call('tools_describe', scope, nil, { names = { 'writes' } }).text).unknown)
      local beyond = call('tools_call', scope, nil, { name = 'writes' })
      local nothing = call('tools_call', scope, nil, { name = 'nowrit' })
      t.eq((nothing.error.message:gsub('nowrit', 'writes')), beyond.error.message)
      is_unknown(call('writes', scope), 'writes')
    end)

    it('loads the tool that it calls', function()
      config.reset()
      config.setup({ tools = 'all' })
      t.eq('x', call('tools_call', SEARCH, nil, { name = 'nvim_test_echo', arguments = { text = 'x' } }).text)
    end)

    it('searches after all tools are loaded', function()
      config.reset()
      config.setup({ tools = 'all' })
      local reply = call('tools_search', SEARCH)
      local id = 's' .. count
      t.wait(function()
        reply = wire.get_result(id).result or reply
        return reply
      end)
      t.matches({ 'buffer: .*nvim_file_read', 'registered: nvim_mine' }, reply.text)
    end)
  end)

  it('a prefix that changes while clients are connected is used in the next list', function()
    require('mcp-tools').register({ name = 'renamed', description = 'x', execute = function() end })
    core.get()
    local before = wire.list('tools')
    t.matches('"nvim_renamed"', before.json)
    config.setup({ tool_prefix = 'vi_' })
    core.get()
    local after = wire.list('tools', before.revision)
    t.matches('"vi_renamed"', after.json or '')
    config.reset()
  end)
end)

local audit = require('mcp-tools.approval.audit')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local log = require('mcp-tools.log')
local notifications = require('notifications')
local remote = require('mcp-tools.calls.remote')
local t = require('helpers')
local wire = require('mcp-tools.rpc')

--- The number of instructions, in thousands, that a function takes: the same on every machine.
local function work(fn)
  local count = 0
  jit.off()
  jit.flush()
  debug.sethook(function() count = count + 1 end, '', 1000)
  fn()
  debug.sethook()
  jit.on()
  return count
end

local ECHO = { name = 'far_echo', description = 'Echoes.', annotations = { read_only = true } }

local channel

before_each(function()
  config.change({ tools = false })
  channel = vim.fn.jobstart({ vim.v.progpath, '--clean', '--embed', '--headless' }, { rpc = true })
  wire.hello(channel, { protocol = wire.PROTOCOL, role = 'client' })
end)

after_each(function()
  wire.lost(channel)
  vim.fn.jobstop(channel)
  config.reset()
end)

describe('provided tools', function()
  before_each(function() config.setup({ approval = { tools = { far_echo = 'allow', far_two = 'allow' } } }) end)

  local function names() return t.field('name', core.get().registry:list('tools')) end

  local function call(name)
    local outcome = {}
    require('mcp-tools').call(name, {}, function(result, err)
      outcome.result, outcome.err = result, err
    end)
    return outcome
  end

  local function pending() return core.get().executor:pending()[1] end

  it('are registered until they are withdrawn', function()
    t.eq({ {}, { 'far_echo' } }, { wire.provide(channel, 'far', { ECHO }).refused, (names()) })
    t.eq('mounted', core.get().registry:get('far_echo').source.origin)
    t.eq({}, wire.provide(channel, 'far', '[{"name": "far_two", "description": "Two."}]').refused)
    t.eq({ 'far_two' }, names())
    wire.withdraw(channel, 'far')
    t.eq({}, names())
  end)

  it('end a call once, through the channel', function()
    wire.provide(channel, 'far', { ECHO })
    local first = call('far_echo')
    local id = pending().id
    wire.remote_progress(id, 1, 2, 'half')
    t.eq({ seq = 1, done = 1, total = 2, message = 'half' }, core.get().executor:get(id).latest)
    wire.remote_result(id, { kind = 'json', text = '{"a":[]}' })
    wire.remote_result(id, { kind = 'text', text = 'late' })
    t.eq({ a = {} }, first.result)
    local second = call('far_echo')
    wire.remote_result(pending().id, { kind = 'error', code = 'stale', message = 'it changed' })
    t.eq({ code = 'stale', message = 'it changed' }, second.err)
  end)

  it('have their results passed on byte for byte', function()
    wire.provide(channel, 'far', { ECHO })
    local text = '{"content":[{"type":"image","data":"AA==","mimeType":"image/png"}],'
      .. '"structuredContent":{"z":1234567890123456789,"a":1180591620717411303424}}'
    local got = call('far_echo')
    local running = pending()
    wire.remote_result(running.id, { kind = 'content', text = text, size = #text })
    t.eq({ text, '\0' }, { running.outcome.payload.text, got.result.content[1].bytes })
    t.eq({ 'a', 'z' }, vim.fn.sort(vim.tbl_keys(got.result.structured)))
    got = call('far_echo')
    running = pending()
    wire.remote_result(running.id, { kind = 'json', text = '{"z":1234567890123456789,"a":[]}' })
    t.eq({ '{"z":1234567890123456789,"a":[]}', {} }, { running.outcome.payload.text, got.result.a })
    got = call('far_echo')
    wire.remote_result(pending().id, { kind = 'content', text = text, size = 100 * 1024 * 1024 })
    t.eq('too_large', got.err.code)
  end)

  it('fail with an invalid result', function()
    wire.provide(channel, 'far', { ECHO })
    for _, outcome in ipairs({ 42, { kind = 'no such' }, { kind = 'json' }, { kind = 'data', text = '{' } }) do
      local got = call('far_echo')
      wire.remote_result(pending().id, outcome)
      t.eq('execution_error', (got.err or {}).code)
      t.matches('its result cannot be read', got.err.message)
    end
    remote.receive('nonsense', 'id')
    remote.receive('remote_result', 'nowhere', {})
    remote.receive('remote_ask', 'nowhere', 1, '{}')
  end)

  it('get an error for an invalid request', function()
    local sent = {}
    local function send(_, event, _, ask, answer, err) table.insert(sent, { event, ask, answer, err and err.code }) end
    local target = remote.target({ send = send })
    local function execute(ctx, args) remote.call(target, ctx, { name = 'far_echo' }, args) end
    require('mcp-tools').register({ name = 'far_echo', description = 'Asks.', execute = execute })
    call('far_echo')
    local id = pending().id
    for ask, text in ipairs({ '{"answer":{"method":"no such"}}', '{', '[]' }) do
      sent = {}
      remote.receive('remote_ask', id, ask, text)
      t.eq({ { 'remote_answer', ask, nil, 'execution_error' } }, sent)
    end
    remote.receive('remote_result', id, { kind = 'empty' })
    require('mcp-tools').unregister('far_echo')
  end)

  it('end their calls when the channel closes', function()
    wire.provide(channel, 'far', { ECHO })
    local outcome = call('far_echo')
    vim.fn.jobstop(channel)
    t.wait(function() return outcome.err end, 5000, 'the end of the call')
    t.eq({ 'execution_error', {} }, { outcome.err.code, (names()) })
  end)

  it('that never confirm a cancel are forgotten', function()
    local stop_timeout = remote.STOP_TIMEOUT
    remote.STOP_TIMEOUT = 30
    wire.provide(channel, 'far', { ECHO })
    call('far_echo')
    local running = pending()
    running:cancel('user')
    vim.wait(80)
    wire.remote_result(running.id, { kind = 'text', text = 'very late' })
    t.ok(not (log.lines(1)[1] or ''):find('came to an end', 1, true), 'the call was still known')
    remote.STOP_TIMEOUT = stop_timeout
  end)

  it('cannot use the name of another tool', function()
    require('mcp-tools').register({ name = 'far_echo', description = 'Here.', run = function() end })
    local refused = wire.provide(channel, 'far', { ECHO, { name = 'far_two' } }).refused
    t.eq(2, #refused)
    t.matches("tool 'far_echo': name: it is taken by", refused[1])
    t.matches("tool 'far_two': description: is required", refused[2])
    refused = wire.provide(channel, 'far', { 'no table', { name = 'far_ok', description = 'Fine.' } }).refused
    t.eq(1, #refused)
    t.ok(core.get().registry:get('far_ok'))
    require('mcp-tools').unregister('far_echo')
  end)

  it('can come in pieces, of which the last one removes the earlier tools', function()
    local TWO = { name = 'far_two', description = 'Two.' }
    local THREE = { name = 'far_three', description = 'Three.' }
    local function provide(list, first, last)
      return wire.provide(channel, 'far', list, 'tools', { first = first, last = last }).refused
    end
    wire.provide(channel, 'far', { ECHO })
    t.eq({}, provide({ TWO }, true, false))
    t.ok(core.get().registry:get('far_echo'), 'gone before the list had ended')
    t.eq({ 1, {} }, { #provide({ { name = 'far_four' } }, false, false), (provide({ THREE }, false, true)) })
    t.ok(not core.get().registry:get('far_echo'), 'still there, though no piece had it')
    t.ok(core.get().registry:get('far_two') and core.get().registry:get('far_three'))
    provide({ TWO }, true, false) -- cut off: another list begins
    provide({ THREE }, true, true)
    t.ok(not core.get().registry:get('far_two'), 'kept for a piece of a list that never ended')
  end)

  it('can be renamed to a name that clients cannot distinguish from the old one', function()
    local OLD = { name = 'far_read.file', description = 'Old.' }
    local NEW = { name = 'far_read_file', description = 'New.' }
    wire.provide(channel, 'far', { OLD })
    t.eq({ {}, { 'far_read_file' } }, { wire.provide(channel, 'far', { NEW }).refused, (names()) })
    t.eq({}, wire.provide(channel, 'far', { OLD }, 'tools', { first = true, last = false }).refused)
    wire.provide(channel, 'far', {}, 'tools', { first = false, last = true })
    t.eq({ { 'far_read.file' }, 1 }, { names(), #wire.provide(channel, 'far', { OLD, NEW }).refused })
    t.eq({ 'far_read.file' }, names())
  end)

  it('are in the catalog under the name that clients call', function()
    local catalogue = require('mcp-tools.scope.tool_search')
    wire.provide(channel, 'far', { ECHO })
    t.eq('far: far_echo', catalogue.search(core.get().registry:list('tools'), '', 10, 'nvim_'))
  end)

  it('cost little once they are registered, however many there are', function()
    local many = {}
    for i = 1, 1000 do
      local properties = { a = { type = 'string', description = ('x'):rep(40) }, b = { type = 'integer' } }
      local schema = { type = 'object', properties = properties }
      many[i] = { name = 'far_' .. i, description = ('x'):rep(200), input_schema = schema }
    end
    require('mcp-tools.config').reset()
    require('mcp-tools.config').setup({ tools = false, approval = { groups = { buffer = 'ask' } } })
    local report = require('mcp-tools.loading.report')
    report.unknown_names(core.get().registry) -- what is bundled is known from now on
    local taken = work(function() wire.provide(channel, 'far', many) end)
    local list
    local listed = work(function() list = wire.list('tools').json end)
    t.eq(1000, #vim.json.decode(list))
    local looked = work(function() report.unknown_names(core.get().registry) end)
    local gone = work(function() wire.withdraw(channel, 'far') end)
    t.eq({}, names())
    local text = ('%d taken in, %d listed, %d looked at, %d taken out'):format(taken, listed, looked, gone)
    t.ok(listed * 25 < taken and looked * 50 < taken and gone * 20 < taken, text)
  end)

  it('are not called for a call that has ended, and are stopped when it ends', function()
    local sent, handler = {}, nil
    local function send(_, event, _, what) table.insert(sent, { event, type(what) == 'table' and what.name or what }) end
    local target = remote.target({ send = send })
    local function execute(ctx) handler = ctx end
    require('mcp-tools').register({ name = 'far_echo', description = 'Calls it later.', execute = execute })
    call('far_echo')
    pending():cancel('user')
    remote.call(target, handler, { name = 'far_echo' }, {})
    call('far_echo')
    handler('done')
    remote.call(target, handler, { name = 'far_echo' }, {})
    t.eq({}, sent)
    call('far_echo')
    remote.call(target, handler, { name = 'far_echo' }, {})
    handler('done')
    t.eq({ { { 'remote_call', 'far_echo' }, { 'remote_cancel', 'ended' } }, {} }, { sent, target.calls })
    remote.receive('remote_result', handler.id, { kind = 'empty' })
    t.eq({}, target.stopping)
    require('mcp-tools').unregister('far_echo')
  end)
end)

describe('schemas of a mounted server', function()
  before_each(function() config.setup({ approval = { default = 'allow' } }) end)

  --- The published form of a tool with these schemas, given as JSON.
  local function published(input, output)
    local output_field = output and ',"output_schema":' .. output or ''
    local text = ('[{"name":"far_x","description":"x","input_schema":%s%s}]'):format(input, output_field)
    t.eq({}, wire.provide(channel, 'far', text).refused)
    return vim.json.decode(wire.list('tools').json)[1]
  end

  for _, property in ipairs({
    '{"type":"array","items":[{"type":"string"},{"type":"number"}]}',
    '{"type":"string","required":true}',
    '{"type":"number","minimum":0,"exclusiveMinimum":true}',
    '{"type":"string","examples":"x"}',
    '{"type":"string","example":"x","descriptoin":"y"}',
    '{"type":"object","unevaluatedProperties":false}',
    '{"$dynamicRef":"#node"}',
    '{"$ref":"https://example.com/other.json"}',
    '{"type":"string","description":null,"enum":null}',
    '{"type":"any"}',
  }) do
    it('are published unchanged: ' .. property, function()
      notifications.collect()
      local schema = ('{"type":"object","properties":{"a":%s},"required":["a"]}'):format(property)
      local tool = published(schema, schema)
      local messages = notifications.text()
      notifications.restore()
      t.eq(vim.json.decode(schema), tool.inputSchema)
      t.eq({ vim.json.decode(schema), '' }, { tool.outputSchema, messages })
    end)
  end

  it('get the form at the top level that clients need', function()
    t.eq({ type = 'object', properties = vim.empty_dict() }, published('{"properties":[]}').inputSchema)
    t.eq(nil, published('{"type":"object"}', '{"type":"array"}').outputSchema)
    local refused = wire.provide(channel, 'far', '[{"name":"far_x","description":"x","input_schema":{"type":"array"}}]')
    t.matches('input_schema.type: must be "object"', refused.refused[1])
    local deep = ('{"items":'):rep(200) .. '{}' .. ('}'):rep(200)
    local text = ('[{"name":"far_x","description":"x","input_schema":{"type":"object","x":%s}}]'):format(deep)
    t.eq(1, #wire.provide(channel, 'far', text).refused)
  end)

  it('keep large integers and the order of their keys when they come as text', function()
    local schema =
      '{"type":"object","properties":{"z":{"maximum":18446744073709551615},"a":{"const":1234567890123456789}}}'
    local tools = { { name = 'far_x', description = 'x', input_schema = schema, output_schema = schema } }
    t.eq({}, wire.provide(channel, 'far', vim.json.encode(tools)).refused)
    local list = wire.list('tools').json
    t.ok(list:find('"inputSchema":' .. schema, 1, true) and list:find('"outputSchema":' .. schema, 1, true), list)
    t.eq('object', core.get().registry:get('far_x').input_schema.type)
    tools[1].input_schema = '{"type":'
    t.eq(1, #wire.provide(channel, 'far', vim.json.encode(tools)).refused)
  end)

  it('are not checked against arguments, which the server does', function()
    published('{"type":"object","properties":{"n":{"type":"integer"},"o":{"type":"object"}},"required":["n"]}')
    local function args_of(args, exact)
      local call = core.get().executor:execute('far_x', args, { host = 'test', exact_args = exact })
      t.eq('running', call.state)
      call:cancel('test')
      return vim.json.encode(call.args)
    end
    t.eq({ '{}', '{"o":{}}' }, { args_of({}), (args_of({ o = {} })) })
    t.eq({ '{"o":[]}', '{"n":null}' }, { args_of({ o = {} }, true), (args_of({ n = vim.NIL })) })
  end)
end)

local TEMPLATE = 'fs+file:///{+path}'

describe('resources, prompts and completions of a mounted server', function()
  before_each(function()
    local function provide(kind, ...) t.eq({}, wire.provide(channel, 'fs', { ... }, kind).refused) end
    local any = { uri_template = 'fs+notes://{+any}', name = 'fs__any', description = 'Any notes.' }
    provide(
      'templates',
      { uri_template = TEMPLATE, name = 'fs__file', description = 'A file.', complete = { 'path' } },
      any
    )
    provide('resources', { uri = 'fs+notes://today/.env', name = 'fs__notes', description = 'Notes.' })
    local args = { { name = 'path', complete = true } }
    provide('prompts', { name = 'fs__explain', description = 'Explains a file.', args = args })
  end)

  --- The last lines of the audit log, oldest first.
  local function audited(count)
    local function fields(entry) return { entry.tool, entry.decision, entry.by, entry.outcome } end
    return t.wait(function()
      local entries
      audit.tail(100000, function(list) entries = list end)
      vim.wait(20, function() return entries ~= nil end)
      return entries and #entries >= count and vim.tbl_map(fields, vim.list_slice(entries, #entries - count + 1))
    end)
  end

  local function execute(kind, name, args)
    return core.get().executor:execute(name, args or {}, { kind = kind, host = 'test' })
  end

  local function code_of(call) return call.outcome and call.outcome.error and call.outcome.error.code end

  local function project(name) return vim.uv.fs_realpath(vim.fn.getcwd()) .. '/' .. name end

  local function complete(value)
    local ref = { type = 'prompt', name = 'fs__explain' }
    return execute('completion', 'fs__explain', { ref = ref, argument = { name = 'path', value = value } })
  end

  it('are denied if the default is "deny", which the audit log contains', function()
    config.setup({ approval = { default = 'deny' } })
    local uri = 'fs+file://' .. project('README.md')
    t.eq('access_denied', code_of(execute('resource', uri)))
    t.eq('access_denied', code_of(execute('prompt', 'fs__explain', { path = 'README.md' })))
    t.eq('access_denied', code_of(complete('READ')))
    t.eq({
      { uri, 'deny', 'approval.default', 'failed' },
      { 'fs__explain', 'deny', 'approval.default', 'failed' },
      { 'path of fs__explain', 'deny', 'approval.default', 'failed' },
    }, audited(3))
  end)

  it('are allowed by a rule for their mount or their own name', function()
    for _, approval in ipairs({
      { groups = { fs = 'allow' } },
      { tools = { [TEMPLATE] = 'allow', fs__explain = 'allow' } },
    }) do
      config.reset()
      config.setup({ approval = vim.tbl_extend('error', { default = 'deny' }, approval) })
      for _, call in ipairs({
        execute('resource', 'fs+file://' .. project('README.md')),
        execute('prompt', 'fs__explain', { path = 'README.md' }),
        complete('READ'),
      }) do
        t.eq('running', call.state)
        call:cancel('test')
      end
    end
  end)

  it('never access a sensitive file, whatever is allowed', function()
    config.setup({ approval = { default = 'allow' } })
    for _, uri in ipairs({
      'fs+file://' .. project('.env'),
      'fs+file://' .. project('%2eenv'),
      'fs+notes://today/.env',
      'fs+file://' .. project('.env/'),
      'fs+notes://today/.env/',
      'fs+notes://read?path=a/.env&raw=1',
    }) do
      local call = execute('resource', uri)
      t.eq('access_denied', code_of(call), uri)
      t.eq({ allowed = false, by = 'files' }, call.decision)
    end
    t.eq('access_denied', code_of(execute('prompt', 'fs__explain', { path = project('.env') })))
    t.eq('access_denied', code_of(complete('.env')))
  end)

  it('ask the user when no rule applies, but a completion asks no question', function()
    local uri = 'fs+file://' .. project('README.md')
    t.eq('nobody to ask', execute('resource', uri).decision.by) -- a headless editor
    t.eq('nobody to ask', execute('prompt', 'fs__explain').decision.by)
    t.eq('approval.default', complete('READ').decision.by)
  end)

  it('are trusted and denied by :McpTools trust', function()
    local trust = require('mcp-tools.command').find('trust').run
    local uri = 'fs+file://' .. project('README.md')
    t.eq('nobody to ask', execute('resource', uri).decision.by)
    trust(TEMPLATE)
    local call = execute('resource', uri)
    t.eq({ allowed = true, by = 'ledger' }, call.decision)
    call:cancel('test')
    trust('')
    local shown = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
    t.ok(shown:find('trusted    ' .. TEMPLATE, 1, true), shown)
    vim.cmd.bwipeout({ bang = true })
    trust('fs__explain denied')
    t.eq({ allowed = false, by = 'ledger' }, execute('prompt', 'fs__explain').decision)
    trust('reset')
  end)

  it('cannot be subscribed to if they cannot be read', function()
    local readme = 'fs+file://' .. project('README.md')
    config.setup({ approval = { default = 'allow' } })
    t.eq(nil, wire.subscribe(channel, readme).error)
    t.eq('not_found', wire.subscribe(channel, 'fs+file://' .. project('.env')).error.code)
    config.setup({ approval = { groups = { fs = 'deny' } } })
    t.eq('not_found', wire.subscribe(channel, 'fs+file://' .. project('other.md')).error.code)
    wire.unsubscribe(channel, readme)
  end)

  it('of the plugin itself need no approval', function()
    config.setup({ approval = { default = 'deny' } })
    require('mcp-tools').register_resource({ uri = 'own://x', name = 'x', read = t.answers('text') })
    t.eq('done', execute('resource', 'own://x').state)
    require('mcp-tools').unregister_resource('own://x')
  end)
end)

it('a completion of an unknown argument is empty and stores nothing that the client sent', function()
  require('mcp-tools').register_prompt({ name = 'own_prompt', description = 'x', get = t.answers('x') })
  local name = ('x'):rep(100000)
  local ref = { type = 'prompt', name = 'own_prompt' }
  local request = { ref = ref, argument = { name = name, value = '' } }
  local opts = { kind = 'completion', host = 'test', client = { name = name } }
  local call = core.get().executor:execute('own_prompt', request, opts)
  t.eq({}, vim.json.decode(call.outcome.payload.text).values)
  t.ok(#call.name < 100 and #core.get().executor.history.list(1)[1].client < 1000)
  require('mcp-tools').unregister_prompt('own_prompt')
end)

local audit = require('mcp-tools.approval.audit')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local t = require('helpers')
local wire = require('mcp-tools.rpc')

local TEMPLATE = 'fs+file:///{+path}'

describe('resources, prompts and completions of a mounted server', function()
  local channel

  before_each(function()
    channel = vim.fn.jobstart({ vim.v.progpath, '--clean', '--embed', '--headless' }, { rpc = true })
    wire.hello(channel, { protocol = wire.PROTOCOL, role = 'client' })
    local function provide(kind, ...)
      t.eq({}, wire.provide(channel, 'fs', { ... }, kind).refused)
    end
    provide(
      'templates',
      { uri_template = TEMPLATE, name = 'fs__file', description = 'A file.', complete = { 'path' } },
      { uri_template = 'fs+notes://{+any}', name = 'fs__any', description = 'Any notes.' }
    )
    provide('resources', { uri = 'fs+notes://today/.env', name = 'fs__notes', description = 'Notes.' })
    provide('prompts', {
      name = 'fs__explain',
      description = 'Explains a file.',
      args = { { name = 'path', complete = true } },
    })
  end)

  after_each(function()
    wire.lost(channel)
    vim.fn.jobstop(channel)
    config.reset()
  end)

  --- The last lines of the audit log, oldest first.
  local function audited(count)
    local entries
    return t.wait(function()
      audit.tail(100000, function(list)
        entries = list
      end)
      vim.wait(20, function()
        return entries ~= nil
      end)
      return entries
        and #entries >= count
        and vim.tbl_map(function(entry)
          return { entry.tool, entry.decision, entry.by, entry.outcome }
        end, vim.list_slice(entries, #entries - count + 1))
    end)
  end

  local function execute(kind, name, args)
    return core.get().executor:execute(name, args or {}, { kind = kind, host = 'test' })
  end

  local function code_of(call)
    return call.outcome and call.outcome.error and call.outcome.error.code
  end

  local function project(name)
    return vim.uv.fs_realpath(vim.fn.getcwd()) .. '/' .. name
  end

  local function complete(value)
    local ref = { type = 'prompt', name = 'fs__explain' }
    return execute('completion', 'fs__explain', { ref = ref, argument = { name = 'path', value = value } })
  end

  it('are denied where the default is "deny", and the audit log has them', function()
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

  it('run where a rule for their mount or their own name allows it', function()
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

  it('never get at a sensitive file, whatever is allowed', function()
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

  it('ask where nothing else decides, but a completion asks nobody', function()
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

  it('are not watched either when they may not be read', function()
    local readme = 'fs+file://' .. project('README.md')
    config.setup({ approval = { default = 'allow' } })
    t.eq(nil, wire.subscribe(channel, readme).error)
    t.eq('not_found', wire.subscribe(channel, 'fs+file://' .. project('.env')).error.code)
    config.setup({ approval = { groups = { fs = 'deny' } } })
    t.eq('not_found', wire.subscribe(channel, 'fs+file://' .. project('other.md')).error.code)
    wire.unsubscribe(channel, readme)
  end)

  it('of our own still ask nothing', function()
    config.setup({ approval = { default = 'deny' } })
    require('mcp-tools').register_resource({
      uri = 'own://x',
      name = 'x',
      read = function(ctx)
        ctx('text')
      end,
    })
    t.eq('done', execute('resource', 'own://x').state)
    require('mcp-tools').unregister_resource('own://x')
  end)
end)

describe('a completion of an argument that does not exist', function()
  it('is empty and keeps nothing of what the client sent', function()
    require('mcp-tools').register_prompt({
      name = 'own_prompt',
      description = 'x',
      get = function(ctx)
        ctx('x')
      end,
    })
    local name = ('x'):rep(100000)
    local ref = { type = 'prompt', name = 'own_prompt' }
    local call = core.get().executor:execute('own_prompt', { ref = ref, argument = { name = name, value = '' } }, {
      kind = 'completion',
      host = 'test',
      client = { name = name },
    })
    t.eq({}, vim.json.decode(call.outcome.payload.text).values)
    t.ok(#call.name < 100, 'the name of the call is what the client sent')
    local last = core.get().history.list(1)[1]
    t.ok(#last.client < 1000, 'the name of the client is kept whole')
    require('mcp-tools').unregister_prompt('own_prompt')
  end)
end)

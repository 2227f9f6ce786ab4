-- slow, every Neovim
-- Agents of an editor, with made-up agents in the place of real ones and a made-up bridge: through the verbs of the
-- wire, and by the files that lie on the disk.

local bridge = require('mcp-tools.bridge')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local agent_sessions = require('mcp-tools.editor.agents')
local ide = require('mcp-tools.agents')
local mcp_tools = require('mcp-tools')
local notifications = require('notifications')
local project = require('mcp-tools.instances.project')
local t = require('helpers')
local wire = require('mcp-tools.rpc')

local HERE = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local FIXTURES = vim.fs.normalize(vim.fs.joinpath(HERE, '..', 'fixtures'))
local real_rpcnotify = vim.rpcnotify
vim.opt.runtimepath:append(FIXTURES .. '/agents')

--- In the place of the context of the editor.
local context = { get = function() end }
local editor_context = require('mcp-tools.editor.context')
editor_context.get = function() return context.get() end
editor_context.on_change = function(fn, wanted)
  context.tell, context.wanted = fn, wanted
end

local channel, sent, count = nil, {}, 0

---@param names any
local function setup(names)
  config.setup({ agents = names, approval = { default = 'deny' } })
  ide.follow()
end

--- The bridge says hello, and that the endpoints which it is told of are open.
local function attach(open)
  local port = bridge.status().wanted_port
  local hello = wire.hello(channel, {
    protocol = wire.PROTOCOL,
    pid = bridge.status().pid,
    port = port,
    wanted_port = port,
    port_holder = 'none',
    versions = {},
  })
  wire.report('endpoints', { open = open, failed = {} }, channel)
  return hello
end

local function start()
  bridge.start()
  t.wait(function() return bridge.status().state == 'ready' end, 5000, 'a bridge that is ready')
end

--- A bridge is ready, and the endpoints of these agents are open.
local function ready(...)
  setup({ ... })
  start()
  return attach({ ... })
end

local function agent(name) return require('mcp-tools.agents.known.made_up_' .. name) end

local function opened(name, key)
  local data = { agent = name, session = key or 's1', client = 'agent', version = '3' }
  wire.agent_event('opened', data, channel)
end

--- Notifications that went to sessions: { session, method, params }.
local function pushes()
  local list = {}
  for _, each in ipairs(sent) do
    if each[1] == 'push' then
      table.insert(list, { each[3], each[4], vim.json.decode(each[5]) })
    end
  end
  return list
end

local function names_of(list) return t.field('name', list) end

local function listed(scope)
  local reply = wire.list('tools', nil, { client = 'agent', scope = scope })
  return names_of(vim.json.decode(reply.json))
end

local function call(name, args, scope, opts)
  count = count + 1
  return wire.execute(
    name,
    args or vim.empty_dict(),
    vim.tbl_extend('force', {
      channel = channel,
      call_id = 'i' .. count,
      client = { name = 'agent', version = '3' },
      session = 's1',
      scope = scope,
    }, opts or {})
  )
end

local function lock_file()
  return ('%s/ide/%d.lock'):format(vim.env.MADE_UP_FOLDER, bridge.get_port() or bridge.status().wanted_port)
end

local function lock()
  local ok, value = pcall(function() return vim.json.decode(table.concat(vim.fn.readfile(lock_file()), '\n')) end)
  return ok and value or nil
end

local function await_lock(what)
  return t.wait(function() return #ide.status()[1].files > 0 and lock() end, 5000, what or 'a discovery file')
end

--- A discovery file of the agent lies there.
local function find()
  ready('made_up_http')
  return await_lock()
end

local function await_no_lock()
  local path = lock_file()
  t.wait(function() return not vim.uv.fs_stat(path) end, 5000, 'the end of the discovery file')
end

local function mode_of(path) return ('%o'):format(bit.band(vim.uv.fs_stat(path).mode, tonumber('777', 8))) end

before_each(function()
  for _, name in ipairs({ 'XDG_RUNTIME_DIR', 'MADE_UP_FOLDER' }) do
    vim.env[name] = vim.fn.tempname()
    vim.fn.mkdir(vim.env[name], 'p', tonumber('700', 8))
  end
  vim.env.FAKE_REPORT, vim.env.MADE_UP_SKIP = vim.fn.tempname(), nil
  notifications.collect()
  config.reset()
  config.setup({ bridge = { command = { 'python3', FIXTURES .. '/fake_bridge.py', 'ready' } } })
  channel = vim.fn.jobstart({ vim.v.progpath, '--clean', '--embed', '--headless' }, { rpc = true })
  sent = {}
  vim.rpcnotify = function(id, event, ...) -- luacheck: ignore
    if id == channel then
      table.insert(sent, { event, ... })
      return 1
    end
    return real_rpcnotify(id, event, ...)
  end
end)

after_each(function()
  setup({})
  bridge.stop()
  t.wait(function() return bridge.status().state == 'stopped' end, 5000, 'the end of the bridge')
  wire.lost(channel)
  vim.fn.jobstop(channel)
  vim.rpcnotify = real_rpcnotify -- luacheck: ignore
  for name in pairs(package.loaded) do
    if name:find('^mcp%-tools%.agents%.known%.') then
      package.loaded[name] = nil
    end
  end
  core.registry():clear('tools')
  config.reset()
  notifications.restore()
end)

describe('endpoints', function()
  it('are told to the bridge with hello: each has a token of its own, and nobody has that of the bridge', function()
    local endpoints = ready('made_up_http', 'made_up_websocket', 'made_up_unix').endpoints
    t.eq({ 'made_up_http', 'made_up_websocket', 'made_up_unix' }, names_of(endpoints))
    local seen = { [bridge.get_auth_token()] = true }
    for _, endpoint in ipairs(endpoints) do
      t.matches('^%x+$', endpoint.token)
      t.eq({ 64, nil }, { #endpoint.token, seen[endpoint.token] })
      seen[endpoint.token] = true
    end
    t.eq({ 'authorization', 'bearer' }, { endpoints[1].header, endpoints[1].scheme })
    t.eq({ 'x-made-up-authorization', 'mcp' }, { endpoints[2].header, endpoints[2].subprotocol })
    t.eq({ name = 'made-up-editor', version = '7' }, endpoints[2].server)
    t.eq('nonce', endpoints[3].scheme)
    t.ok(#endpoints[3].socket < 104 and vim.startswith(endpoints[3].socket, vim.env.XDG_RUNTIME_DIR))
    t.eq('700', mode_of(vim.fs.dirname(endpoints[3].socket)))
    t.eq(endpoints, attach({}).endpoints) -- the same after a restart, or agents would not come back
  end)

  it('are told again when the option changes, and none to a bridge of somebody else', function()
    start()
    t.eq(nil, attach({}).endpoints)
    setup({ 'made_up_http' })
    t.eq({ 'endpoints' }, { sent[1][1] })
    t.eq('made_up_http', vim.json.decode(sent[1][2])[1].name)
    local info = { protocol = wire.PROTOCOL, pid = 1, port = 1, wanted_port = 1, port_holder = 'none', versions = {} }
    config.setup({ bridge = { command = { 'x' } } })
    local other = vim.fn.jobstart({ vim.v.progpath, '--clean', '--embed', '--headless' }, { rpc = true })
    wire.hello(other, vim.tbl_extend('force', info, { role = 'client' }))
    t.eq(nil, wire.hello(other, vim.tbl_extend('force', info, { role = 'client' })).endpoints)
    wire.lost(other)
    vim.fn.jobstop(other)
  end)

  it('lead into a folder among the temporary ones when a path is too long for a socket', function()
    vim.env.XDG_RUNTIME_DIR = vim.env.XDG_RUNTIME_DIR .. '/' .. ('x'):rep(90)
    vim.fn.mkdir(vim.env.XDG_RUNTIME_DIR, 'p', tonumber('700', 8))
    local socket = ready('made_up_unix').endpoints[1].socket
    t.ok(#socket < 104)
    t.eq('700', mode_of(vim.fs.dirname(socket)))
  end)
end)

describe('which agents are on', function()
  it('is what the option names; others say why not', function()
    vim.env.MADE_UP_SKIP = 'another plugin does that'
    setup({ 'made_up_http', 'made_up_broken', 'made_up_htpt', 'made_up_http' })
    local status = ide.status()
    t.eq(3, #status)
    t.eq({ 'off', 'another plugin does that', nil }, { status[1].state, status[1].reason, status[1].fault })
    t.eq({ 'off', true }, { status[2].state, status[2].fault })
    t.matches('endpoint.transport: must be one of http, websocket, unix', status[2].reason)
    t.eq('unknown agent, did you mean made_up_http?', status[3].reason)
    vim.env.MADE_UP_SKIP = nil
    setup(true)
    t.eq(true, #ide.status() > 0)
    setup('auto')
    local names = names_of(ide.status())
    t.ok(vim.list_contains(names, 'made_up_unix') and not vim.list_contains(names, '_made_up'))
    setup(false)
    t.eq({}, ide.status())
  end)

  it('does not include an agent whose endpoint has no transport, which would end the bridge', function()
    for _, endpoint in ipairs({ {}, true }) do
      package.loaded['mcp-tools.agents.known.made_up_broken'] = { name = 'made_up_broken', endpoint = endpoint }
      setup({})
      setup({ 'made_up_broken' })
      t.eq('endpoint.transport: must be one of http, websocket, unix', ide.status()[1].reason)
    end
    package.loaded['mcp-tools.agents.known.made_up_broken'] = nil
  end)

  it('waits for the bridge and for its endpoint', function()
    setup({ 'made_up_http' })
    t.eq({ 'waiting', 'the bridge is not ready' }, { ide.status()[1].state, ide.status()[1].reason })
    start()
    attach({})
    t.eq({ 'waiting', 'its endpoint is not open' }, { ide.status()[1].state, ide.status()[1].reason })
    wire.report('endpoints', { open = {}, failed = { made_up_http = 'no room' } }, channel)
    t.eq({ 'off', 'no room', true }, { ide.status()[1].state, ide.status()[1].reason, ide.status()[1].fault })
    wire.report('endpoints', { open = { 'made_up_http' }, failed = {} }, channel)
    t.eq({ 'on' }, { ide.status()[1].state, ide.status()[1].reason })
  end)
end)

describe('the scope of an agent', function()
  local SCOPE = { agent = 'made_up_http' }

  it('has its tools by the names that its agent knows, and nothing else', function()
    local function noop(ctx) ctx('ours') end
    mcp_tools.register({ name = 'mine', description = 'd', needs_approval = false, execute = noop })
    mcp_tools.register({ name = 'getPlace', description = 'd', needs_approval = false, execute = noop })
    ready('made_up_http')
    t.eq({ 'answerDiff', 'getPlace', 'openDiff' }, listed(SCOPE))
    for _, kind in ipairs({ 'resources', 'templates', 'prompts' }) do
      t.eq('[]', wire.list(kind, nil, { client = 'agent', scope = SCOPE }).json)
    end
    t.eq('unknown_tool', call('mine', nil, SCOPE).result.error.code)
    t.eq('unknown_tool', call('nvim_mine', nil, SCOPE).result.error.code)
    t.eq('s1', vim.json.decode(call('getPlace', nil, SCOPE).result.text).session)
    for _, kind in ipairs({ 'resource', 'prompt', 'completion' }) do
      t.eq('not_found', call('nvim://status', nil, SCOPE, { kind = kind }).result.error.code)
    end
  end)

  it('is closed to everyone else, and empty for an agent that is off', function()
    ready('made_up_http')
    t.eq('unknown_tool', call('getPlace').result.error.code)
    t.eq('unknown_tool', call('openDiff', { text = 'x' }, { tools = { 'all' } }).result.error.code)
    t.ok(not vim.list_contains(listed(), 'nvim_openDiff'))
    for _, name in ipairs({ 'made_up_websocket', 'nobody', '' }) do
      t.eq({}, listed({ agent = name }))
      t.eq('unknown_tool', call('getPlace', nil, { agent = name }).result.error.code)
    end
    setup({})
    t.eq({}, listed(SCOPE))
    t.eq('unknown_tool', call('getPlace', nil, SCOPE).result.error.code)
  end)

  it('asks nobody, but keeps to what the person has forbidden', function()
    ready('made_up_http')
    t.eq('running', call('openDiff', { text = 'x', path = '/elsewhere/a.txt' }, SCOPE).state)
    t.eq('access_denied', call('openDiff', { text = 'x', path = '/elsewhere/.env' }, SCOPE).result.error.code)
    config.setup({ approval = { groups = { agents = 'deny' } } })
    t.eq('access_denied', call('openDiff', { text = 'x' }, SCOPE).result.error.code)
    config.setup({ approval = { groups = { agents = 'ask' } } })
    core.get().executor:cancel_where(t.returns(true), 'test')
    t.eq({ 'cancelled', 'test' }, agent('http').told[#agent('http').told])
  end)
end)

describe('a session', function()
  before_each(function()
    ready('made_up_http', 'made_up_websocket')
    sent = {}
  end)

  it('is told to its agent, which may push to it until it has left', function()
    opened('made_up_http')
    t.eq({ { 's1', 'hello', { from = 'made_up_http' } } }, pushes())
    t.eq({ 'opened', 'agent', '3' }, agent('http').told[1])
    t.eq('s1', agent_sessions.session('s1').key)
    local note = { agent = 'made_up_http', session = 's1', method = 'ide_connected', params = '{"pid":4}' }
    wire.agent_event('notified', note, channel)
    t.eq({ 'notified', 'ide_connected', { pid = 4 } }, agent('http').told[2])
    t.eq({ 's1', 'heard', { method = 'ide_connected' } }, pushes()[2])
    wire.agent_event('left', { agent = 'made_up_http', session = 's1' }, channel)
    t.eq({ 'left', 's1', false }, agent('http').told[3])
    t.eq({ nil, 2 }, { agent_sessions.session('s1'), #pushes() })
  end)

  it('has files that it writes looked after, though it has asked for nothing', function()
    require('mcp-tools.editor.agents.disk_writes').stop()
    opened('made_up_http')
    t.wait(function() return vim.fn.exists('#mcp-tools.review.disk#BufReadPost') == 1 end)
    require('mcp-tools.editor.agents.disk_writes').stop()
  end)

  it('is heard of from the own bridge alone, and of agents that are on', function()
    wire.agent_event('opened', { agent = 'made_up_http', session = 's1' }, channel + 1)
    opened('made_up_unix')
    opened('nobody')
    wire.agent_event('burned', { agent = 'made_up_http', session = 's1' }, channel)
    t.eq({}, agent_sessions.sessions())
  end)

  it('gets the context when it opens, and each change of it in the place of the one before', function()
    context.get = function() return { line = 1 } end
    opened('made_up_http')
    opened('made_up_websocket', 's2')
    t.eq({ 's2', 'context/changed', { line = 1 } }, pushes()[4])
    context.tell({ line = 2 })
    t.eq({ { 's1', 'context/changed', { line = 2 } }, { 's2', 'context/changed', { line = 2 } } }, {
      pushes()[5],
      pushes()[6],
    })
    t.eq({ 'push', 'made_up_http', 's1', 'context/changed', '{"line":2}', true }, sent[5])
    t.eq(false, sent[1][6]) -- what an agent pushes by itself never gives way
    context.get = function() end
  end)

  it('is told the context again soon after it has come, and not once it has left', function()
    local line = 1
    context.get = function() return { line = line } end
    opened('made_up_http')
    opened('made_up_websocket', 's2')
    wire.agent_event('left', { agent = 'made_up_websocket', session = 's2' }, channel)
    local before = #pushes()
    line = 2
    t.wait(function() return #pushes() == before + 2 end)
    t.eq({ 's1', 'context/changed', { line = 2 } }, pushes()[before + 1])
    t.eq({ 's1', 'context/changed', { line = 2 } }, pushes()[before + 2])
    context.get = function() end
  end)

  it('can be mentioned a place, and shows what it has asked for', function()
    opened('made_up_http')
    local session = agent_sessions.session('s1')
    t.ok(ide.mention(session, { path = '/a', line = 3 }))
    t.eq({ 's1', 'mentioned', { path = '/a', line = 3 } }, pushes()[2])
    call('getPlace', nil, { agent = 'made_up_http' })
    call('getPlace', nil, { agent = 'made_up_http' })
    t.eq({ getPlace = 2 }, ide.status()[1].sessions[1].asked)
    for _, past in ipairs(require('mcp-tools.core').get().executor.history.list(100)) do
      t.ok(past.name ~= 'getPlace', 'the history has calls of the user, not of the channel')
    end
    t.eq({}, ide.status()[2].sessions)
  end)

  it('ends with its agent, and with the bridge', function()
    opened('made_up_http')
    opened('made_up_websocket', 's2')
    setup({ 'made_up_websocket' })
    t.eq({ 'left', 's1', false }, agent('http').told[2])
    t.eq({ 1, 's2' }, { #agent_sessions.sessions(), agent_sessions.sessions()[1].key })
    wire.lost(channel)
    t.eq({}, agent_sessions.sessions())
    t.eq({ 'left', 's2', false }, agent('websocket').told[#agent('websocket').told])
  end)

  it('is not lost when its agent throws', function()
    agent('http').opened = function() error('oh') end
    opened('made_up_http')
    t.eq(1, #agent_sessions.sessions())
  end)
end)

describe('a discovery file', function()
  it('lies there for this user alone while the endpoint is open, and goes with the bridge', function()
    local directory = vim.env.MADE_UP_FOLDER .. '/ide' -- that its group may change
    vim.fn.mkdir(directory, 'p')
    vim.uv.fs_chmod(directory, tonumber('775', 8))
    setup({ 'made_up_http' })
    start()
    t.eq(nil, lock())
    attach({ 'made_up_http' })
    local body = await_lock()
    t.eq({ bridge.get_port(), vim.uv.os_getpid() }, { body.port, body.pid })
    t.ok(body.token ~= bridge.get_auth_token() and #body.token == 64)
    t.eq(vim.uv.fs_realpath(project.root()), body.roots[1])
    t.eq({ '600', '700' }, { mode_of(lock_file()), mode_of(vim.fs.dirname(lock_file())) })
    t.eq({ lock_file() }, ide.status()[1].files)
    local gone = lock_file()
    bridge.stop()
    t.wait(function() return not vim.uv.fs_stat(gone) end, 5000, 'the end of the discovery file')
    t.eq({}, vim.fn.readdir(vim.fs.dirname(gone)))
  end)

  it('stays while the bridge is started anew, to the byte', function()
    find()
    local inode, seen = vim.uv.fs_stat(lock_file()).ino, {}
    local path = lock_file()
    bridge.restart()
    t.wait(function()
      table.insert(seen, vim.uv.fs_stat(path) ~= nil)
      return bridge.status().state == 'ready'
    end, 5000, 'the new bridge')
    t.ok(not vim.list_contains(seen, false))
    attach({ 'made_up_http' })
    t.wait(
      function() return lock().bridge_pid == bridge.status().pid end,
      5000,
      'the process of the new bridge in the file'
    )
    t.ok(vim.uv.fs_stat(path).ino ~= inode) -- another file in its place, never half of one
  end)

  it('follows the working directory and the option', function()
    local other, before = vim.uv.fs_realpath(vim.env.MADE_UP_FOLDER), vim.uv.cwd()
    find()
    vim.cmd.cd(vim.fn.fnameescape(other))
    t.wait(function()
      local body = lock()
      return body and vim.list_contains(body.roots, other)
    end, 5000, 'the new directory in the file')
    vim.cmd.cd(vim.fn.fnameescape(before))
    setup({})
    await_no_lock()
  end)

  it('goes when another plugin has come that does the same, comes again, and goes with the editor', function()
    find()
    vim.env.MADE_UP_SKIP = 'another plugin does that'
    vim.cmd('doautocmd TermOpen')
    await_no_lock()
    t.eq({ 'off', 'another plugin does that' }, { ide.status()[1].state, ide.status()[1].reason })
    vim.env.MADE_UP_SKIP = nil
    vim.cmd('doautocmd TermOpen')
    await_lock()
    t.eq('on', ide.status()[1].state)
    vim.api.nvim_exec_autocmds('VimLeavePre', { group = 'mcp-tools.agents' })
    t.eq(nil, vim.uv.fs_stat(lock_file()))
  end)

  it('is not written below a folder of another user, or one that all may change', function()
    local shared = vim.env.MADE_UP_FOLDER .. '/shared'
    vim.fn.mkdir(shared, 'p')
    vim.uv.fs_chmod(shared, tonumber('777', 8))
    vim.env.MADE_UP_FOLDER = shared
    ready('made_up_http')
    local status = t.wait(function() return ide.status()[1].reason and ide.status()[1] end, 5000, 'a fault')
    t.matches('can be written by other users: run `chmod', status.reason)
    t.eq({}, vim.fn.readdir(shared))
    if vim.uv.getuid() == 0 then
      vim.uv.fs_chmod(shared, tonumber('755', 8))
      vim.uv.fs_chown(shared, 12345, 12345)
      vim.cmd.doautocmd('DirChanged')
      t.wait(
        function() return (ide.status()[1].reason or ''):find('belongs to another user', 1, true) end,
        5000,
        'the other fault'
      )
      t.eq({}, vim.fn.readdir(shared))
    end
  end)

  it('follows no link and no folder that lies in its place', function()
    setup({ 'made_up_http' })
    start()
    local victim = vim.env.MADE_UP_FOLDER .. '/victim'
    vim.fn.writefile({ 'mine' }, victim)
    vim.fn.mkdir(vim.fs.dirname(lock_file()), 'p')
    vim.uv.fs_symlink(victim, lock_file())
    attach({ 'made_up_http' })
    t.wait(function() return vim.uv.fs_lstat(lock_file()).type == 'file' end, 5000, 'a file in the place of the link')
    t.eq({ 'mine' }, vim.fn.readfile(victim))
    t.eq(bridge.get_port(), lock().port)
  end)

  it('has its like for terminals of this editor, once the endpoint is open', function()
    local given, count_of = {}, 0
    local function ask()
      ide.environment('made_up_http', function(environment)
        given, count_of = environment, count_of + 1
      end)
    end
    setup({ 'made_up_http' })
    ask()
    t.eq({ nil, 1 }, { given, count_of })
    start()
    attach({ 'made_up_http' })
    ask()
    t.wait(function() return count_of == 2 end, 5000, 'the environment')
    t.eq({ env = { MADE_UP_PORT = tostring(bridge.get_port()) }, args = { '--ide' } }, given)
  end)

  it('of another editor, which has our port by now, stays where it is', function()
    find()
    local path = lock_file()
    for _, ends in ipairs({
      bridge.stop,
      function() vim.api.nvim_exec_autocmds('VimLeavePre', { group = 'mcp-tools.agents' }) end,
    }) do
      vim.fn.writefile({ 'of another' }, path)
      ends()
      t.wait(function() return #require('mcp-tools.agents.discovery_files').paths() == 0 end, 5000, 'the end of ours')
      t.eq({ 'of another' }, vim.fn.readfile(path))
      vim.fn.delete(path)
      if bridge.status().state ~= 'ready' then
        find()
        path = lock_file()
      end
    end
  end)

  it('of an editor that was killed goes, if no later one replaces it; what others have left stays', function()
    local discovery_files = require('mcp-tools.agents.discovery_files')
    local folder, ours = vim.env.MADE_UP_FOLDER, '{"ideInfo":{"name":"neovim"},"pid":%d}'
    local dead, mine = vim.system({ 'true' }), vim.uv.os_getpid()
    dead:wait()
    local function path(name, pid) return folder .. '/' .. name:format(pid) end
    local own, left = path('server-%d-1.json', mine), path('server-%d-2.json', dead.pid)
    local others = {
      [path('server-%d-3.json', mine)] = ours:format(mine),
      [path('server-%d-4.json', dead.pid)] = '{"ideInfo":{"name":"another"}}',
      [path('nameless-%d-1.json', dead.pid)] = ours:format(dead.pid),
      [path('4711.lock')] = ours:format(dead.pid), -- perhaps of another host with the same home directory
    }
    for name, text in pairs(vim.tbl_extend('error', others, { [left] = ours:format(dead.pid) })) do
      vim.fn.writefile({ text }, name)
    end
    discovery_files.set({ [own] = ours:format(mine) }, {})
    t.eq({ true, false }, { vim.uv.fs_stat(own) ~= nil, vim.uv.fs_stat(left) ~= nil })
    for name in pairs(others) do
      t.ok(vim.uv.fs_stat(name), name)
    end
    discovery_files.set({}, {})
  end)
end)

describe('people', function()
  local function shown(run)
    run()
    local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
    vim.cmd('bwipeout!')
    return text
  end

  local function status() return shown(require('mcp-tools.command').find('status').run) end

  local function health()
    return shown(function() vim.cmd('silent checkhealth mcp-tools') end)
  end

  it('see in status and health who is there, what they have asked for, and why another is not', function()
    t.matches('none; the option `agents`', health())
    setup({ 'made_up_http', 'made_up_broken' })
    t.matches('Made up +agent  waiting: the bridge is not ready', status())
    t.matches('Made up %(made_up_http%): waiting, the bridge is not ready', health())
    start()
    attach({ 'made_up_http' })
    await_lock()
    t.matches('Made up +agent  on\n.*made_up_broken +agent  off: endpoint.transport: must be', status())
    t.matches('OK.- Made up %(made_up_http%) can find this editor: .*%.lock', health())
    t.matches('ERROR.- made_up_broken: endpoint.transport', health())
    local data = { agent = 'made_up_http', session = 's1', client = 'ag\27ent\nx', version = '3' }
    wire.agent_event('opened', data, channel)
    call('getPlace', nil, { agent = 'made_up_http' })
    call('getPlace', nil, { agent = 'made_up_http' })
    for _, text in ipairs({ status(), health() }) do
      t.matches('ag[^\n]*ent[^\n]*x[^\n]* 3[^\n]*has called getPlace', text)
      t.ok(not text:find('\27', 1, true))
    end
    t.matches('getPlace ×2', status())
  end)
end)

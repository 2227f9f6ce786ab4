-- slow, every Neovim
-- Agents of an editor: made-up agents and a made-up bridge, through the RPC verbs and the files on disk.

local bridge = require('mcp-tools.bridge')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local agent_sessions = require('mcp-tools.editor.agents')
local agents = require('mcp-tools.agents')
local mcp_tools = require('mcp-tools')
local notifications = require('notifications')
local project = require('mcp-tools.instances.project')
local t = require('helpers')
local wire = require('mcp-tools.rpc')

local real_rpcnotify = vim.rpcnotify
vim.opt.runtimepath:append(t.FIXTURES .. '/agents')

--- Replaces the context of the editor.
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
  agents.follow()
end

--- The bridge says hello and reports these endpoints as open.
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

--- Starts a bridge with open endpoints for these agents.
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

--- Notifications that were pushed to sessions: { session, method, params }.
local function pushes()
  local function push(each) return each[1] == 'push' and { each[3], each[4], vim.json.decode(each[5]) } or nil end
  return vim.iter(sent):map(push):totable()
end

local function names_of(list) return t.field('name', list) end

local function listed(scope)
  local reply = wire.list('tools', nil, { client = 'agent', scope = scope })
  return names_of(vim.json.decode(reply.json))
end

local function call(name, args, scope, opts)
  count = count + 1
  local context_of = { channel = channel, call_id = 'i' .. count, session = 's1', scope = scope }
  context_of.client = { name = 'agent', version = '3' }
  return wire.execute(name, args or vim.empty_dict(), vim.tbl_extend('force', context_of, opts or {}))
end

local function lock_file()
  return ('%s/ide/%d.lock'):format(vim.env.MADE_UP_FOLDER, bridge.get_port() or bridge.status().wanted_port)
end

local function lock()
  local ok, value = pcall(function() return vim.json.decode(table.concat(vim.fn.readfile(lock_file()), '\n')) end)
  return ok and value or nil
end

--- State, reason and fault of the first agent.
local function state()
  local first = agents.status()[1]
  return { first.state, first.reason, first.fault }
end

local function new_channel()
  return vim.fn.jobstart({ vim.v.progpath, '--clean', '--embed', '--headless' }, { rpc = true })
end
local function await_lock(what)
  return t.wait(function() return #agents.status()[1].files > 0 and lock() end, 5000, what or 'a discovery file')
end

--- Starts an agent and returns its discovery file.
local function find()
  ready('made_up_http')
  return await_lock()
end

local function await_no_lock()
  local path = lock_file()
  t.wait(function() return not vim.uv.fs_stat(path) end, 5000, 'the end of the discovery file')
end

local function mode_of(path) return ('%o'):format(bit.band(vim.uv.fs_stat(path).mode, tonumber('777', 8))) end

notifications.each()
before_each(function()
  for _, name in ipairs({ 'XDG_RUNTIME_DIR', 'MADE_UP_FOLDER' }) do
    vim.env[name] = vim.fn.tempname()
    vim.fn.mkdir(vim.env[name], 'p', tonumber('700', 8))
  end
  vim.env.FAKE_REPORT, vim.env.MADE_UP_SKIP = vim.fn.tempname(), nil
  config.reset()
  config.setup({ bridge = { command = { 'python3', t.FIXTURES .. '/fake_bridge.py', 'ready' } } })
  channel = new_channel()
  sent = {}
  vim.rpcnotify = function(id, event, ...)
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
  vim.rpcnotify = real_rpcnotify
  for name in pairs(package.loaded) do
    if name:find('^mcp%-tools%.agents%.known%.') then
      package.loaded[name] = nil
    end
  end
  core.registry():clear('tools')
  config.reset()
end)

describe('endpoints', function()
  it('are in the answer to hello; each has its own token, which is not that of the bridge', function()
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
    t.eq({ { name = 'made-up-editor', version = '7' }, 'nonce' }, { endpoints[2].server, endpoints[3].scheme })
    t.ok(#endpoints[3].socket < 104 and vim.startswith(endpoints[3].socket, vim.env.XDG_RUNTIME_DIR))
    t.eq('700', mode_of(vim.fs.dirname(endpoints[3].socket)))
    t.eq(endpoints, attach({}).endpoints) -- the same after a restart, or agents would not come back
  end)

  it('are sent again when the option changes, but not to the bridge of another process', function()
    start()
    t.eq(nil, attach({}).endpoints)
    setup({ 'made_up_http' })
    t.eq({ 'endpoints', 'made_up_http' }, { sent[1][1], vim.json.decode(sent[1][2])[1].name })
    local info = { protocol = wire.PROTOCOL, pid = 1, port = 1, wanted_port = 1, port_holder = 'none', versions = {} }
    config.setup({ bridge = { command = { 'x' } } })
    local other = new_channel()
    wire.hello(other, vim.tbl_extend('force', info, { role = 'client' }))
    t.eq(nil, wire.hello(other, vim.tbl_extend('force', info, { role = 'client' })).endpoints)
    wire.lost(other)
    vim.fn.jobstop(other)
  end)

  it('use a socket in the temporary directory when a path is too long for one', function()
    vim.env.XDG_RUNTIME_DIR = vim.env.XDG_RUNTIME_DIR .. '/' .. ('x'):rep(90)
    vim.fn.mkdir(vim.env.XDG_RUNTIME_DIR, 'p', tonumber('700', 8))
    local socket = ready('made_up_unix').endpoints[1].socket
    t.ok(#socket < 104)
    t.eq('700', mode_of(vim.fs.dirname(socket)))
  end)
end)

describe('the option `agents`', function()
  it('names the agents that are on; the status says why others are not', function()
    vim.env.MADE_UP_SKIP = 'another plugin does that'
    setup({ 'made_up_http', 'made_up_broken', 'made_up_htpt', 'made_up_http' })
    local status = agents.status()
    t.eq(3, #status)
    t.eq({ 'off', 'another plugin does that', nil }, { status[1].state, status[1].reason, status[1].fault })
    t.eq({ 'off', true }, { status[2].state, status[2].fault })
    t.matches('endpoint.transport: must be one of http, websocket, unix', status[2].reason)
    t.eq('unknown agent, did you mean made_up_http?', status[3].reason)
    vim.env.MADE_UP_SKIP = nil
    setup(true)
    t.eq(true, #agents.status() > 0)
    setup('auto')
    local names = names_of(agents.status())
    t.ok(vim.list_contains(names, 'made_up_unix') and not vim.list_contains(names, '_made_up'))
    setup({ 'opencode', 'claude' }) -- opencode uses the endpoint of Claude Code
    t.eq({ 'claude' }, names_of(agents.status()))
    setup(false)
    t.eq({}, agents.status())
  end)

  it('does not enable an agent whose endpoint has no transport, which would end the bridge', function()
    for _, endpoint in ipairs({ {}, true }) do
      package.loaded['mcp-tools.agents.known.made_up_broken'] = { name = 'made_up_broken', endpoint = endpoint }
      setup({})
      setup({ 'made_up_broken' })
      t.eq('endpoint.transport: must be one of http, websocket, unix', agents.status()[1].reason)
    end
    package.loaded['mcp-tools.agents.known.made_up_broken'] = nil
  end)

  it('does not enable an agent that uses no agent with an endpoint', function()
    local broken = { name = 'made_up_broken' }
    package.loaded['mcp-tools.agents.known.made_up_broken'] = broken
    for _, case in ipairs({
      { 7, 'uses: must be the name of an agent' },
      { 'made_up_htpt', 'uses: unknown agent, did you mean made_up_http?' },
      { 'made_up_broken', "uses: agent 'made_up_broken' uses another agent" },
      { 'opencode', "uses: agent 'opencode' uses another agent" },
    }) do
      broken.uses = case[1]
      setup({})
      setup({ 'made_up_broken' })
      t.eq({ 'made_up_broken', case[2] }, { agents.status()[1].name, agents.status()[1].reason })
    end
    package.loaded['mcp-tools.agents.known.made_up_broken'] = nil
  end)

  it('is in effect when the bridge and the endpoint are ready', function()
    setup({ 'made_up_http' })
    t.eq({ 'waiting', 'the bridge is not ready' }, state())
    start()
    attach({})
    t.eq({ 'waiting', 'its endpoint is not open' }, state())
    wire.report('endpoints', { open = {}, failed = { made_up_http = 'no room' } }, channel)
    t.eq({ 'off', 'no room', true }, state())
    wire.report('endpoints', { open = { 'made_up_http' }, failed = {} }, channel)
    t.eq({ 'on' }, state())
  end)
end)

describe('the scope of an agent', function()
  local SCOPE = { agent = 'made_up_http' }

  it('contains only its own tools, by the names that its agent knows', function()
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

  it('is hidden from other clients, and empty for an agent that is off', function()
    ready('made_up_http')
    t.eq('unknown_tool', call('getPlace').result.error.code)
    t.eq('unknown_tool', call('openDiff', { text = 'x' }, { tools = { 'all' } }).result.error.code)
    t.ok(not vim.list_contains(listed(), 'nvim_openDiff'))
    for _, name in ipairs({ 'made_up_websocket', 'nobody', '' }) do
      t.eq({}, listed({ agent = name }))
      t.eq('unknown_tool', call('getPlace', nil, { agent = name }).result.error.code)
    end
    setup({})
    t.eq({ {}, 'unknown_tool' }, { listed(SCOPE), call('getPlace', nil, SCOPE).result.error.code })
  end)

  it('asks no questions, but denies what the user has forbidden', function()
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

  it('is reported to its agent, which may push to it until it has left', function()
    opened('made_up_http')
    t.eq({ { 's1', 'hello', { from = 'made_up_http' } } }, pushes())
    t.eq({ { 'opened', 'agent', '3' }, 's1' }, { agent('http').told[1], agent_sessions.session('s1').key })
    local note = { agent = 'made_up_http', session = 's1', method = 'ide_connected', params = '{"pid":4}' }
    wire.agent_event('notified', note, channel)
    t.eq({ 'notified', 'ide_connected', { pid = 4 } }, agent('http').told[2])
    t.eq({ 's1', 'heard', { method = 'ide_connected' } }, pushes()[2])
    wire.agent_event('left', { agent = 'made_up_http', session = 's1' }, channel)
    t.eq({ 'left', 's1', false }, agent('http').told[3])
    t.eq({ nil, 2 }, { agent_sessions.session('s1'), #pushes() })
  end)

  it('starts to watch files that agents write', function()
    local disk_writes = require('mcp-tools.editor.agents.disk_writes')
    disk_writes.stop()
    opened('made_up_http')
    t.wait(function() return vim.fn.exists('#mcp-tools.review.disk#BufReadPost') == 1 end)
    disk_writes.stop()
  end)

  it('is accepted only from its own bridge, and only for agents that are on', function()
    wire.agent_event('opened', { agent = 'made_up_http', session = 's1' }, channel + 1)
    opened('made_up_unix')
    opened('nobody')
    wire.agent_event('burned', { agent = 'made_up_http', session = 's1' }, channel)
    t.eq({}, agent_sessions.sessions())
  end)

  it('gets the context when it opens, and then each change, which replaces the one before', function()
    context.get = function() return { line = 1 } end
    opened('made_up_http')
    opened('made_up_websocket', 's2')
    t.eq({ 's2', 'context/changed', { line = 1 } }, pushes()[4])
    context.tell({ line = 2 })
    local function changed(session) return { session, 'context/changed', { line = 2 } } end
    t.eq({ changed('s1'), changed('s2') }, vim.list_slice(pushes(), 5, 6))
    t.eq({ 'push', 'made_up_http', 's1', 'context/changed', '{"line":2}', true }, sent[5])
    t.eq(false, sent[1][6]) -- a notification of the agent itself is never replaced
    context.get = function() end
  end)

  it('gets the context again soon after it has opened, but not after it has left', function()
    local line = 1
    context.get = function() return { line = line } end
    opened('made_up_http')
    opened('made_up_websocket', 's2')
    wire.agent_event('left', { agent = 'made_up_websocket', session = 's2' }, channel)
    local before = #pushes()
    line = 2
    t.wait(function() return #pushes() == before + 2 end)
    local changed = { 's1', 'context/changed', { line = 2 } }
    t.eq({ changed, changed }, vim.list_slice(pushes(), before + 1))
    context.get = function() end
  end)

  it('can get a mention; its calls are counted in the status, not in the history', function()
    opened('made_up_http')
    local session = agent_sessions.session('s1')
    t.ok(agents.mention(session, { path = '/a', line = 3 }))
    t.eq({ 's1', 'mentioned', { path = '/a', line = 3 } }, pushes()[2])
    call('getPlace', nil, { agent = 'made_up_http' })
    call('getPlace', nil, { agent = 'made_up_http' })
    t.eq({ getPlace = 2 }, agents.status()[1].sessions[1].asked)
    for _, past in ipairs(require('mcp-tools.core').get().executor.history.list(100)) do
      t.ok(past.name ~= 'getPlace', 'the history has calls of the user, not of the channel')
    end
    t.eq({}, agents.status()[2].sessions)
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

  it('survives an error of its agent', function()
    agent('http').opened = function() error('oh') end
    opened('made_up_http')
    t.eq(1, #agent_sessions.sessions())
  end)
end)

describe('a discovery file', function()
  it('exists only while the endpoint is open, readable only by this user', function()
    local directory = vim.env.MADE_UP_FOLDER .. '/ide' -- writable by its group
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
    t.eq({ lock_file() }, agents.status()[1].files)
    local gone = lock_file()
    bridge.stop()
    t.wait(function() return not vim.uv.fs_stat(gone) end, 5000, 'the end of the discovery file')
    t.eq({}, vim.fn.readdir(vim.fs.dirname(gone)))
  end)

  it('stays unchanged while the bridge restarts', function()
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
    local function is_new() return lock().bridge_pid == bridge.status().pid end
    t.wait(is_new, 5000, 'the process of the new bridge in the file')
    t.ok(vim.uv.fs_stat(path).ino ~= inode) -- replaced as a whole
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

  it('is removed while another plugin does the same, and when the editor exits', function()
    find()
    vim.env.MADE_UP_SKIP = 'another plugin does that'
    vim.cmd('doautocmd TermOpen')
    await_no_lock()
    t.eq({ 'off', 'another plugin does that' }, state())
    vim.env.MADE_UP_SKIP = nil
    vim.cmd('doautocmd TermOpen')
    await_lock()
    t.eq({ 'on' }, state())
    vim.api.nvim_exec_autocmds('VimLeavePre', { group = 'mcp-tools.agents' })
    t.eq(nil, vim.uv.fs_stat(lock_file()))
  end)

  it('is not written into a directory of another user, or one that others can write', function()
    local shared = vim.env.MADE_UP_FOLDER .. '/shared'
    vim.fn.mkdir(shared, 'p')
    vim.uv.fs_chmod(shared, tonumber('777', 8))
    vim.env.MADE_UP_FOLDER = shared
    ready('made_up_http')
    local status = t.wait(function() return agents.status()[1].reason and agents.status()[1] end, 5000, 'a fault')
    t.matches('can be written by other users: run `chmod', status.reason)
    t.eq({}, vim.fn.readdir(shared))
    if vim.uv.getuid() == 0 then
      vim.uv.fs_chmod(shared, tonumber('755', 8))
      vim.uv.fs_chown(shared, 12345, 12345)
      vim.cmd.doautocmd('DirChanged')
      local function is_foreign() return (agents.status()[1].reason or ''):find('belongs to another user', 1, true) end
      t.wait(is_foreign, 5000, 'the other fault')
      t.eq({}, vim.fn.readdir(shared))
    end
  end)

  it('replaces a link instead of following it', function()
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

  it('has an equivalent for terminals of this editor, once the endpoint is open', function()
    local given, count_of = {}, 0
    local function ask()
      agents.environment('made_up_http', function(environment)
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

  it('that another editor has overwritten stays', function()
    find()
    local path = lock_file()
    for _, ends in ipairs({
      bridge.stop,
      function() vim.api.nvim_exec_autocmds('VimLeavePre', { group = 'mcp-tools.agents' }) end,
    }) do
      vim.fn.writefile({ 'of another editor' }, path)
      ends()
      t.wait(function() return #require('mcp-tools.agents.discovery_files').paths() == 0 end, 5000, 'the end of ours')
      t.eq({ 'of another editor' }, vim.fn.readfile(path))
      vim.fn.delete(path)
      if bridge.status().state ~= 'ready' then
        find()
        path = lock_file()
      end
    end
  end)

  it('of an editor that was killed is removed; files of others stay', function()
    local discovery_files = require('mcp-tools.agents.discovery_files')
    local directory, ours = vim.env.MADE_UP_FOLDER, '{"ideInfo":{"name":"neovim"},"pid":%d}'
    local dead, mine = vim.system({ 'true' }), vim.uv.os_getpid()
    dead:wait()
    local function path(name, pid) return directory .. '/' .. name:format(pid) end
    local own, left = path('server-%d-1.json', mine), path('server-%d-2.json', dead.pid)
    local others = {
      [path('server-%d-3.json', mine)] = ours:format(mine),
      [path('server-%d-4.json', dead.pid)] = '{"ideInfo":{"name":"another"}}',
      [path('nameless-%d-1.json', dead.pid)] = ours:format(dead.pid),
      [path('4711.lock')] = ours:format(dead.pid), -- perhaps from another host with the same home directory
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

it('users see in status and health which agents are connected, what they called, and why another is off', function()
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

  t.matches('no agent links: the option `agents` is empty', health())
  setup({ 'made_up_http', 'made_up_broken' })
  t.matches('Made up +editor link  waiting: the bridge is not ready', status())
  t.matches('Made up %(made_up_http%): waiting, the bridge is not ready', health())
  start()
  attach({ 'made_up_http' })
  await_lock()
  t.matches('Made up +editor link  on\n.*made_up_broken +editor link  off: endpoint.transport: must be', status())
  t.matches('OK.- Made up %(made_up_http%) can find this editor: .*%.lock', health())
  t.matches('ERROR.- made_up_broken: endpoint.transport', health())
  local data = { agent = 'made_up_http', session = 's1', client = 'ag\27ent\nx', version = '3' }
  wire.agent_event('opened', data, channel)
  call('getPlace', nil, { agent = 'made_up_http' })
  call('getPlace', nil, { agent = 'made_up_http' })
  t.matches('ag[^\n]*ent[^\n]*x[^\n]* 3[^\n]*has called getPlace', health())
  t.matches('ag[^\n]*ent[^\n]*x[^\n]* 3 +editor link', status())
  t.ok(not (health() .. status()):find('\27', 1, true))
end)

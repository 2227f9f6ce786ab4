-- slow
local notifications = require('notifications')
local t = require('helpers')
local current = require('mcp-tools.bridge.current')
local bridge = require('mcp-tools.bridge')
local config = require('mcp-tools.config')
local identity = require('mcp-tools.instances.identity')
local interpreter = require('mcp-tools.bridge.interpreter')
local instances = require('mcp-tools.instances.file')
local project = require('mcp-tools.instances.project')

local FIXTURE = t.FIXTURES .. '/fake_bridge.py'

local report

local function starts() return vim.tbl_map(vim.json.decode, vim.uv.fs_stat(report) and vim.fn.readfile(report) or {}) end

local function use(behaviour)
  config.reset()
  config.setup({ bridge = { command = { 'python3', FIXTURE, behaviour } } })
end

local function reach(state)
  t.wait(function() return bridge.status().state == state end, 5000, 'state ' .. state)
end

local function start_up(state)
  bridge.start()
  reach(state or 'ready')
end

--- Waits until as many processes have started and the last one is ready.
local function restarted(count)
  t.wait(function() return #starts() == count and bridge.status().state == 'ready' end, 5000, 'the next process')
end

local function run()
  use('ready')
  start_up()
end

local function instance()
  local path = vim.fs.joinpath(instances.dir(), vim.uv.os_getpid() .. '.json')
  return vim.uv.fs_stat(path) and vim.json.decode(table.concat(vim.fn.readfile(path), '\n')) or nil
end

--- The message of the bridge when it attaches.
local function hello(fields)
  local port = bridge.status().wanted_port
  return vim.tbl_extend('force', {
    protocol = 1,
    pid = bridge.status().pid,
    port = port,
    wanted_port = port,
    port_holder = 'none',
    versions = { bridge = '1', python = '3.11.7', sdk = '2.3.0' },
  }, fields or {})
end

describe('bridge', function()
  notifications.each()
  before_each(function()
    report = vim.fn.tempname()
    vim.env.FAKE_REPORT = report
    vim.env.XDG_RUNTIME_DIR = vim.fn.tempname()
    vim.fn.mkdir(vim.env.XDG_RUNTIME_DIR, 'p', tonumber('700', 8))
  end)

  after_each(function()
    bridge.stop()
    reach('stopped')
  end)

  it('passes the bridge its environment, and the token only by stdin', function()
    use('ready')
    vim.env.PYTHONHOME = nil
    vim.env.MCP_AUTH_TOKEN = 'of another server'
    bridge.start()
    vim.env.MCP_AUTH_TOKEN = nil
    reach('ready')
    local start = starts()[1]
    local mine = identity.load(project.root())
    t.eq({ { 'ready' }, mine.token .. '\n' }, { start.argv, start.stdin })
    t.eq({ '1', nil }, { start.env.MCP_TOOLS_TOKEN_STDIN, start.env.MCP_AUTH_TOKEN })
    t.ok(not vim.inspect(start.env):find(mine.token, 1, true))
    t.has({
      MCP_PORT = tostring(mine.port),
      NVIM_LISTEN_ADDRESS = vim.v.servername,
      MCP_TOOL_TIMEOUT = '300000',
      MCP_TOOLS_PORT_FALLBACK = '1',
      MCP_TOOLS_INSTANCE_DIR = instances.dir(),
      MCP_TOOLS_HOST = '127.0.0.1',
      NVIM = '',
    }, start.env)
    local root = project.plugin_dir()
    t.eq({ root .. '/bridge', root }, { start.env.PYTHONPATH:match('^[^:]*'), start.cwd })
  end)

  it('has an endpoint while it is ready, not before and not after', function()
    use('slow')
    local port, stopped
    bridge.start({ on_ready = function(p) port = p end, on_stop = function() stopped = true end })
    t.eq({ nil, nil, true }, { bridge.get_port(), bridge.endpoint(), bridge.is_running() })
    t.wait(function() return port end, 5000)
    t.eq(port, bridge.get_port())
    local endpoint = bridge.endpoint()
    t.eq({ ('http://127.0.0.1:%d/mcp'):format(port), bridge.get_auth_token() }, { endpoint.url, endpoint.token })
    t.eq({ endpoint.url, endpoint.token }, { instance().url, instance().token })
    bridge.stop()
    t.eq({}, { bridge.get_port(), bridge.endpoint(), bridge.get_auth_token(), instance() })
    t.eq(false, bridge.is_running())
    t.wait(function() return stopped end)
  end)

  it('calls on_ready and on_stop of setup() once for each run', function()
    use('ready')
    local seen = {}
    local function add(value) table.insert(seen, value or 'stopped') end
    config.setup({ on_ready = add, on_stop = function() add() end })
    bridge.start()
    start_up()
    bridge.stop()
    bridge.start()
    t.wait(function() return #seen == 3 end, 5000)
    local port = bridge.get_port()
    t.eq({ port, 'stopped', port }, seen)
  end)

  it('calls every callback once, even if one throws; a restart or a crash is not a stop', function()
    use('slow')
    local seen = {}
    local function watcher(name)
      return {
        on_ready = function(port)
          table.insert(seen, ('ready %s %s'):format(name, port == bridge.get_port()))
          error('mine is broken')
        end,
        on_stop = function() table.insert(seen, 'stop ' .. name) end,
      }
    end
    local function hears(...)
      local expected = { ... }
      t.wait(function() return #seen >= #expected end, 5000, 'a callback')
      t.eq(expected, seen)
      seen = {}
    end
    local function next_process(act)
      local count = #starts()
      act()
      restarted(count + 1)
    end
    bridge.start(watcher('a'))
    bridge.start(watcher('b'))
    hears('ready a true', 'ready b true')
    bridge.start(watcher('c'))
    hears('ready c true')
    notifications.wait('mine is broken')
    t.eq(1, #starts())
    next_process(bridge.restart)
    next_process(function() vim.uv.kill(bridge.status().pid, 'sigkill') end)
    t.eq(1, bridge.status().tries)
    t.matches('signal 9', bridge.status().last_error)
    bridge.stop(watcher('stopped').on_stop)
    bridge.start(watcher('d'))
    bridge.stop(watcher('stopped again').on_stop)
    hears('stop a', 'stop b', 'stop c', 'stop d', 'stop stopped', 'stop stopped again')
    t.eq({ false, 'stopped' }, { bridge.is_wanted(), bridge.status().state })
    bridge.stop(watcher('at rest').on_stop)
    hears('stop at rest')
  end)

  it('starts again after an orderly exit, and resets its retries after a stable time', function()
    local control = require('mcp-tools.bridge.control')
    local stable = control.STABLE
    control.STABLE = 400
    use('ends-once')
    bridge.start()
    restarted(2)
    t.eq('the process ended with code 0', bridge.status().last_error)
    t.wait(function() return bridge.status().tries == 0 end)
    control.STABLE = stable
  end)

  it('does not start when its command was found after stop()', function()
    local python = vim.fn.tempname()
    vim.fn.writefile({ '#!/bin/sh', 'sleep 0.2', 'echo 3.12.0', 'touch ' .. python .. '.asked' }, python)
    vim.uv.fs_chmod(python, tonumber('700', 8))
    config.reset()
    config.setup({ bridge = { python = python } })
    bridge.start()
    t.eq('starting', bridge.status().state)
    bridge.stop()
    t.wait(function() return vim.uv.fs_stat(python .. '.asked') end)
    vim.wait(100)
    t.eq({ 'stopped', false }, { bridge.status().state, bridge.is_running() })
  end)

  it('uses another port for one start', function()
    use('ready')
    bridge.start({ port = 4999, nvim_socket = '/tmp/other.sock' })
    reach('ready')
    t.eq({ 4999, '/tmp/other.sock' }, { bridge.get_port(), starts()[1].env.NVIM_LISTEN_ADDRESS })
    t.eq('/tmp/other.sock', instance().socket)
  end)

  it('keeps port and token over a restart', function()
    run()
    local before = bridge.endpoint()
    bridge.restart()
    t.wait(function() return #starts() == 2 and bridge.get_port() end, 5000)
    t.eq(before, bridge.endpoint())
    config.setup({ bridge = { host = '::1' } }) -- for the next start
    t.eq({ before, before.url }, { bridge.endpoint(), bridge.status().url })
  end)

  it('has the port that the bridge reports, and the wanted one when it is free again', function()
    run()
    local wanted = bridge.get_port()
    t.eq(nil, current.attached(7, hello({ port = wanted + 1, port_holder = 'ours' })))
    t.eq({ wanted + 1, '3.11.7' }, { bridge.get_port(), bridge.status().python_version })
    current.report('listening', { port = wanted }, 7)
    t.eq({ wanted, wanted }, { bridge.endpoint().port, instance().port })
    current.detached(7)
    t.eq(false, bridge.status().attached)
  end)

  it('creates a new token when another process has the port, and notifies the user', function()
    run()
    local old = bridge.get_auth_token()
    local port = bridge.get_port()
    local token = current.attached(7, hello({ port = port + 1, port_holder = 'foreign' }))
    t.ok(token ~= old)
    t.eq({ token, token }, { bridge.get_auth_token(), identity.load(project.root()).token })
    t.matches(('another process uses port %d '):format(port), bridge.status().note)
    notifications.wait('with a new token')
    t.ok(not notifications.text():find(token, 1, true))

    -- The next process of this editor finds the same one: its token was not sent there, so it stays.
    local again = hello({ port = port + 1, port_holder = 'foreign' })
    t.eq(nil, current.attached(8, again))
    t.matches('another process uses', bridge.status().note)
    -- Once the port was ours, clients use it: the next foreign process leads to a new token.
    current.report('listening', { port = port }, 8)
    t.ok(current.attached(9, again) ~= token)
  end)

  it('uses the token that another editor of the project creates', function()
    run()
    local port = bridge.get_port()
    local other = assert(identity.load(project.root()))
    t.ok(identity.renew_token(other, port))
    local function is_renewed() return bridge.status().state == 'ready' and bridge.get_auth_token() == other.token end
    t.wait(is_renewed, 5000, 'the new token')
    t.eq({ other.token .. '\n', other.token }, { starts()[2].stdin, instance().token })
    -- Editors with different wanted ports must not renew each other's token endlessly.
    t.ok(identity.renew_token(other, port + 5))
    t.wait(is_renewed, 5000, 'the next token')
    t.eq(nil, current.attached(7, hello({ port = port + 1, port_holder = 'foreign' })))
    t.eq(other.token, identity.load(project.root()).token)
  end)

  it('ignores a bridge that another process has started', function()
    use('ready')
    t.eq(nil, current.attached(9, { pid = 1, port = 1, wanted_port = 1, port_holder = 'foreign', versions = {} }))
    current.report('listening', { port = 1 }, 9)
    current.report('sessions', { count = 9, calls = 9, clients = {} }, 9)
    t.eq({ nil, nil, false }, { bridge.get_port(), bridge.status().sessions, bridge.status().attached })
    start_up()
    local port = bridge.get_port()
    current.attached(7, hello())
    current.report('listening', { port = 1 }, 9)
    current.report('sessions', { count = 9, calls = 9, clients = {} }, 9)
    t.eq({ port, nil }, { bridge.get_port(), bridge.status().sessions })
  end)

  it('accepts only the process that it has started', function()
    run()
    local port, launch = bridge.get_port(), starts()[1].env.MCP_TOOLS_LAUNCH
    t.ok(#launch > 8)
    for _, other in ipairs({ '', 'of another editor' }) do
      t.eq(nil, current.attached(9, hello({ port = 1, port_holder = 'foreign', launch = other })))
      t.eq({ port, false }, { bridge.get_port(), bridge.status().attached })
    end
    current.attached(7, hello({ pid = 1, launch = launch })) -- started by a wrapper
    t.eq(true, bridge.status().attached)
  end)

  it('stores reports of the bridge, and never shows the token', function()
    run()
    current.report('sessions', { count = 2, calls = 1, clients = {} })
    current.report('blocked', { mode = 'r', at = 1 })
    current.report('something new', {})
    local status = bridge.status()
    t.eq({ 2, 'r' }, { status.sessions.count, status.blocked.mode })
    t.ok(not vim.inspect(status):find(bridge.get_auth_token(), 1, true))
  end)

  it('reports once that the environment is missing, and starts nothing', function()
    config.reset()
    local stopped
    bridge.start({ on_stop = function() stopped = true end })
    reach('failed')
    t.wait(function() return stopped end)
    notifications.wait('Python is not set up. Run :McpTools install')
    t.eq({ 1, {}, 'Run :McpTools install' }, { #notifications.list, (starts()), bridge.status().to_do })
    require('mcp-tools.command').run({ args = 'endpoint' })
    notifications.wait('the bridge is not running. Run :McpTools install')
  end)

  it('reports an installation that is running or has failed, and starts nothing', function()
    config.reset()
    local note = interpreter.environment_dir() .. '.lock'
    vim.fn.mkdir(vim.fs.dirname(note), 'p')
    start_up('failed')
    vim.fn.writefile({ vim.json.encode({ pid = vim.uv.os_getpid() }) }, note) -- a build step began a moment later
    notifications.wait('is being installed; the bridge starts automatically')
    t.eq(true, bridge.status().fault.under_way)

    vim.fn.writefile({ vim.json.encode({ failed = 'no route to the index' }) }, note)
    notifications.wait('the Python environment of the bridge could not be installed: no route')
    t.eq(2, #notifications.list)
    t.matches('no route', bridge.status().last_error)
    vim.uv.fs_unlink(note)
  end)

  it('starts after the installation', function()
    config.reset()
    start_up('failed')
    use('ready')
    bridge.install({ command = { 'true' } })
    reach('ready')
  end)

  describe('its project', function()
    local before, here, elsewhere, port

    --- A directory with a project.
    local function new_project()
      local path = vim.fn.tempname()
      vim.fn.mkdir(path .. '/.git', 'p')
      return vim.uv.fs_realpath(path)
    end

    before_each(function()
      before, here, elsewhere = vim.uv.cwd(), new_project(), new_project()
      use('ready')
      project.fix(nil)
      vim.cmd.cd(here)
      start_up()
      t.eq(here, bridge.status().root)
      port = bridge.get_port()
    end)

    after_each(function()
      vim.cmd('silent! %bwipeout!')
      vim.cmd.cd(before)
      project.fix(nil)
    end)

    --- Asserts that the next process has the port and token of the first one.
    local function stays(act)
      local token, old = bridge.get_auth_token(), #starts()
      act()
      restarted(old + 1)
      t.eq({ here, port, token }, { bridge.status().root, bridge.get_port(), bridge.get_auth_token() })
      t.eq(here, project.root())
    end

    local function crash() vim.uv.kill(bridge.status().pid, 'sigkill') end

    local function stop_and_start()
      bridge.stop()
      bridge.start()
    end

    local function stop_then_start()
      bridge.stop()
      reach('stopped')
      bridge.start()
    end

    it('does not change with the working directory', function()
      vim.cmd.cd(elsewhere)
      stays(bridge.restart)
      stays(crash)
      stays(stop_and_start)
      stays(stop_then_start)
    end)

    it('does not change with the directory of a window, or a file of another project', function()
      vim.cmd.lcd(elsewhere)
      stays(bridge.restart)
      vim.fn.writefile({ 'text' }, elsewhere .. '/file')
      vim.cmd.edit(elsewhere .. '/file')
      stays(stop_then_start)
      stays(crash)
    end)

    it('does not change when its directory is deleted', function()
      vim.fn.delete(here, 'rf')
      stays(bridge.restart)
      stays(crash)
      stays(stop_then_start)
    end)

    it('changes to the one that the user names', function()
      vim.fn.mkdir(elsewhere .. '/below')
      bridge.restart({ root = elsewhere .. '/below' })
      restarted(2)
      t.eq({ elsewhere, elsewhere }, { bridge.status().root, project.root() })
      t.ok(bridge.get_port() ~= port)
      bridge.stop()
      reach('stopped')
      bridge.start({ root = here })
      reach('ready')
      t.eq({ here, port }, { bridge.status().root, bridge.get_port() })
    end)
  end)

  it('reports that the editor has no address, and starts when it has', function()
    use('ready')
    local address, runtime = vim.v.servername, vim.fn.stdpath('run')
    vim.fn.serverstop(address)
    vim.uv.fs_rename(runtime, runtime .. '-away')
    bridge.start()
    vim.uv.fs_rename(runtime .. '-away', runtime)
    reach('failed')
    notifications.wait('Failed to start server')
    t.eq({}, starts())
    start_up()
  end)

  it('reports a project file that others can write, and starts nothing', function()
    use('ready')
    local mine = assert(identity.load(project.find()))
    vim.uv.fs_chmod(mine.path, tonumber('666', 8))
    start_up('failed')
    notifications.wait('is writable by other users')
    t.eq({}, starts())
    vim.uv.fs_unlink(mine.path)
  end)
end)

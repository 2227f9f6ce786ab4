-- slow, every Neovim
local notifications = require('notifications')
local t = require('helpers')
local current = require('mcp-tools.bridge.current')
local bridge = require('mcp-tools.bridge')
local config = require('mcp-tools.config')

local FIXTURE = t.FIXTURES .. '/fake_bridge.py'

local function use(behaviour)
  config.reset()
  config.setup({ tools = {}, bridge = { command = { 'python3', FIXTURE, behaviour } } })
end

local function report()
  vim.cmd('silent checkhealth mcp-tools')
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  vim.cmd('bwipeout!')
  t.ok(not text:find('this check failed', 1, true), text)
  t.ok(not text:find('Failed to run healthcheck', 1, true), text)
  return text
end

local function reach(state)
  t.wait(function() return bridge.status().state == state end, 15000, 'state ' .. state)
end

local function start(state)
  bridge.start()
  reach(state or 'ready')
end

describe('health', function()
  before_each(function()
    config.reset()
    require('mcp-tools.instances.project').fix(nil)
    notifications.collect() -- keeps them out of the output
    vim.env.XDG_RUNTIME_DIR = nil
  end)

  after_each(function()
    bridge.stop()
    reach('stopped')
    notifications.restore()
  end)

  it('tells what to do before anything is set up', function()
    local text = report()
    t.matches({ 'OK.- Neovim %d+%.%d+%.%d+', 'setup%(%) was not called' }, text)
    t.matches('Python is not set up\n.*ADVICE.*\n.*Run :McpTools install', text)
    t.matches('setup%({ tools = "recommended" }%)', text)
  end)

  it('reports an installation that is running, and does not advise another one', function()
    start('failed')
    bridge.install({ command = { 'sleep', '1' } })
    local text = report()
    t.matches('the environment is being installed', text)
    t.matches('it is not running yet: the Python environment is being installed', text)
    t.ok(not text:find('ERROR', 1, true), text)
    t.wait(function() return not require('mcp-tools.bridge.install').is_running() end, 5000)
  end)

  it('reports that setup() was refused, and why, until it is accepted', function()
    pcall(config.setup, { bridge = { port = 'high' } })
    local text = report()
    t.matches({ 'ERROR.- setup%(%) was refused', 'bridge%.port: expected an integer, got string' }, text)
    t.ok(not text:find('was not called', 1, true))
    config.setup({})
    t.ok(not report():find('refused', 1, true))
    pcall(config.setup, { no_such = 1, bridge = 1 })
    t.matches('ERROR.- setup%(%) was refused', report())
  end)

  it('reports a bridge that is stopped, starting, ready and stopping', function()
    use('slow')
    t.matches('it is not running; start it with :McpTools start', report())
    bridge.start()
    t.matches('it is starting', report())
    reach('ready')
    current.attached(5, {
      pid = bridge.status().pid,
      port = bridge.get_port(),
      wanted_port = bridge.get_port() + 1,
      port_holder = 'ours',
      versions = { bridge = '1.0', python = '3.11.7', sdk = '2.3.0', aiohttp = '3.14', msgpack = '1.2' },
    })
    current.report('blocked', { mode = 'r', at = 1 }, 5)
    local clients = { { name = 'codex\nx' }, { name = 'claude-code' } }
    current.report('sessions', { count = 2, calls = 2, clients = clients }, 5)
    local text = report()
    t.matches({ 'ready: http://127%.0%.0%.1:%d+/mcp', 'MCP SDK 2%.3%.0', 'Python 3%.11%.7' }, text)
    t.matches({ 'another editor of yours', "kept a call waiting too long, in mode 'r'" }, text)
    t.matches('sessions: 2 %(codex<U%+000A>x, claude%-code%)', text)
    t.matches('only you can change the files', text)
    t.ok(not text:find(bridge.get_auth_token(), 1, true))
    bridge.stop()
    t.matches('it is stopping', report())
  end)

  it('reports that the current file is in another project, and what to do', function()
    local here = vim.uv.cwd()
    local home = vim.fn.tempname()
    vim.fn.mkdir(home .. '/plain', 'p')
    for _, name in ipairs({ 'one', 'two' }) do
      vim.fn.mkdir(('%s/%s/.git'):format(home, name), 'p')
      vim.fn.writefile({ 'x' }, ('%s/%s/file'):format(home, name))
    end
    home = vim.uv.fs_realpath(home)
    use('ready')
    vim.cmd.cd(home .. '/one')
    start()
    t.ok(not report():find('the current file', 1, true))
    vim.cmd.edit(home .. '/one/file')
    t.ok(not report():find('the current file', 1, true))
    vim.cmd.edit(home .. '/two/file')
    local pattern = 'WARNING the current file, %s/two/file, is in another project, %s/two'
    t.matches(pattern:format(vim.pesc(home), vim.pesc(home)), report())
    t.matches(('ADVICE.*:McpTools restart %s/two`'):format(vim.pesc(home)), report())
    vim.cmd.edit(home .. '/plain/file')
    t.matches('the current file, [^\n]*/plain/file, is outside of the project', report())

    vim.cmd.edit(home .. '/two/file')
    bridge.restart({ root = home .. '/two' })
    t.wait(function() return bridge.status().state == 'ready' and bridge.status().root == home .. '/two' end, 5000)
    local text = report()
    t.matches('project: ' .. vim.pesc(home) .. '/two', text)
    t.ok(not text:find('the current file', 1, true))
    vim.cmd.cd(here)
    vim.cmd('%bwipeout!')
  end)

  it('reports a crash and, when it has given up, the reason and what to do', function()
    use('fails')
    start('waiting')
    t.matches('it crashed and will be restarted %(attempt %d%): .*MCP_PORT is no number', report())
    bridge.stop()
    config.setup({ bridge = { command = { '/nonexistent/bridge' } } })
    start('failed')
    t.matches('cannot run /nonexistent/bridge.*\n.*ADVICE.*\n.*:McpTools log', report())
  end)

  it('reports a file that others can write, with the command that fixes it', function()
    use('ready')
    start()
    local path = bridge.status().identity_file
    vim.uv.fs_chmod(path, tonumber('666', 8))
    t.matches('is writable by other users\n.*ADVICE.*\n.*run `rm ', report())
    vim.uv.fs_unlink(path)
  end)

  it('lists groups, lint, unchecked patterns, and definitions that did not load', function()
    use('ready')
    config.setup({ tools = { 'test', 'tset', { name = 'broken one' } } })
    local odd = { name = 'odd-name', description = 'has a pattern that the editor cannot check' }
    odd.args, odd.execute = { text = { type = 'string', pattern = '(?<=a)b' } }, function() end
    require('mcp-tools').register(odd)
    local text = report()
    t.matches('tool odd%-name: [^\n]*pattern is not checked', text)
    local _, notes = text:gsub('tool odd%-name: ', '')
    t.ok(notes >= 2) -- also one about the name
    t.matches('test %(%d+%): test_', text)
    t.matches('cost of the definitions for a model that gets all of them: %d+%.%d kB, ~%d+ tokens', text)
    t.matches({ 'by group: [^\n]*test %d+%.%d kB, ~%d+ tokens', "unknown name 'tset'", 'broken one' }, text)
    t.matches({ 'resources %(%d+%): nvim://buffers', 'prompts %(%d+%): analyze_module' }, text)
  end)

  it('lists mounts without tools, and the command that retries a failed one', function()
    use('ready')
    local loading = require('mcp-tools.loading')
    local report_of, failures_of = loading.report, require('mcp-tools.loading.report').failures
    local found = { { file = 'mount db (setup{mounts}, waiting)', tools = {} } }
    loading.report = t.returns({ { name = 'mounts', found = found } })
    local failure = { source = 'mount db', error = 'command not found: db-mcp' }
    require('mcp-tools.loading.report').failures = t.returns({ failure })
    local text = report()
    loading.report, require('mcp-tools.loading.report').failures = report_of, failures_of
    t.matches('mount db %(setup{mounts}, waiting%)\n', text)
    t.matches('mount db could not be loaded: command not found: db%-mcp\n.*:McpTools mounts retry db', text)
  end)

  it('lists files of plugins, and what cannot be loaded until it is fixed', function()
    local plugin = ('%s/plugin-%d'):format(vim.uv.fs_realpath(vim.fs.dirname(vim.fn.tempname())), vim.uv.hrtime())
    local directory = plugin .. '/lua/mcp-tools/ext'
    vim.fn.mkdir(directory, 'p')
    local function write(name, text) vim.fn.writefile({ text }, ('%s/%s.lua'):format(directory, name)) end
    local good = "return { name = '%s', description = 'x', execute = function() end }"
    write('good', good:format('good'))
    write('syntax', 'return {')
    write('throws', "error('on purpose')")
    write('table', 'return { name = 5 }')
    vim.opt.runtimepath:append(plugin)
    use('ready')
    require('mcp-tools').refresh()
    local text = report()
    t.matches({ 'ext: 4 files', 'ext/good.lua: good\n' }, text)
    t.matches('ext/syntax.lua could not be loaded: [^\n]*syntax.lua:%d+:', text)
    t.matches('ext/throws.lua could not be loaded: [^\n]*on purpose', text)
    t.matches('ext/table.lua could not be loaded: [^\n]*description: is required', text)
    t.matches(':McpTools tools reload', text)
    for _, name in ipairs({ 'syntax', 'throws', 'table' }) do
      write(name, good:format(name))
    end
    require('mcp-tools').reload()
    text = report()
    t.ok(not text:find('could not be loaded', 1, true), text)
    t.matches('syntax %(1%): syntax\n', text)
    vim.opt.runtimepath:remove(plugin)
    require('mcp-tools').refresh()
  end)

  it('warns of addresses of the editor that other machines can reach', function()
    local health = require('mcp-tools.health')
    local harmless = { '/run/user/1000/nvim.1.0', '127.0.0.1:7000', 'localhost:7000', '[::1]:7000', '::1:7000' }
    table.insert(harmless, '\\\\.\\pipe\\nvim.1.0')
    local open = { '0.0.0.0:7000', '[::]:7000', 'devbox:7000', '192.168.1.2:7000', ':7000' }
    t.eq({}, health.exposed_addresses(harmless))
    t.eq(open, health.exposed_addresses(vim.list_extend(vim.deepcopy(harmless), open)))
    rawset(vim.fn, 'serverlist', function() return { '0.0.0.0:7000' } end)
    local ok, text = pcall(report)
    rawset(vim.fn, 'serverlist', nil)
    t.ok(ok, text)
    t.matches('WARNING[^\n]*0%.0%.0%.0:7000.*serverstop%("0%.0%.0%.0:7000"%)', text)
  end)

  it('lists resources and prompts that were not taken in', function()
    config.setup({ prompts = { 'verify_setup', 'no_such' } })
    pcall(require('mcp-tools').register_resource, { uri = 'x://broken' })
    local text = report()
    t.matches('prompts %(1%): verify_setup', text)
    t.matches("setup{prompts} could not be loaded: prompts: unknown name 'no_such'", text)
    t.matches("resource 'x://broken' could not be loaded: [^\n]*name: is required", text)
    require('mcp-tools.core').get().registry.refused["resource 'x://broken'"] = nil
  end)
end)

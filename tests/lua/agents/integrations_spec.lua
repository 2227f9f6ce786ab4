-- Registration with a running OpenCode server, and claudecode.nvim beside our agent for Claude Code (a table instead
-- of it, unless CLAUDECODE names a checkout).

local agent = require('mcp-tools.agents.known.claude')
local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local integrations = require('mcp-tools.agents.integrations')
local t = require('helpers')

describe('registration with OpenCode', function()
  local URL = 'http://127.0.0.1:4096'

  local sent ---@type table[] what was sent to the bridge, the latest last

  --- A bridge is ready, on its own channel.
  local function bridge(channel, port)
    current.state, current.port, current.process = 'ready', port or 4711, {}
    current.launch = { host = '127.0.0.1', identity = { token = 'the token of the bridge' } }
    current.reported = { hello = {}, channel = channel }
    current.changed()
  end

  --- The bridge reports the state of the servers.
  local function report(state, fault)
    current.reported.integrations = { { url = URL, state = state, fault = fault or '' } }
    current.changed()
    t.wait(function()
      local one = integrations.status()[1]
      return one and one.state == state and one.fault == fault
    end, 2000, 'the state ' .. state)
  end

  local function follow(options)
    config.setup({ integrations = { opencode = options } })
    integrations.follow()
  end

  --- Waits for the only known server.
  local function known()
    return t.wait(function() return integrations.status()[1] end, 2000, 'a server')
  end

  local function last() return sent[#sent] end

  local function health()
    vim.cmd('silent checkhealth mcp-tools')
    local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
    vim.cmd('silent bwipeout!')
    return text
  end

  local before = { current.state, current.launch, current.reported }
  local rpcnotify = vim.rpcnotify

  before_each(function()
    sent = {}
    rawset(
      vim,
      'rpcnotify',
      function(channel, event, text)
        table.insert(sent, vim.tbl_extend('error', { channel = channel, event = event }, vim.json.decode(text)))
      end
    )
  end)

  after_each(function()
    config.reset()
    integrations.follow()
    current.state, current.launch, current.reported = unpack(before, 1, 3)
    current.port, current.process = nil, nil
    current.changed()
    rawset(vim, 'rpcnotify', rpcnotify)
    for _, name in ipairs({ 'opencode.server', 'opencode.config', 'sidekick.cli.session' }) do
      package.loaded[name] = nil
    end
  end)

  describe('a server of OpenCode', function()
    it('is sent to each bridge, without the token of the bridge', function()
      follow({ url = URL .. '/' })
      t.eq({}, sent)
      bridge(1)
      t.wait(last)
      t.eq({ 1, 'integrations' }, { last().channel, last().event })
      t.matches('^http://127%.0%.0%.1:4711', last().url)
      t.eq({ { url = URL, registered = false } }, last().servers)
      t.eq(nil, vim.inspect(sent):find('the token of the bridge', 1, true))
      report('connected')
      t.matches('has these tools', health())
      local count = #sent
      current.changed() -- nothing is different
      bridge(2)
      t.wait(function() return #sent > count end)
      t.eq({ 2, true }, { last().channel, last().servers[1].registered })
      t.eq('waiting', known().state) -- the new bridge has not reported yet
      t.eq(count + 1, #sent)
    end)

    it('is sent again when its plugin reports it, and removed when the option is off', function()
      package.loaded['opencode.server'] = { connected = { url = URL } }
      package.loaded['opencode.config'] = { opts = { server = { username = 'me', password = 'secret' } } }
      bridge(1)
      follow(true)
      t.eq('opencode.nvim', known().via)
      t.eq('Basic ' .. vim.base64.encode('me:secret'), last().servers[1].headers.Authorization)
      local count = #sent
      vim.api.nvim_exec_autocmds('User', { pattern = 'OpencodeEvent:server.connected' })
      t.wait(function() return #sent > count end)
      follow(false)
      t.eq({ {}, {} }, { last().servers, (integrations.status()) })
    end)

    it('that sidekick.nvim is attached to is sent as well', function()
      local function attached() return { a = { base_url = URL }, b = {} } end
      package.loaded['sidekick.cli.session'] = { attached = attached }
      bridge(1)
      follow(true)
      t.eq('sidekick.nvim', known().via)
    end)

    it('is shown with the reason why it has no tools', function()
      bridge(1)
      follow({ url = URL })
      known()
      report('others')
      t.matches('from its own configuration', health())
      report('waiting', 'it wants a password (OPENCODE_SERVER_PASSWORD): name its variable by `password_env`')
      t.matches('password_env', health())
    end)
  end)

  local OPENCODE_NVIM, SIDEKICK = vim.env.OPENCODE_NVIM, vim.env.SIDEKICK

  if OPENCODE_NVIM then
    it('opencode.nvim itself reports its server', function()
      vim.opt.runtimepath:prepend(OPENCODE_NVIM)
      local server = require('opencode.server')
      bridge(1)
      follow(true)
      t.eq({}, integrations.status())
      server.connected = setmetatable({ url = URL }, server)
      require('opencode.events').emit({ type = 'server.connected' }, server.connected)
      t.eq('opencode.nvim', known().via)
    end)
  end

  if SIDEKICK then
    it('sidekick.nvim itself reports its server', function()
      vim.opt.runtimepath:prepend(SIDEKICK)
      local sessions = require('sidekick.cli.session')
      bridge(1)
      follow(true)
      local session = { id = 'opencode-1', started = true, base_url = URL }
      function session.attach() end
      function session.is_running() return true end
      sessions.attach(session)
      t.eq('sidekick.nvim', known().via)
    end)
  end

  it('assistants are listed in health when they are installed', function()
    package.loaded.codecompanion, package.loaded.avante = {}, {}
    require('mcp-tools.callers.assistant').offered('avante', { tools = {} })
    package.loaded.claudecode = { state = { server = {}, port = 9 } }
    local text = health()
    t.matches({ 'CodeCompanion is installed, but has not asked', 'Avante has 0 of these tools' }, text)
    t.matches('claudecode.nvim is running', require('mcp-tools.agents.known.claude').skip())
    package.loaded.claudecode.state.server = nil
    t.eq(nil, require('mcp-tools.agents.known.claude').skip())
    package.loaded.codecompanion, package.loaded.avante, package.loaded.claudecode = nil, nil, nil
  end)
end)

local CHECKOUT = vim.env.CLAUDECODE

describe('claudecode.nvim', function()
  it('disables the agent for Claude Code while it runs', function()
    t.eq(nil, agent.skip())
    package.loaded.claudecode = { state = {} }
    t.eq(nil, agent.skip())
    package.loaded.claudecode.state.server = {}
    t.matches('claudecode.nvim is running', agent.skip())
    package.loaded.claudecode = true -- of another plugin
    t.eq(nil, agent.skip())
    package.loaded.claudecode = nil
  end)

  if CHECKOUT then
    it('itself does so, and keeps its own file', function()
      vim.opt.runtimepath:prepend(CHECKOUT)
      vim.env.CLAUDE_CONFIG_DIR = vim.fn.tempname()
      local theirs = require('claudecode')
      theirs.setup({ auto_start = false, log_level = 'error' })
      t.eq(nil, agent.skip())
      t.ok((theirs.start(false)))
      local lock = ('%s/ide/%d.lock'):format(vim.env.CLAUDE_CONFIG_DIR, theirs.state.port)
      t.matches('claudecode.nvim is running', agent.skip())
      t.eq(1, vim.fn.filereadable(lock))
      t.ok(theirs.stop())
      t.eq({ nil, 0 }, { agent.skip(), vim.fn.filereadable(lock) })
      vim.env.CLAUDE_CONFIG_DIR = nil
    end)
  end
end)

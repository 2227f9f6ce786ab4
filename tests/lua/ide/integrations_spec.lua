-- Servers of agents that run already, with a double of OpenCode's API as it documents it (`GET /doc`).

local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local double = require('http_double')
local integrations = require('mcp-tools.ide.integrations')
local t = require('helpers')

local opencode, entries, wrong, on_add

--- OpenCode, with what it holds of other servers: name → status.
local function start()
  entries, wrong, on_add = {}, nil, nil
  opencode = double.start(function(asked)
    local name = asked.path:match('^/mcp/([^/]+)/disconnect$')
    if wrong then
      return wrong
    elseif name then
      entries[name] = 'disabled'
      return double.json(true)
    elseif asked.method == 'POST' then
      entries[vim.json.decode(asked.body).name] = 'connected'
      if on_add then
        on_add()
      end
    end
    local all = {}
    for each, status in pairs(entries) do
      all[each] = { status = status }
    end
    return double.json(next(all) and all or vim.empty_dict())
  end)
end

--- The bridge is ready, in this process.
local function bridge(pid, port)
  current.supervisor = { state = 'ready', tries = 0, port = port or 4711, process = {} }
  current.prepared = { host = '127.0.0.1', identity = { token = 'the token' } }
  current.said = { hello = { pid = pid } }
  current.changed()
end

local function follow(options)
  config.setup({ integrations = { opencode = options } })
  integrations.follow()
end

local function state(wanted)
  return t.wait(function()
    local one = integrations.status()[1]
    return one and one.state == wanted and one
  end, 3000, 'the state ' .. wanted)
end

--- How often ours was given to it.
local function given()
  return vim.tbl_filter(function(asked)
    return asked.method == 'POST' and asked.path == '/mcp'
  end, opencode.asked)
end

local function health()
  vim.cmd('silent checkhealth mcp-tools')
  local text = table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n')
  vim.cmd('silent bwipeout!')
  return text
end

local before = { current.supervisor, current.prepared, current.said }

before_each(start)
after_each(function()
  config.reset()
  integrations.follow()
  current.supervisor, current.prepared, current.said = unpack(before, 1, 3)
  current.changed()
  opencode.close()
  for _, name in ipairs({ 'opencode.server', 'opencode.config', 'sidekick.cli.session' }) do
    package.loaded[name] = nil
  end
end)

describe('a server of OpenCode', function()
  it(
    'has these tools from the start of the bridge on, again after it was started anew, and no longer at its end',
    function()
      follow({ url = opencode.url .. '/' })
      t.eq({}, opencode.asked)
      bridge(1)
      state('connected')
      local sent = vim.json.decode(given()[1].body)
      t.eq({ 'nvim-tools', 'remote', false }, { sent.name, sent.config.type, sent.config.oauth })
      t.eq('Bearer the token', sent.config.headers.Authorization)
      t.matches('127%.0%.0%.1:4711', sent.config.url)
      current.changed() -- nothing is another
      bridge(2)
      t.wait(function()
        return #given() == 2
      end)
      state('connected')
      t.matches('has these tools', health())
      current.supervisor = { state = 'stopped', tries = 0 }
      current.changed()
      t.wait(function()
        return entries['nvim-tools'] == 'disabled'
      end)
    end
  )

  it('that has forgotten them gets them again, when its plugin says that it is there', function()
    package.loaded['opencode.server'] = { connected = { url = opencode.url } }
    package.loaded['opencode.config'] = { opts = { server = { username = 'me', password = 'secret' } } }
    bridge(1)
    follow(true)
    t.eq('opencode.nvim', state('connected').via)
    t.eq('Basic ' .. vim.base64.encode('me:secret'), given()[1].headers.authorization)
    entries = {}
    vim.api.nvim_exec_autocmds('User', { pattern = 'OpencodeEvent:server.connected' })
    t.wait(function()
      return #given() == 2
    end)
    follow(false)
    t.wait(function()
      return entries['nvim-tools'] == 'disabled'
    end)
    t.eq({}, integrations.status())
  end)

  it('that sidekick.nvim is attached to has them as well', function()
    package.loaded['sidekick.cli.session'] = {
      attached = function()
        return { a = { base_url = opencode.url }, b = {} }
      end,
    }
    bridge(1)
    follow(true)
    t.eq('sidekick.nvim', state('connected').via)
  end)

  it('which has one of that name already keeps it', function()
    entries['nvim-tools'] = 'connected'
    bridge(1)
    follow({ url = opencode.url })
    state('others')
    t.eq({}, given())
    t.matches('by its own configuration', health())
    config.reset()
    integrations.follow()
    t.eq('connected', entries['nvim-tools'])
  end)

  it('that is none, wants a password, or is on another machine is told of', function()
    bridge(1)
    for _, case in ipairs({
      { double.json({}, 401), 'password_env' },
      { double.json({}, 500), 'status 500' },
      { 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi', 'none of OpenCode' },
    }) do
      wrong = case[1]
      follow({ url = opencode.url })
      t.wait(function()
        local one = integrations.status()[1]
        return one and one.fault and one.fault:find(case[2], 1, true)
      end, 3000, case[2])
      t.matches(vim.pesc(case[2]), health())
      follow(false)
    end
    follow({ url = 'http://example.org:4096' })
    t.wait(function()
      local one = integrations.status()[1]
      return one and one.fault and one.fault:find('no address of this machine')
    end)
    t.eq({}, given())
  end)

  it('that answers when they are not wanted any more is not given them', function()
    bridge(1)
    follow({ url = opencode.url })
    follow(false)
    t.wait(function()
      return #opencode.asked > 0
    end)
    follow({ url = opencode.url }) -- and then is asked again, so that what it would have got is there
    state('connected')
    t.eq(1, #given())
  end)

  it('that was being given them when they were not wanted any more has them taken out', function()
    bridge(1)
    on_add = vim.schedule_wrap(function()
      follow(false)
    end)
    follow({ url = opencode.url })
    t.wait(function()
      return entries['nvim-tools'] == 'disabled'
    end)
    t.eq(1, #given())
  end)

  it('hears of the end of the editor at once', function()
    bridge(1)
    follow({ url = opencode.url })
    state('connected')
    vim.api.nvim_exec_autocmds('VimLeavePre', { group = 'mcp-tools.integrations' })
    t.wait(function()
      return entries['nvim-tools'] == 'disabled'
    end)
  end)
end)

local OPENCODE_NVIM, SIDEKICK = vim.env.OPENCODE_NVIM, vim.env.SIDEKICK

if OPENCODE_NVIM then
  describe('opencode.nvim itself', function()
    it('says which server it is connected to, and when', function()
      vim.opt.runtimepath:prepend(OPENCODE_NVIM)
      local server = require('opencode.server')
      bridge(1)
      follow(true)
      t.eq({}, integrations.status())
      server.connected = setmetatable({ url = opencode.url }, server)
      require('opencode.events').emit({ type = 'server.connected' }, server.connected)
      t.eq('opencode.nvim', state('connected').via)
    end)
  end)
end

if SIDEKICK then
  describe('sidekick.nvim itself', function()
    it('says which server it is attached to, and when', function()
      vim.opt.runtimepath:prepend(SIDEKICK)
      local sessions = require('sidekick.cli.session')
      bridge(1)
      follow(true)
      local session = { id = 'opencode-1', started = true, base_url = opencode.url }
      function session.attach() end
      function session.is_running()
        return true
      end
      sessions.attach(session)
      t.eq('sidekick.nvim', state('connected').via)
    end)
  end)
end

describe('assistants', function()
  it('are told of in health when they are there', function()
    t.matches((OPENCODE_NVIM or SIDEKICK) and '%.nvim: ' or 'no assistant', health())
    package.loaded.codecompanion, package.loaded.avante = {}, {}
    require('mcp-tools.hosts.assistant').offered('avante', { tools = {} })
    package.loaded.claudecode = { state = { server = {}, port = 9 } }
    local text = health()
    t.matches('CodeCompanion is installed and has not asked', text)
    t.matches('Avante has 0 of these tools', text)
    t.matches('claudecode.nvim runs %(port 9%)', text)
    t.matches('claudecode.nvim runs', require('mcp-tools.companions.claude').skip())
    package.loaded.claudecode.state.server = nil
    t.eq(nil, require('mcp-tools.companions.claude').skip())
    package.loaded.codecompanion, package.loaded.avante, package.loaded.claudecode = nil, nil, nil
  end)
end)

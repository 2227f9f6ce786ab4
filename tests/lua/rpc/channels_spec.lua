-- every Neovim
local channels = require('mcp-tools.rpc.channels')
local core = require('mcp-tools.core')
local mcp_tools = require('mcp-tools')
local t = require('helpers')
local wire = require('mcp-tools.rpc')

local function attach(role)
  local id = vim.fn.jobstart({ vim.v.progpath, '--clean', '--embed', '--headless' }, { rpc = true })
  wire.hello(id, { protocol = wire.PROTOCOL, role = role, pid = vim.fn.jobpid(id), versions = {} })
  return id
end

--- Ends its process, and waits until the editor knows that the channel is closed.
local function kill(id)
  vim.fn.jobstop(id)
  t.wait(function()
    return vim.api.nvim_get_chan_info(id).id == nil
  end)
end

local function gone(id)
  return function()
    return channels.attached[id] == nil
  end
end

describe('a bridge that has died while no call was pending', function()
  local idle = channels.IDLE_MS

  after_each(function()
    channels.IDLE_MS = idle
    for id in pairs(channels.attached) do
      wire.lost(id)
      vim.fn.jobstop(id)
    end
  end)

  it('is let go after a while', function()
    channels.IDLE_MS = 50
    local id = attach()
    vim.fn.jobstop(id)
    t.wait(gone(id))
  end)

  it('is let go when the next one comes', function()
    local first = attach()
    kill(first)
    local second = attach()
    t.ok(gone(first)())
    t.ok(not gone(second)())
  end)

  it('is let go when it is to be told something', function()
    local id = attach()
    kill(id)
    core.get().registry:changed('tools')
    t.wait(gone(id), 500)
  end)

  it('and one that lives stays', function()
    channels.IDLE_MS = 20
    local id = attach()
    vim.wait(100)
    t.ok(not gone(id)())
  end)
end)

describe('who greets again on the same channel', function()
  it('keeps its calls', function()
    local config = require('mcp-tools.config')
    config.setup({ approval = { default = 'allow' } })
    local id = attach('client')
    require('mcp-tools').register({ name = 'long', description = 'x', execute = function() end })
    wire.execute('long', vim.empty_dict(), { channel = id, call_id = 'h1' })
    local call = t.ok(core.get().executor:get('h1'))
    wire.hello(id, { protocol = wire.PROTOCOL, role = 'client' })
    t.eq('running', call.state)
    wire.lost(id)
    t.eq({ 'cancelled', 'disconnected' }, { call.state, call.cancel_reason })
    vim.fn.jobstop(id)
    config.reset()
  end)
end)

describe('with a bridge attached', function()
  local bundled = require('mcp-tools.loading.bundled')

  it('bundled definitions are loaded in pieces, with turns of the event loop between them', function()
    local config = require('mcp-tools.config')
    config.setup({ tools = 'all' })
    local id = attach()
    local turns = 0
    local timer = require('mcp-tools.util.timer').every(1, function()
      turns = turns + (bundled.is_pending() and 1 or 0)
    end)
    t.wait(function()
      return not bundled.is_pending()
    end)
    timer:stop()
    t.ok(turns >= 2, turns)
    wire.lost(id)
    vim.fn.jobstop(id)
    config.reset()
  end)
end)

local channel = 4321
local count = 0

local function execute(opts)
  count = count + 1
  opts.channel, opts.call_id, opts.start_by = channel, 'p' .. count, vim.uv.hrtime() + 1e10
  return wire.execute('who', vim.empty_dict(), opts).result
end

local function told(name, session)
  return { client = { name = name, version = '1' }, host = 'mcp', timeout = 1000, session = session, capabilities = {} }
end

describe('a client that was introduced', function()
  before_each(function()
    require('mcp-tools.config').setup({ approval = { tools = { who = 'allow' } } })
    wire.hello(channel, { protocol = wire.PROTOCOL, role = 'client' })
    mcp_tools.register({
      name = 'who',
      description = 'x',
      execute = function(ctx)
        local said = ctx.client.name .. ' ' .. tostring(ctx.session)
        ctx.client.name = 'somebody else'
        ctx(said)
      end,
    })
  end)

  it('is known by its number, and never as another', function()
    t.eq('one s1', execute({ peer = 1, who = told('one', 's1') }).text)
    t.eq('two nil', execute({ peer = 2, who = told('two') }).text)
    t.eq('one s1', execute({ peer = 1 }).text)
    t.eq('two nil', execute({ peer = 2 }).text)
    t.eq('three s3', execute({ peer = 1, who = told('three', 's3') }).text)
    t.eq('three s3', execute({ peer = 1 }).text)
  end)

  it('is no client of another channel, nor one that nobody told of', function()
    t.raises('peer 7 is unknown', function()
      execute({ peer = 7 })
    end)
  end)
end)

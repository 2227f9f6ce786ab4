-- every Neovim
local channels = require('mcp-tools.rpc.channels')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
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
  t.wait(function() return vim.api.nvim_get_chan_info(id).id == nil end)
end

local function gone(id)
  return function() return channels.attached[id] == nil end
end

describe('a bridge that exited while no call was pending', function()
  local idle = channels.IDLE_MS

  after_each(function()
    channels.IDLE_MS = idle
    for id in pairs(channels.attached) do
      wire.lost(id)
      vim.fn.jobstop(id)
    end
  end)

  it('is removed after a while', function()
    channels.IDLE_MS = 50
    local id = attach()
    vim.fn.jobstop(id)
    t.wait(gone(id))
  end)

  it('is removed when the next one attaches', function()
    local first = attach()
    kill(first)
    local second = attach()
    t.ok(gone(first)() and not gone(second)())
  end)

  it('is removed at the next notification', function()
    local id = attach()
    kill(id)
    core.get().registry:changed('tools')
    t.wait(gone(id), 500)
  end)

  it('does not affect one that runs', function()
    channels.IDLE_MS = 20
    local id = attach()
    vim.wait(100)
    t.ok(not gone(id)())
  end)
end)

it('that greets again on the same channel keeps its calls', function()
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

it('with a bridge attached loads bundled definitions in slices', function()
  local bundled = require('mcp-tools.loading.bundled')

  config.setup({ tools = 'all' })
  local id = attach()
  t.ok(bundled.is_pending()) -- nothing is loaded before a client asks
  local listed = wire.list('tools')
  t.eq({ true, nil }, { listed.loading, listed.json })
  local turns = 0
  local check = assert(vim.uv.new_check()) -- called in each turn
  check:start(function() turns = turns + (bundled.is_pending() and 1 or 0) end)
  t.wait(function() return not bundled.is_pending() end)
  check:close()
  t.ok(turns >= 1, turns)
  t.ok(#vim.json.decode(wire.list('tools').json) > 5)
  wire.lost(id)
  vim.fn.jobstop(id)
  config.reset()
end)

describe('instructions', function()
  local function instructions(options)
    config.reset()
    config.setup(options)
    return require('mcp-tools.rpc.settings').get().instructions
  end

  after_each(config.reset)

  it('tell when to use the enabled tools, by their published names', function()
    local text = instructions({ tools = 'recommended', tool_prefix = 'vi_' })
    t.matches('vi_symbol_references', text:match('[^\n]*uses, overrides[^\n]*'))
    t.ok(#text <= 1200, #text .. ' characters')
    text = instructions({ tools = { 'file_search', 'editor_state' } })
    t.matches('\n%- nvim_editor_state when', text)
    t.ok(not text:find('symbol_references', 1, true))
  end)

  it('only advise tools that exist', function()
    for name in instructions({ tools = 'all' }):gmatch('nvim_([%w_]+)') do
      t.ok(core.get().registry:get(name), name)
    end
  end)

  it('name the search if the tools are behind it', function()
    local text = instructions({ tools = 'all', catalogue = 'search' })
    t.matches('Call nvim_tools_search first', text)
    t.ok(not text:find('symbol_find', 1, true))
  end)

  it(
    'give no advice without bundled tools',
    function() t.ok(not instructions({ tools = false }):find('Prefer', 1, true)) end
  )

  it('are the same every time', function() t.eq(instructions({ tools = 'all' }), instructions({ tools = 'all' })) end)
end)

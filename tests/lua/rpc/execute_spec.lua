local t = require('helpers')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local wire = require('mcp-tools.rpc')

local uv = vim.uv

local function busy(ms)
  local till = uv.hrtime() + ms * 1e6
  while uv.hrtime() < till do
  end
end

--- What holds the main thread before a handler could begin, by where it stands.
---@type table<string, table>
local SLOW = {
  ['judging its arguments'] = {
    needs_approval = function()
      busy(80)
      return false
    end,
  },
  ['making its state'] = {
    annotations = { read_only = true },
    state = function()
      busy(80)
      return {}
    end,
  },
  ['something else that came between'] = {
    needs_approval = function()
      vim.schedule(function()
        busy(80)
      end)
      vim.wait(20)
      return false
    end,
  },
}

describe('a call that was asked for by a bridge', function()
  local channel, ran, count = nil, nil, 0

  before_each(function()
    config.reset()
    ran = false
    channel = vim.fn.jobstart({ vim.v.progpath, '--clean', '--embed', '--headless' }, { rpc = true })
    wire.hello(channel, { protocol = wire.PROTOCOL, role = 'client' })
  end)

  after_each(function()
    wire.lost(channel)
    vim.fn.jobstop(channel)
  end)

  local function execute(def, ms)
    local whole = vim.tbl_extend('force', def, { name = 'slow', description = 'Slow.' })
    whole.execute = function(ctx)
      ran = true
      ctx('ran')
    end
    require('mcp-tools').register(whole)
    count = count + 1
    local start_by = uv.hrtime() + ms * 1e6
    local opts = { channel = channel, call_id = 'b-' .. count, start_by = start_by, timeout = 1000, session = 's' }
    return wire.execute('slow', vim.empty_dict(), opts).result
  end

  for what, def in vim.spairs(SLOW) do
    it(('does not run when %s took too long'):format(what), function()
      local result = execute(def, 40)
      t.eq({ 'failed', 'editor_blocked' }, { result.state, result.error and result.error.code })
      t.eq(false, ran)
    end)

    it(('runs when %s took long, but not too long'):format(what), function()
      local result = execute(def, 2000)
      t.eq('done', result.state)
      t.eq(true, ran)
    end)
  end

  it('is forgotten when its bridge, which has given it up, cancels it afterwards', function()
    execute(SLOW['making its state'], 40)
    local id = 'b-' .. count
    t.ok(core.get().executor:get(id))
    t.eq({ cancelled = false }, wire.cancel_task(id, 'blocked'))
    t.eq(nil, core.get().executor:get(id))
  end)

  it('does not ask the person when it is too late already', function()
    local asked = 0
    local gateway = core.get().gateway
    local ask = gateway.ask
    gateway.ask = function(...)
      asked = asked + 1
      return ask(...)
    end
    local result = execute({
      needs_approval = function()
        busy(80)
        return true
      end,
    }, 40)
    gateway.ask = ask
    t.eq({ 'failed', 'editor_blocked' }, { result.state, result.error and result.error.code })
    t.eq({ 0, false }, { asked, ran })
  end)
end)

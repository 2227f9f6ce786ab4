local Call = require('mcp-tools.calls.call')
local channels = require('mcp-tools.rpc.channels')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local t = require('helpers')
local wire = require('mcp-tools.rpc')

local uv = vim.uv

--- What blocks the main thread before a handler can start.
---@type table<string, table>
local SLOW = {
  ['judging its arguments'] = {
    needs_approval = function()
      uv.sleep(80)
      return false
    end,
  },
  ['making its state'] = {
    annotations = { read_only = true },
    state = function()
      uv.sleep(80)
      return {}
    end,
  },
  ['something else in between'] = {
    needs_approval = function()
      vim.schedule(function() uv.sleep(80) end)
      vim.wait(20)
      return false
    end,
  },
}

local function attach()
  local id = vim.fn.jobstart({ vim.v.progpath, '--clean', '--embed', '--headless' }, { rpc = true })
  wire.hello(id, { protocol = wire.PROTOCOL, role = 'client' })
  return id
end

describe('a call from a bridge', function()
  local channel, ran, count = nil, nil, 0

  before_each(function()
    config.reset()
    ran = false
    channel = attach()
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
      t.eq({ 'failed', 'editor_blocked', false }, { result.state, result.error and result.error.code, ran })
    end)

    it(('runs when %s took long, but not too long'):format(what), function()
      local result = execute(def, 2000)
      t.eq({ 'done', true }, { result.state, ran })
    end)
  end

  it('is removed when its bridge cancels it after it has given up', function()
    execute(SLOW['making its state'], 40)
    local id = 'b-' .. count
    t.ok(core.get().executor:get(id))
    t.eq({ { cancelled = false }, nil }, { wire.cancel_task(id, 'blocked'), (core.get().executor:get(id)) })
  end)

  it('asks no question when it is already too late', function()
    local gateway, result = core.get().gateway, nil
    local function needs_approval()
      uv.sleep(80)
      return true
    end
    local asked = t.calls(gateway, 'ask', function() result = execute({ needs_approval = needs_approval }, 40) end)
    t.eq({ 'failed', 'editor_blocked' }, { result.state, result.error and result.error.code })
    t.eq({ 0, false }, { asked, ran })
  end)
end)

local MIB = 1024 * 1024

--- An attached channel and the list of its events.
local function channel()
  local id = attach()
  local sent, one = {}, channels.attached[id]
  one.emit = function(_, event, ...)
    table.insert(sent, { event, ... })
    return true
  end
  wire.lost(id)
  vim.fn.jobstop(id)
  return one, sent
end

local function running(listener)
  local call = Call.new({ id = 'x', name = 'x', host = 'test', listener = listener })
  call:move('start')
  return call
end

describe('a notification of a running tool', function()
  it('is truncated when a log message is large', function()
    for _, data in ipairs({ ('ä'):rep(MIB), { lines = { ('x'):rep(2 * MIB) } } }) do
      local one, sent = channel()
      running(one):notify('log', 'info', data)
      t.eq(1, #sent)
      local text = vim.json.decode(sent[1][4])
      t.ok(#sent[1][4] < 66 * 1024, #sent[1][4])
      t.matches('cut: 65536 of %d+ bytes', text)
    end
    local one, sent = channel()
    running(one):notify('log', 'info', { 'short' })
    t.eq('["short"]', sent[1][4])
  end)

  it('is truncated when the message of progress or a state is large', function()
    local one, sent = channel()
    local call = running(one)
    call:progress(1, 2, ('ä'):rep(MIB))
    t.ok(#call.latest.message < 4200)
    t.matches('cut: 4096 of 2097152 bytes', call.latest.message)
    call:notify('state', { ('x'):rep(MIB) })
    t.eq(nil, call.latest.state)
    t.ok(#call.latest.message < 4200 and #sent > 0)
  end)
end)

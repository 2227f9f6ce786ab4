local t = require('helpers')
local config = require('mcp-tools.config')
local mcp = require('mcp-tools')

local function register(name, def)
  mcp.register(vim.tbl_extend('force', { name = name, description = name, annotations = { read_only = true } }, def))
end

describe('a call that a tool makes', function()
  local inner, cancelled, continued

  before_each(function()
    config.setup({ approval = { default = 'allow' } })
    inner, cancelled, continued = nil, {}, false
    local function execute(ctx)
      inner = ctx
      ctx:on_cancel(function(reason) table.insert(cancelled, reason) end)
    end
    register('inner', { execute = execute })
  end)

  --- Calls a tool that calls `inner`.
  local function outer(def)
    register('outer', def)
    local outcome = {}
    local handle = mcp.call('outer', {}, function(result, err)
      outcome.result, outcome.err = result, err
    end)
    t.wait(function() return inner end)
    return handle, outcome
  end

  local STYLES = {
    ['without a callback, in `run`'] = {
      run = function()
        mcp.call('inner')
        continued = true
      end,
    },
    ['with a callback, in `run`'] = {
      run = function(ctx)
        mcp.call('inner', {}, function() end)
        ctx:await(function() end)
      end,
    },
    ['after it has waited'] = {
      run = function(ctx)
        ctx:await(vim.schedule)
        mcp.call('inner')
        continued = true
      end,
    },
    ['in `execute`'] = {
      execute = function()
        mcp.call('inner', {}, function() end)
      end,
    },
    ['of a tool that makes the call'] = {
      run = function()
        register('middle', { run = function() return (mcp.call('inner')) end })
        mcp.call('middle')
        continued = true
      end,
    },
  }
  for style, def in vim.spairs(STYLES) do
    it('ends with it: ' .. style, function()
      local handle = outer(def)
      t.eq({ true, { 'parent' } }, { handle:cancel(), cancelled })
      vim.wait(20)
      t.eq(false, continued)
    end)
  end

  it('ends with the timeout of its tool', function()
    outer({ timeout = 30, run = function() mcp.call('inner') end })
    t.wait(function() return cancelled[1] end)
    t.eq({ 'parent' }, cancelled)
  end)

  it('continues after its tool has answered', function()
    local function execute(ctx)
      mcp.call('inner', {}, function() end)
      ctx('answered')
    end
    local _, outcome = outer({ execute = execute })
    t.eq({ 'answered', {} }, { outcome.result, cancelled })
    inner('done')
  end)

  it('does not end with an unrelated tool', function()
    register('waits', { execute = function() end })
    local handle = mcp.call('waits', {}, function() end)
    mcp.call('inner', {}, function() end)
    handle:cancel()
    t.eq({}, cancelled)
    inner()
  end)
end)

it('call() without a callback continues outside of a fast callback', function()
  local function execute(ctx)
    vim.system({ vim.v.progpath, '--version' }, {}, function() ctx('answer') end)
  end
  register('fast', { execute = execute })
  local seen
  coroutine.wrap(function()
    local result = mcp.call('fast')
    seen = { result, vim.in_fast_event(), vim.api.nvim_create_buf(false, true) > 0 }
  end)()
  t.wait(function() return seen end)
  t.eq({ 'answer', false, true }, seen)
end)

it('invalid options of call() are refused before anything runs', function()
  register('any', { execute = function() end })
  for name, wrong in pairs({ host = print, timeout = '5000', on_progress = 'print', on_state = true }) do
    t.raises('opts.' .. name .. ': expected %a+ or nil, got ' .. type(wrong), function()
      mcp.call('any', {}, { [name] = wrong }, function() end)
    end)
    t.eq(0, require('mcp-tools.registry').pending_count())
  end
end)

-- Handlers that return their result in place of answering, through the public API.
local notifications = require('notifications')
local t = require('helpers')
local mcp_tools = require('mcp-tools')

local function tool(name, execute, fields)
  mcp_tools.register(vim.tbl_extend('force', {
    name = name,
    description = 'x',
    annotations = { read_only = true },
    execute = execute,
  }, fields or {}))
end

---@return { result: any, err: table? }
local function called(name, ms)
  local outcome
  mcp_tools.call(name, {}, {}, function(result, err)
    outcome = { result = result, err = err }
  end)
  return t.wait(function()
    return outcome
  end, ms or 2000, 'the end of ' .. name)
end

describe('a handler that returns its result', function()
  before_each(function()
    notifications.collect()
  end)

  after_each(function()
    notifications.restore()
  end)

  it('fails soon, and its author is told once what to write', function()
    tool('returns', function()
      return { some = 'result' }
    end)
    local err = called('returns').err
    t.eq('execution_error', err.code)
    t.matches('returned a table, which is ignored.*write `ctx%(result%)` for `return result`', err.message)
    called('returns')
    notifications.wait('In returns write `ctx(result)` for `return result`')
    t.matches('returned_value_spec.lua:%d+', notifications.text())
    t.eq(1, #notifications.list)
  end)

  it('is told how an error is given', function()
    tool('refuses', function()
      return nil, 'no such thing'
    end)
    t.matches('returned nil and a string.*write `ctx:fail%(message%)`', called('refuses').err.message)
  end)

  it('may keep its ctx, answer later and return what it likes', function()
    for i, value in ipairs({ 'text', { 1 }, 42, true, function() end }) do
      local name = 'later_' .. i
      tool(name, function(ctx)
        vim.defer_fn(function()
          ctx('answered')
        end, 50)
        return value
      end)
      t.eq({ result = 'answered' }, called(name))
    end
    tool('handle', function(ctx)
      return vim.system({ 'sleep', '0.1' }, {}, function(done)
        ctx(done.code)
      end)
    end)
    t.eq({ result = 0 }, called('handle'))
    t.eq({}, notifications.list)
  end)

  it('and has answered as well is not warned of', function()
    tool('both', function(ctx)
      ctx('answered')
      return 'ignored'
    end)
    t.eq({ result = 'answered' }, called('both'))
    t.eq({}, notifications.list)
  end)

  it('and keeps its ctx for nothing hears of it at its timeout', function()
    local kept
    tool('hoards', function(ctx)
      kept = ctx
      return 'result'
    end, { timeout = 100 })
    local err = called('hoards').err
    t.ok(kept)
    t.eq('timeout', err.code)
    t.matches('returned a string, which is ignored: write `ctx%(result%)`', err.message)
    t.eq({}, notifications.list)
  end)

  it('does not block the editor while the garbage collector looks for its ctx', function()
    local heap = {}
    for i = 1, 1500000 do
      heap[i] = { i }
    end
    collectgarbage()
    tool('returns_with_a_large_heap', function()
      return 'result'
    end)
    local turns = 0
    local ticker = require('mcp-tools.util.timer').every(1, function()
      turns = turns + 1
    end)
    t.eq('execution_error', called('returns_with_a_large_heap', 5000).err.code)
    ticker:stop()
    t.ok(turns > 5, turns)
    t.eq(1500000, #heap)
  end)

  it('may be one of a resource', function()
    mcp_tools.register_resource({
      uri = 'x://returns',
      name = 'returns',
      description = 'x',
      read = function()
        return 'text'
      end,
    })
    local call = require('mcp-tools.core')
      .get().executor
      :execute('x://returns', {}, { host = 'test', kind = 'resource' })
    t.wait(function()
      return call:ended()
    end)
    t.eq('execution_error', call.outcome.error.code)
  end)
end)

describe('what a tool throws', function()
  it('as a table is no brace', function()
    tool('throws_table', function()
      error({ reason = 'full', left = { 1, 2 } })
    end)
    t.matches('{ *left = { *1, 2 *}, *reason = "full" *}', called('throws_table').err.message)
    tool('throws_message', function()
      error({ message = 'the disk is full', other = true })
    end)
    t.eq('Tool execution error: the disk is full', called('throws_message').err.message)
  end)

  it('stands in the log with file and line', function()
    tool('throws', function()
      error('on purpose')
    end)
    t.eq('Tool execution error: on purpose', called('throws').err.message)
    t.matches('throws%) threw: .*returned_value_spec.lua:%d+: on purpose', require('mcp-tools.log').lines(1)[1])
  end)
end)

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

  it('times out, and its author is told once what to write', function()
    tool('returns', function()
      return { some = 'result' }
    end, { timeout = 50 })
    local err = called('returns').err
    t.eq('timeout', err.code)
    t.matches('returned a table, which is ignored; results are passed to `ctx%(result%)`', err.message)
    called('returns')
    notifications.wait("Tool 'returns': `execute` returned a table")
    t.eq(1, #notifications.list)
  end)

  it('is told how an error is given', function()
    tool('refuses', function()
      return nil, 'no such thing'
    end, { timeout = 50 })
    t.matches('returned nil and a string.*`ctx:fail%(message%)`', called('refuses').err.message)
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

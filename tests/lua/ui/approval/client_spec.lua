-- slow, every Neovim
local Executor = require('mcp-tools.calls.executor')
local Gateway = require('mcp-tools.approval.gateway')
local Ledger = require('mcp-tools.approval.ledger')
local Registry = require('mcp-tools.registry.store')
local approval = require('mcp-tools.ui.approval')
local config = require('mcp-tools.config')
local inputs = require('mcp-tools.calls.inputs')
local notifications = require('notifications')
local t = require('helpers')

local base = vim.uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/approval-client'

--- One call of a tool that has to be asked for, by a client that is asked; and what it was sent.
local function ask(opts)
  opts = opts or {}
  local registry = Registry.new()
  local tool = {
    name = 'x',
    description = 'does x',
    annotations = { destructive = true },
    execute = function(ctx, args)
      if args.again then
        return ctx:elicit('And?', { type = 'object' }, function(answer) ctx(answer.action) end)
      end
      ctx('ran')
    end,
  }
  assert(registry:add('tools', tool))
  local function root() return base end
  local gateway = Gateway.new({
    ask = approval.ask,
    root = root,
    ledger = Ledger.new({
      dir = function() return base .. '/state' end,
    }),
  })
  local executor = Executor.new({
    registry = registry,
    gateway = gateway,
    root = root,
    settings = function() return { tool_timeout = 5000, max_calls = 100, max_result = 10000, result_ttl = 1000 } end,
  })
  local sent = {}
  local call = executor:execute('x', opts.args or {}, {
    host = 'mcp',
    session = 's1',
    client = { name = 'c' },
    capabilities = opts.capabilities or { elicitation = {} },
    listener = {
      inputs = function(_, call) table.insert(sent, call.inputs and vim.json.decode(call.inputs.json) or 'taken back') end,
    },
  })
  return call, sent, gateway
end

local function say(call, sent, result)
  local key = next(sent[#sent])
  return inputs.answer(call, call.inputs.seq, vim.json.encode({ [key] = { result = result } }))
end

local function choose(call, sent, choice) return say(call, sent, { action = 'accept', content = { answer = choice } }) end

before_each(function()
  config.reset()
  vim.fn.mkdir(base, 'p')
  config.setup({ approval = { ask_in = 'client' } })
end)

after_each(function()
  for _, question in ipairs(approval.list()) do
    question.call:cancel('user')
  end
  config.reset()
  vim.fn.delete(base, 'rf')
end)

describe('the client', function()
  it('gets a form whose key nobody can guess, and which has no answer for good', function()
    local call, sent = ask({ args = { text = 'a\nb' } })
    t.eq('waiting_approval', call.state)
    local key, request = next(sent[1])
    t.matches('^approval_%x+$', key)
    t.eq(#'approval_' + 32, #key)
    local schema = request.params.requestedSchema
    t.eq({ 'once', 'deny', 'session' }, schema.properties.answer.enum)
    t.eq({ 'deny', { 'answer' } }, { schema.properties.answer.default, schema.required })
    t.matches('text of 2 lines', request.params.message)
    local _, others = ask()
    t.ok(next(others[1]) ~= key)
  end)

  it('cannot say through another door what it may not say', function()
    local call, _, gateway = ask()
    local question = vim.iter(approval.list()):find(function(each) return each.id == call.id end)
    t.eq(true, question:answer('always', 'client'))
    t.eq('access_denied', call.outcome.error.code)
    t.eq({}, gateway.ledger:list(base))
  end)

  it('that offers no forms is not asked', function()
    for _, capabilities in ipairs({ {}, { elicitation = { url = {} } }, { sampling = {} } }) do
      local call, sent = ask({ capabilities = capabilities })
      t.eq({ 'access_denied', {} }, { call.outcome.error.code, sent })
      t.matches('does not support elicitation', call.outcome.error.message)
      t.ok(not call.outcome.error.message:find('allow"', 1, true))
    end
  end)

  it('counts among the open questions', function()
    approval.MAX_OPEN = 2
    ask()
    local second, sent = ask()
    t.eq('busy', ask().outcome.error.code)
    choose(second, sent, 'deny')
    t.eq('waiting_approval', (ask()).state)
    approval.MAX_OPEN = 8
  end)
end)

it('a question for the client alone is not on screen, and none behind it waits for it', function()
  ask()
  t.eq({ 1, 0 }, { #approval.list(), approval.count() })
  t.eq(nil, approval.current())
  notifications.collect()
  approval.answer_current('once')
  notifications.wait('there is no open question')
  notifications.restore()
end)

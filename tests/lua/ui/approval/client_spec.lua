-- slow, every Neovim
local Executor = require('mcp-tools.calls.executor')
local Gateway = require('mcp-tools.approval.gateway')
local Ledger = require('mcp-tools.approval.ledger')
local Registry = require('mcp-tools.registry.store')
local approval = require('mcp-tools.ui.approval')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local inputs = require('mcp-tools.calls.inputs')
local notifications = require('notifications')
local t = require('helpers')

local base = vim.uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/approval-client'

--- One call of a tool that asks the client; and what the client was sent.
local function ask(opts)
  opts = opts or {}
  local function execute(ctx, args)
    if args.again then
      return ctx:elicit('And?', { type = 'object' }, function(answer) ctx(answer.action) end)
    end
    ctx('ran')
  end
  local registry = Registry.new()
  local tool = { name = 'x', description = 'does x', annotations = { destructive = true }, execute = execute }
  assert(registry:add('tools', tool))
  local root, state = t.returns(base), t.returns(base .. '/state')
  local gateway = Gateway.new({ ask = approval.ask, root = root, ledger = Ledger.new({ dir = state }) })
  local settings = { tool_timeout = 5000, max_calls = 100, max_result = 10000, result_ttl = 1000 }
  local executor = Executor.new({ registry = registry, gateway = gateway, root = root, settings = t.returns(settings) })
  local sent = {}
  local function receive(_, call) table.insert(sent, call.inputs and vim.json.decode(call.inputs.json) or 'withdrawn') end
  local call = executor:execute('x', opts.args or {}, {
    host = 'mcp',
    session = 's1',
    client = { name = 'c' },
    capabilities = opts.capabilities or { elicitation = {} },
    listener = { inputs = receive },
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
  it('gets a form with a random key and without permanent answers', function()
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

  it('cannot give a permanent answer in another way', function()
    local call, _, gateway = ask()
    local question = vim.iter(approval.list()):find(function(each) return each.id == call.id end)
    t.eq(true, question:answer('always', 'client'))
    t.eq('access_denied', call.outcome.error.code)
    t.eq({}, gateway.ledger:list(base))
  end)

  it('without forms is not asked', function()
    for _, capabilities in ipairs({ {}, { elicitation = { url = {} } }, { sampling = {} } }) do
      local call, sent = ask({ capabilities = capabilities })
      t.eq({ 'access_denied', {} }, { call.outcome.error.code, sent })
      t.matches('does not support elicitation', call.outcome.error.message)
      t.ok(not call.outcome.error.message:find('allow"', 1, true))
    end
  end)

  it('is included in the number of open questions', function()
    approval.MAX_OPEN = 2
    ask()
    local second, sent = ask()
    t.eq('busy', ask().outcome.error.code)
    choose(second, sent, 'deny')
    t.eq('waiting_approval', (ask()).state)
    approval.MAX_OPEN = 8
  end)
end)

it('a question for the client only is not on the screen, and blocks no other', function()
  ask()
  t.eq({ 1, 0 }, { #approval.list(), approval.count() })
  t.eq(nil, approval.current())
  notifications.collect()
  approval.answer_current('once')
  notifications.wait('no open question')
  notifications.restore()
end)

describe('open questions', function()
  local questions = require('mcp-tools.approval')

  after_each(function()
    core.get().executor:cancel_where(t.returns(true), 'user')
    core.get().registry:clear('tools')
    config.reset()
  end)

  it('are listed as copies, oldest first', function()
    config.setup({ approval = { ask_in = 'client' } })
    local got
    core.registry():add('tools', {
      name = 'asks',
      description = 'x',
      needs_approval = true,
      args = { list = { type = 'array' } },
      execute = function(_, args) got = args end,
    })
    for _, id in ipairs({ 'one', 'two' }) do
      local opts = { id = id, host = 'mcp', session = 's', capabilities = { elicitation = {} } }
      core.get().executor:execute('asks', { list = { 1 } }, opts)
    end
    local list = t.wait(function() return #questions.list() == 2 and questions.list() end)
    local one = list[1]
    t.eq({ 'one', 'two' }, { one.id, list[2].id })
    t.eq({ 'asks', 'mcp', 's', {} }, { one.tool, one.host, one.session, one.files })
    t.ok(vim.list_contains(one.choices, 'once'))
    t.eq({ nil, 0 }, { questions.current(), questions.count() })
    one.args.list[1], one.choices[1], one.id = 'other', 'other', 'other'
    t.eq(nil, one.call)
    t.ok(questions.answer('one', 'once'))
    t.wait(function() return got end)
    t.eq({ list = { 1 } }, got)
    t.eq(false, (questions.answer('other', 'once')))
  end)
end)

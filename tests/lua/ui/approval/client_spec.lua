-- slow, every Neovim
local Gateway = require('mcp-tools.approval.gateway')
local Ledger = require('mcp-tools.approval.ledger')
local approval = require('mcp-tools.ui.approval')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local executors = require('executors')
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
  local tool = { name = 'x', description = 'does x', annotations = { destructive = true }, execute = execute }
  local root, state = t.returns(base), t.returns(base .. '/state')
  local gateway = Gateway.new({ ask = approval.ask, root = root, ledger = Ledger.new({ dir = state }) })
  local settings = { max_calls = 100, max_result = 10000, result_ttl = 1000 }
  local executor, registry = executors.new(settings, gateway, root)
  assert(registry:add('tools', tool))
  local sent = {}
  local function receive(_, call) table.insert(sent, call.inputs and vim.json.decode(call.inputs.json) or 'withdrawn') end
  local call = executor:execute('x', opts.args or {}, {
    host = 'mcp',
    session = opts.session or 's1',
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
  it('without forms is not asked', function()
    for _, capabilities in ipairs({ {}, { elicitation = { url = {} } }, { sampling = {} } }) do
      local call, sent = ask({ capabilities = capabilities })
      t.eq({ 'access_denied', {} }, { call.outcome.error.code, sent })
      t.matches('does not support elicitation', call.outcome.error.message)
      t.ok(not call.outcome.error.message:find('allow"', 1, true))
    end
  end)

  it('has 8 open questions at most, and leaves room for other sessions', function()
    local first, sent = ask()
    for _ = 2, 8 do
      ask()
    end
    local err = ask().outcome.error
    t.eq('busy', err.code)
    t.matches('8 questions for approval of this session', err.message)
    t.eq('waiting_approval', (ask({ session = 's2' })).state)
    choose(first, sent, 'deny')
    t.eq('waiting_approval', (ask()).state)
    for i = 3, 4 do
      for _ = 1, 8 do
        ask({ session = 's' .. i })
      end
    end
    for _ = 1, 8 do
      err = ask({ session = 's5' }).outcome or err
    end
    t.matches('^32 questions for approval are open', err.error.message)
  end)
end)

it('a question for the client only is not on the screen, and blocks no other', function()
  ask()
  t.eq({ 1, 0, nil }, { #approval.list(), approval.count(), (approval.current()) })
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
    t.eq({ { list = { 1 } }, false }, { got, (questions.answer('other', 'once')) })
  end)
end)

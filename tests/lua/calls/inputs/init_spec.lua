local executors = require('executors')
local inputs = require('mcp-tools.calls.inputs')
local t = require('helpers')

local ALL = { elicitation = {}, sampling = {}, roots = {} }
local NAME = { type = 'object', properties = { name = { type = 'string' } }, required = { 'name' } }

--- Runs a tool; returns its call and the requests that its listener gets.
local function setup(tool, opts)
  local executor, registry = executors.new()
  if type(tool) == 'function' then
    tool = { run = tool }
  end
  tool.name, tool.description = 'asks', 'x'
  assert(registry:add('tools', tool))
  local asked = {}
  local call = executor:execute('asks', {}, {
    host = 'test',
    capabilities = opts and opts.capabilities or ALL,
    listener = {
      inputs = function(_, call) table.insert(asked, call.inputs and vim.json.decode(call.inputs.json) or 'nothing') end,
    },
  })
  return call, asked
end

--- A `run` tool that asks for a name and returns the answer.
local function elicits()
  return {
    run = function(ctx)
      local answer, err = ctx:elicit('Who?', NAME)
      return { answer = answer, err = err }
    end,
  }
end

local function answer(call, results, seq)
  local answers = {}
  for key, result in pairs(results) do
    answers[key] = { result = result }
  end
  return inputs.answer(call, seq or call.inputs.seq, vim.json.encode(answers))
end

describe('asking the client', function()
  it('sends the request to the client and returns the answer to a run tool', function()
    local call, asked = setup(elicits())
    t.eq({ 'waiting_input', { seq = 1, json = call.inputs.json } }, { call.state, call.inputs })
    local params = { message = 'Who?', requestedSchema = NAME }
    t.eq({ { answer = { method = 'elicitation/create', params = params } } }, asked)
    t.eq(true, answer(call, { answer = { action = 'accept', content = { name = 'Ada' } } }))
    t.eq('done', call.state)
    t.eq({ answer = { action = 'accept', content = { name = 'Ada' } } }, call.outcome.value)
  end)

  it('works with callbacks for all four methods, one after the other', function()
    local seen = {}
    local function execute(ctx)
      ctx:sample({ messages = {} }, function(message) seen.said = message.content.text end)
      ctx:roots(function(roots) seen.roots = roots end)
      ctx:request_inputs({
        a = { method = 'roots/list' },
        b = { method = 'sampling/createMessage', params = { messages = {}, maxTokens = 5 } },
      }, function(values)
        seen.both = vim.tbl_count(values)
        ctx(seen)
      end)
    end
    local call, asked = setup({ execute = execute })
    local said = { role = 'assistant', content = { type = 'text', text = 'hm' }, model = 'm' }
    local roots = { roots = { { uri = 'file:///x' } } }
    t.eq({ 1, 1000 }, { #asked, asked[1].answer.params.maxTokens })
    answer(call, { answer = said })
    t.eq({ answer = { method = 'roots/list' } }, asked[2])
    answer(call, { answer = roots })
    t.eq(3, call.inputs.seq)
    answer(call, { a = roots, b = said })
    t.eq({ said = 'hm', roots = roots.roots, both = 2 }, call.outcome.value)
  end)

  it('accepts each answer once, and none that is for another request', function()
    local rounds = 0
    local call = setup(function(ctx)
      for _ = 1, 2 do
        ctx:elicit('Who?', NAME)
        rounds = rounds + 1
      end
      return rounds
    end)
    local reply = { answer = { action = 'decline' } }
    t.eq({ false, true }, { answer(call, reply, 2), (answer(call, reply, 1)) })
    t.eq({ false, 1, true }, { answer(call, reply, 1), rounds, (answer(call, reply, 2)) })
    t.eq({ false, 2 }, { answer(call, reply, 2), call.outcome.value })
  end)

  it('reports what is wrong with an answer', function()
    local faults = {
      { { action = 'perhaps' }, 'action: must be' },
      { { 'accept' }, 'must be object, got array' },
      { { action = 'accept', content = { name = 1 } }, 'content: name: ' },
      { { action = 'accept' }, 'content: ' },
    }
    for _, case in ipairs(faults) do
      local call = setup(elicits())
      answer(call, { answer = case[1] })
      t.eq('validation_error', call.outcome.value.err.code)
      t.matches(case[2], call.outcome.value.err.message)
    end
    local call = setup(elicits())
    inputs.answer(call, 1, '{"answer": {"error": {"code": -1, "message": "User rejected"}}}')
    t.fails('tool_error', 'refused elicitation/create: User rejected', nil, call.outcome.value.err)
    call = setup(elicits())
    inputs.answer(call, 1, '{"answer": {"error": {"code": -32601, "message": "Method not found"}}}')
    t.eq('capability_missing', call.outcome.value.err.code)
    for _, text in ipairs({ '{}', '{"answer": 1}', '{"answer": {"result": 1}}', '1', 'no JSON' }) do
      call = setup(elicits())
      inputs.answer(call, 1, text)
      t.eq('validation_error', call.outcome.value.err.code)
    end
  end)

  it('refuses invalid samples and roots', function()
    local text = { type = 'text', text = 'x' }
    for _, case in ipairs({
      { 'sampling/createMessage', { 'x' }, '(root): must be object, got array' },
      { 'sampling/createMessage', { content = 'x' }, 'content: must be object or array' },
      { 'sampling/createMessage', { content = vim.empty_dict() }, 'content.type: is required' },
      { 'sampling/createMessage', { content = { type = 'text', text = 5 } }, 'content.text: must be string' },
      { 'sampling/createMessage', { content = { text, 5 } }, 'content[1]: must be object' },
      { 'sampling/createMessage', { content = { text, { type = 'audio' } } } },
      { 'sampling/createMessage', { content = {} } },
      { 'roots/list', { { uri = 'file:///x' } }, '(root): must be object, got array' },
      { 'roots/list', { roots = 'x' }, 'roots: must be array' },
      { 'roots/list', { roots = { a = 1 } }, 'roots: must be array' },
      { 'roots/list', { roots = { { uri = 'file:///x' }, 5 } }, 'roots[1]: must be object' },
      { 'roots/list', { roots = { { uri = vim.NIL } } }, 'roots[0].uri: must be string' },
      { 'roots/list', { roots = {} } },
    }) do
      local call = setup(function(ctx)
        local values, err = ctx:request_inputs({ a = { method = case[1], params = { messages = {}, maxTokens = 5 } } })
        return { values = values, err = err }
      end)
      answer(call, { a = case[2] })
      local err = call.outcome.value.err
      if case[3] then
        t.eq({ 'validation_error', 'a' }, { err.code, err.errors[1].field })
        t.matches(vim.pesc(("the client's answer to %s is invalid: %s"):format(case[1], case[3])), err.message)
      else
        t.eq(nil, err)
      end
    end
  end)

  it('keeps the valid answers beside an error that names the invalid ones', function()
    local call = setup(function(ctx)
      local values, err = ctx:request_inputs({ a = { method = 'roots/list' }, b = { method = 'roots/list' } })
      return { values = values, fields = err.errors[1].field }
    end)
    answer(call, { a = { roots = {} }, b = { nothing = true } })
    t.eq({ 'b', { 'a' } }, { call.outcome.value.fields, (vim.tbl_keys(call.outcome.value.values)) })
  end)
end)

describe('a request that is withdrawn', function()
  local REQUESTS = { a = { method = 'roots/list' } }

  local function two(heard)
    return setup({
      execute = function(ctx)
        ctx:request_inputs(REQUESTS, function() table.insert(heard, 'first') end)
        ctx:elicit('Second?', NAME, function(value) ctx(value.action) end)
      end,
    })
  end

  it('is not pending any more, gets no answer, and makes room for the next one', function()
    local heard = {}
    local call, asked = two(heard)
    inputs.withdraw(call, call.questions[1].requests)
    t.eq({ 1, 2, 'waiting_input' }, { call.withdrawn, call.inputs.seq, call.state })
    t.eq('Second?', asked[#asked].answer.params.message)
    t.eq(false, answer(call, { a = { roots = {} } }, 1))
    answer(call, { answer = { action = 'decline' } }, 2)
    t.eq({ 'decline', {} }, { call.outcome.value, heard })
  end)

  it('before it was sent is skipped', function()
    local call = two({})
    inputs.withdraw(call, call.questions[2].requests)
    t.eq({ 1, 1 }, { #call.questions, call.inputs.seq })
    answer(call, { a = { roots = {} } })
    t.eq({ 'running', nil }, { call.state, call.inputs })
  end)

  it('of a call that has ended or never asked changes nothing', function()
    local call = two({})
    local requests = call.questions[1].requests
    call:cancel('user')
    inputs.withdraw(call, requests)
    t.eq({ 'cancelled', nil }, { call.state, call.withdrawn })
  end)
end)

describe('a client without the capability', function()
  local function required(capabilities, ask)
    local got
    local call = setup(function(ctx)
      local _, err = ask(ctx)
      got = err
    end, { capabilities = capabilities })
    t.eq(true, call:ended(), 'it is told at once')
    return got and { got.code, got.required } or nil
  end

  it('gets no request', function()
    local function sample(ctx) return ctx:sample({ messages = {}, tools = { {} } }) end
    local function roots(ctx) return ctx:roots() end
    local function elicit(ctx) return ctx:elicit('?', NAME) end
    t.eq({ 'capability_missing', { elicitation = {} } }, required({}, elicit))
    t.eq({ 'capability_missing', { elicitation = {} } }, required({ elicitation = { url = {} } }, elicit))
    t.eq({ 'capability_missing', { roots = {} } }, required({ sampling = {} }, roots))
    t.eq({ 'capability_missing', { sampling = {} } }, required({}, sample))
    t.eq({ 'capability_missing', { sampling = { tools = {} } } }, required({ sampling = {} }, sample))
  end)

  it('is in an error that the tool passes on', function()
    local call = setup({ run = function(ctx) ctx(ctx:sample({ messages = {} })) end }, { capabilities = {} })
    t.eq({ sampling = {} }, call.outcome.error.required)
  end)
end)

describe('the timeout', function()
  it('stops while the client is asked, and continues afterwards', function()
    local tool = elicits()
    tool.timeout = 60
    local call = setup(tool)
    t.eq(nil, call.deadline)
    vim.wait(120)
    t.eq('waiting_input', call.state)
    tool = {
      timeout = 60,
      run = function(ctx)
        ctx:elicit('?', NAME)
        ctx:await(function() end)
      end,
    }
    call = setup(tool)
    vim.wait(120)
    answer(call, { answer = { action = 'decline' } })
    t.eq('running', call.state)
    t.ok(call.deadline > vim.uv.hrtime())
    t.wait(function() return call.state == 'timed_out' end)
  end)

  it('does not start again with each request', function()
    local call = setup({
      timeout = 100,
      run = function(ctx)
        while true do
          ctx:await(function(done) vim.defer_fn(done, 40) end)
          ctx:elicit('?', NAME)
        end
      end,
    })
    t.wait(function()
      if call.state == 'waiting_input' then
        answer(call, { answer = { action = 'decline' } })
      end
      return call.state == 'timed_out'
    end, 1000)
  end)
end)

describe('a tool that asks', function()
  it('and is cancelled gets no answer', function()
    local heard, reason = false, nil
    local function execute(ctx)
      ctx:on_cancel(function(why) reason = why end)
      ctx:elicit('?', NAME, function() heard = true end)
    end
    local call = setup({ execute = execute })
    call:cancel('timeout')
    t.eq({ 'timed_out', 'timeout' }, { call.state, call.outcome.error.code })
    t.eq({ false, false, 'timeout' }, { answer(call, { answer = { action = 'decline' } }, 1), heard, reason })
  end)

  it('fails when the receiver of the answer throws', function()
    local call = setup({ execute = function() end, timeout = 0 })
    inputs.ask(call, { who = { method = 'roots/list' } }, function() error('no luck') end)
    t.eq(true, answer(call, { who = { roots = {} } }))
    t.eq({ 'failed', 'execution_error' }, { call.state, call.outcome.error.code })
    t.ok(not call.outcome.error.message:find('luck', 1, true))
  end)

  it('fails when its callback throws', function()
    local function execute(ctx)
      ctx:elicit('?', NAME, function() error('no luck') end)
    end
    local call = setup({ execute = execute })
    t.eq(true, answer(call, { answer = { action = 'decline' } }))
    t.fails('execution_error', 'no luck', nil, call.outcome.error)
  end)

  it('fails with an invalid request', function()
    local faults = {
      { 'expected string', 'elicit', 1, {} },
      { 'expected table', 'elicit', 'x' },
      { 'params.messages', 'sample', {} },
      { 'must be a table', 'request_inputs', {} },
      { 'requests.a.method must be one of', 'request_inputs', { a = { method = 'tools/list' } } },
    }
    for _, case in ipairs(faults) do
      local function execute(ctx)
        ctx[case[2]](ctx, case[3], case[4], function() end)
      end
      local call = setup({ execute = execute })
      t.eq('execution_error', call.outcome.error.code)
      t.matches(case[1], call.outcome.error.message)
    end
    local call = setup(function(ctx)
      local _, err = ctx:elicit('?', { type = 'nonsense' })
      return err.message
    end)
    t.matches('the schema of answer', call.outcome.value)
  end)
end)

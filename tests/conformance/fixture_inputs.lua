--- What the conformance suites expect of tools and prompts that ask their client: elicitation, sampling, roots.

local mcp = require('mcp-tools')

local function tool(name, description, run, args)
  mcp.register({ name = name, description = description, args = args, annotations = { read_only = true }, run = run })
end

local function object(properties, required) return { type = 'object', properties = properties, required = required } end

local STRING = { type = 'string' }
local NAME = object({ name = STRING }, { 'name' })

local function elicit(ctx, message, schema)
  local answer, err = ctx:elicit(message, schema)
  if not answer then
    return ctx(nil, err)
  end
  return ('User response: action=%s, content=%s'):format(answer.action, vim.json.encode(answer.content or {}))
end

local function form(message, schema)
  return { method = 'elicitation/create', params = { message = message, requestedSchema = schema } }
end

local function prompt(text)
  local message = { role = 'user', content = { type = 'text', text = text } }
  return { messages = { message }, maxTokens = 100 }
end

--- Registers a tool that asks for one thing, and returns a text made from the answer.
local function ask(name, description, key, request, text)
  tool('test_input_required_result_' .. name, description, function(ctx)
    local answers, err = ctx:request_inputs({ [key] = request })
    if not answers or err then
      return ctx(nil, err)
    end
    return text(answers[key])
  end)
end

-- Over sessions ----------------------------------------------------------------------------------------------------

tool('test_sampling', "Asks the client's model", function(ctx, args)
  local answer, err = ctx:sample(prompt(args.prompt))
  if not answer then
    return ctx(nil, err)
  end
  return 'LLM response: ' .. answer.content.text
end, { prompt = { type = 'string', required = true } })

local PERSON = object({ username = STRING, email = STRING }, { 'username', 'email' })
local MESSAGE = { message = { type = 'string', required = true } }
tool('test_elicitation', 'Asks the user', function(ctx, args) return elicit(ctx, args.message, PERSON) end, MESSAGE)

local DEFAULTS = object({
  name = { type = 'string', default = 'John Doe' },
  age = { type = 'integer', default = 30 },
  score = { type = 'number', default = 95.5 },
  status = { type = 'string', enum = { 'active', 'inactive', 'pending' }, default = 'active' },
  verified = { type = 'boolean', default = true },
})
tool(
  'test_elicitation_sep1034_defaults',
  'Asks with defaults',
  function(ctx) return elicit(ctx, 'Please review and update the form fields with defaults', DEFAULTS) end
)

local OPTIONS = { 'option1', 'option2', 'option3' }

--- Three choices with titles such as 'First Option'.
local function titled(kind)
  local list = {}
  for i, ordinal in ipairs({ 'First', 'Second', 'Third' }) do
    list[i] = { const = 'value' .. i, title = ordinal .. ' ' .. kind }
  end
  return list
end

local CHOICES = object({
  untitledSingle = { type = 'string', enum = OPTIONS },
  titledSingle = { type = 'string', oneOf = titled('Option') },
  legacyEnum = {
    type = 'string',
    enum = { 'opt1', 'opt2', 'opt3' },
    enumNames = { 'Option One', 'Option Two', 'Option Three' },
  },
  untitledMulti = { type = 'array', items = { type = 'string', enum = OPTIONS } },
  titledMulti = { type = 'array', items = { anyOf = titled('Choice') } },
})
tool(
  'test_elicitation_sep1330_enums',
  'Asks with every kind of choice',
  function(ctx) return elicit(ctx, 'Please select options from the enum fields', CHOICES) end
)

-- Without sessions -------------------------------------------------------------------------------------------------

tool('test_missing_capability', 'Needs a client that can sample', function(ctx)
  local answer, err = ctx:sample(prompt('Hello'))
  if not answer then
    return ctx(nil, err)
  end
  return 'ok'
end)

local WHO, ROOTS = form('What is your name?', NAME), { method = 'roots/list' }
local CAPITAL = { method = 'sampling/createMessage', params = prompt('What is the capital of France?') }
local CONFIRM = form('Please confirm', object({ ok = { type = 'boolean' } }, { 'ok' }))

ask(
  'elicitation',
  'Asks for a name',
  'user_name',
  WHO,
  function(answer) return ('Hello, %s!'):format(answer.content and answer.content.name or 'stranger') end
)
ask('sampling', "Asks the client's model", 'capital_question', CAPITAL, function(answer) return answer.content.text end)
ask(
  'list_roots',
  'Asks for roots',
  'client_roots',
  ROOTS,
  function(answer) return ('%d roots, the first is %s'):format(#answer.roots, answer.roots[1].uri) end
)
for _, name in ipairs({ 'request_state', 'tampered_state' }) do
  ask(name, 'Asks for leave', 'confirm', CONFIRM, function() return 'state-ok' end)
end

tool('test_input_required_result_multiple_inputs', 'Asks for three things at once', function(ctx)
  local answers, err = ctx:request_inputs({
    user_name = WHO,
    greeting = { method = 'sampling/createMessage', params = prompt('Generate a greeting') },
    client_roots = ROOTS,
  })
  if err then
    return ctx(nil, err)
  end
  return ('%s, %s'):format(answers.greeting.content.text, answers.user_name.content.name)
end)

tool('test_input_required_result_multi_round', 'Asks twice', function(ctx)
  local first = ctx:request_inputs({ step1 = form('Step 1: What is your name?', NAME) })
  local color = object({ color = STRING }, { 'color' })
  local second = first and ctx:request_inputs({ step2 = form('Step 2: What is your favorite color?', color) })
  if not second then
    return ctx:fail('no answer')
  end
  return ('%s likes %s'):format(first.step1.content.name, second.step2.content.color)
end)

tool('test_input_required_result_capabilities', 'Asks only for what the client has', function(ctx)
  local requests = {}
  if ctx.capabilities.sampling then
    requests.sample = { method = 'sampling/createMessage', params = prompt('Hello') }
  end
  if ctx.capabilities.elicitation then
    requests.name = form('What is your name?', NAME)
  end
  local _, err = ctx:request_inputs(requests)
  return err and ctx(nil, err) or 'ok'
end)

mcp.register_prompt({
  name = 'test_input_required_result_prompt',
  description = 'Asks for its context',
  run = function(ctx)
    local answers, err = ctx:request_inputs({
      user_context = form('What context should the prompt use?', object({ context = STRING }, { 'context' })),
    })
    if not answers or err then
      return ctx(nil, err)
    end
    return 'Context: ' .. answers.user_context.content.context
  end,
})

--- What the conformance suite expects of tools whose calls become tasks, which tests make happen sooner.

local mcp = require('mcp-tools')

--- Longer than a call may take without becoming a task, in ms.
local LONG = 700

local function tool(name, args, run)
  mcp.register({ name = name, description = name, args = args, annotations = { read_only = true }, run = run })
end

local function pause(ctx, ms)
  ctx:await(function(done) vim.defer_fn(done, ms) end)
end

local function form(message, key)
  local schema = { type = 'object', properties = { [key] = { type = 'string' } } }
  return { method = 'elicitation/create', params = { message = message, requestedSchema = schema } }
end

tool('greet', { name = { type = 'string' } }, function(_, args) return ('Hello, %s!'):format(args.name) end)

tool('slow_compute', { seconds = { type = 'number' }, label = { type = 'string' } }, function(ctx, args)
  pause(ctx, args.seconds * 1000)
  return 'computed ' .. (args.label or '')
end)

tool('failing_job', nil, function(ctx)
  pause(ctx, 1000)
  return ctx(nil, 'the job failed')
end)

-- A client without the capability gets an error of the protocol.
tool('protocol_error_job', nil, function(ctx)
  pause(ctx, LONG)
  local message = { role = 'user', content = { type = 'text', text = 'x' } }
  return ctx:request_inputs({ x = { method = 'roots/list', params = { messages = { message } } } })
end)

tool('confirm_delete', { filename = { type = 'string' } }, function(ctx)
  pause(ctx, LONG)
  local answers, err = ctx:request_inputs({ confirm = form('Delete it?', 'confirm') })
  return answers and 'deleted' or ctx(nil, err)
end)

tool('multi_input', nil, function(ctx)
  pause(ctx, LONG)
  local answers, err = ctx:request_inputs({ name = form('Name?', 'name'), color = form('Color?', 'color') })
  return answers and 'thank you' or ctx(nil, err)
end)

tool('test_tool_with_task', nil, function(ctx)
  local answers, err = ctx:request_inputs({ user_name = form('Name?', 'name') })
  if not answers then
    return ctx(nil, err)
  end
  pause(ctx, LONG)
  return vim.json.encode(answers)
end)

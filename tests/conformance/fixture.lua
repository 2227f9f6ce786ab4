--- What the conformance suites expect of a server, registered through the public API.

local mcp = require('mcp-tools')
local content = mcp.content

-- A red pixel, and two samples of silence.
local PNG =
  vim.base64.decode('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg==')
local WAV = vim.base64.decode('UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=')
--- The pause between two messages of a tool, in ms.
local PAUSE = 50

--- Registers a tool that needs no approval.
local function register(name, description, execute, more)
  local tool = { name = name, description = description, execute = execute, annotations = { read_only = true } }
  mcp.register(vim.tbl_extend('force', tool, more or {}))
end

--- Registers a tool without arguments that answers at once.
local function answers(name, description, value)
  register(name, description, function(ctx) ctx(value) end)
end

--- Registers a tool that takes some time.
local function runs(name, description, run) register(name, description, nil, { run = run }) end

---@param ctx table of a `run` tool
local function pause(ctx)
  ctx:await(function(done) vim.defer_fn(done, PAUSE) end)
end

-- Content ----------------------------------------------------------------------------------------------------------

answers('test_simple_text', 'Answers with text', 'This is a simple text response for testing.')
answers('test_image_content', 'Answers with an image', content.image(PNG, 'image/png'))
answers('test_audio_content', 'Answers with audio', content.audio(WAV, 'audio/wav'))

local EMBEDDED = { uri = 'test://embedded-resource', mime_type = 'text/plain' }
EMBEDDED.text = 'This is an embedded resource content.'
answers('test_embedded_resource', 'Answers with a resource', content.resource(EMBEDDED))

local MIXED = { uri = 'test://mixed-content-resource', mime_type = 'application/json' }
MIXED.text = '{"test":"data","value":123}'
answers('test_multiple_content_types', 'Answers with text, an image and a resource', {
  content.text('Multiple content types test:'),
  content.image(PNG, 'image/png'),
  content.resource(MIXED),
})

-- Errors -----------------------------------------------------------------------------------------------------------

local ERROR = 'This tool intentionally returns an error for testing'
register('test_error_handling', 'Always fails', function(ctx) ctx(nil, ERROR) end)

-- While a tool runs ------------------------------------------------------------------------------------------------

runs('test_tool_with_logging', 'Logs while it runs', function(ctx)
  ctx:log('info', 'Tool execution started')
  pause(ctx)
  ctx:log('info', 'Tool processing data')
  pause(ctx)
  ctx:log('info', 'Tool execution completed')
  return 'Logged three messages'
end)

runs('test_logging_tool', 'Logs once', function(ctx)
  ctx:log('info', 'One message')
  pause(ctx)
  return 'Logged one message'
end)

runs('test_tool_with_progress', 'Reports progress', function(ctx)
  for _, done in ipairs({ 0, 50, 100 }) do
    ctx:progress(done, 100, ('Completed step %d of 100'):format(done))
    pause(ctx)
  end
  return 'Completed'
end)

runs('test_streaming_elicitation', 'Streams; must not send requests without a session', function(ctx)
  ctx:progress(1, 2)
  pause(ctx)
  return 'Streamed'
end)

-- tests/conformance/proxy.py cuts the connection after the message below; the client that reconnects gets the answer.
runs('test_reconnection', 'Is still running when the connection breaks', function(ctx)
  ctx:log('info', 'Still running')
  for _ = 1, 4 do
    pause(ctx)
  end
  return 'Reconnection test completed successfully'
end)

-- Changes of the list ----------------------------------------------------------------------------------------------

register('test_trigger_tool_change', 'Changes the list of tools', function(ctx)
  answers('test_short_lived', 'Is removed at once', '')
  mcp.unregister('test_short_lived')
  ctx('Changed the list twice')
end)

register('test_trigger_prompt_change', 'Changes the list of prompts', function(ctx)
  local function get(answer) answer('') end
  mcp.register_prompt({ name = 'test_short_lived', description = 'Is removed at once', get = get })
  mcp.unregister_prompt('test_short_lived')
  ctx('Changed the list twice')
end)

-- Schemas that must reach clients unchanged ------------------------------------------------------------------------

local REGION = { region = { type = 'string', ['x-mcp-header'] = 'Region' } }
register(
  'test_x_mcp_header',
  'Has an argument that clients repeat in a header',
  function(ctx, args) ctx('region=' .. tostring(args.region)) end,
  { input_schema = { type = 'object', properties = REGION } }
)

local ADDRESS = {
  ['$anchor'] = 'addressDef',
  type = 'object',
  properties = { street = { type = 'string' }, city = { type = 'string' } },
}

register('json_schema_2020_12_tool', 'Tool with JSON Schema 2020-12 features', function(ctx, args) ctx(args) end, {
  input_schema = {
    ['$schema'] = 'https://json-schema.org/draft/2020-12/schema',
    type = 'object',
    ['$defs'] = { address = ADDRESS },
    properties = {
      name = { type = 'string' },
      address = { ['$ref'] = '#/$defs/address' },
      contactMethod = { type = 'string', enum = { 'phone', 'email' } },
      phone = { type = 'string' },
      email = { type = 'string' },
    },
    allOf = { { anyOf = { { required = { 'phone' } }, { required = { 'email' } } } } },
    ['if'] = { properties = { contactMethod = { const = 'phone' } }, required = { 'contactMethod' } },
    ['then'] = { required = { 'phone' } },
    ['else'] = { required = { 'email' } },
    additionalProperties = false,
  },
})

-- Resources --------------------------------------------------------------------------------------------------------

local function resource(name, mime_type, value)
  local function read(ctx) ctx(value) end
  local uri = 'test://' .. name
  mcp.register_resource({ uri = uri, name = name, description = name, mime_type = mime_type, read = read })
end

resource('static-text', 'text/plain', 'This is the content of the static text resource.')
resource('static-binary', 'image/png', { blob = PNG })
resource('watched-resource', nil, 'Watched resource content')

mcp.register_resource({
  uri_template = 'test://template/{id}/data',
  name = 'template',
  description = 'Data for an id',
  mime_type = 'application/json',
  read = function(ctx, params)
    ctx(vim.json.encode({ id = params.id, templateTest = true, data = 'Data for ID: ' .. params.id }))
  end,
})

-- Prompts ----------------------------------------------------------------------------------------------------------

mcp.register_prompt({
  name = 'test_simple_prompt',
  description = 'Takes nothing',
  get = function(ctx) ctx('This is a simple prompt for testing.') end,
})

mcp.register_prompt({
  name = 'test_prompt_with_arguments',
  description = 'Takes two arguments',
  args = {
    {
      name = 'arg1',
      description = 'First test argument',
      required = true,
      complete = function(ctx, prefix)
        ctx(vim.tbl_filter(function(value) return vim.startswith(value, prefix) end, { 'test1', 'test2' }))
      end,
    },
    { name = 'arg2', description = 'Second test argument', required = true },
  },
  get = function(ctx, args) ctx(("Prompt with arguments: arg1='%s', arg2='%s'"):format(args.arg1, args.arg2)) end,
})

mcp.register_prompt({
  name = 'test_prompt_with_embedded_resource',
  description = 'Has a resource in it',
  args = { resourceUri = { description = 'URI of the resource to embed', required = true } },
  get = function(ctx, args)
    local text = 'Embedded resource content for testing.'
    ctx({
      content.resource({ uri = args.resourceUri, mime_type = 'text/plain', text = text }),
      content.text('Please process the embedded resource above.'),
    })
  end,
})

mcp.register_prompt({
  name = 'test_prompt_with_image',
  description = 'Has an image in it',
  get = function(ctx) ctx({ content.image(PNG, 'image/png'), content.text('Please analyze the image above.') }) end,
})

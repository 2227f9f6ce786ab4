local config = require('mcp-tools.config')
local mcp = require('mcp-tools')
local t = require('helpers')
local tools = require('mcp-tools.callers.avante').tools

local function register(name, def)
  mcp.register(vim.tbl_extend('force', { name = name, description = name, needs_approval = false }, def))
end

local function by_name(name, opts)
  for _, tool in ipairs(tools(opts)) do
    if tool.name == name then
      return tool
    end
  end
end

describe('the tools for Avante', function()
  before_each(function() config.setup({ approval = { default = 'allow' } }) end)

  it('have arguments in its form; other constraints are in the description', function()
    register('takes', {
      input_schema = {
        type = 'object',
        required = { 'path', 'spots' },
        properties = {
          path = { type = 'string', description = 'A file', maxLength = 9 },
          kind = { type = 'string', enum = { 'a', 'b' } },
          any = {},
          both = { type = { 'string', 'null' }, description = 'Either' },
          spots = {
            type = 'array',
            items = { type = 'object', required = { 'line' }, properties = { line = { type = 'integer' } } },
          },
        },
      },
      execute = function() end,
    })
    local tool = by_name('nvim_takes')
    t.eq({ 'takes', 'table' }, { tool.description, tool.param.type })
    local fields = {}
    for _, field in ipairs(tool.param.fields) do
      fields[field.name] = field
    end
    local path = { name = 'path', type = 'string', optional = false }
    path.description = 'A file (JSON Schema: {"maxLength":9})'
    t.eq(path, fields.path)
    t.eq({ name = 'kind', type = 'string', description = 'kind', choices = { 'a', 'b' }, optional = true }, fields.kind)
    t.eq({ name = 'any', description = 'any', optional = true }, fields.any)
    t.eq('Either (JSON Schema: {"type":["string","null"]})', fields.both.description)
    local line = { name = 'line', type = 'integer', description = 'line', optional = false }
    local spot = { name = 'item', type = 'object', description = 'item', fields = { line }, optional = false }
    t.eq({ name = 'spots', type = 'array', description = 'spots', items = spot, optional = false }, fields.spots)
  end)

  it('end even if the user has removed all autocommands without a group', function()
    local finish, result
    register('waits', { execute = function(ctx) finish = ctx end })
    by_name('nvim_waits').func({}, { on_complete = function(given) result = given end })
    vim.cmd('autocmd! User')
    t.wait(function() return finish ~= nil end)
    finish('done')
    t.wait(function() return result == 'done' end)
  end)

  it('are called with functions, or with a table of them', function()
    register('says', {
      args = { value = { type = 'string', required = true } },
      execute = function(ctx, args)
        ctx:progress(1, 2, 'half')
        ctx(args.value)
      end,
    })
    local tool = by_name('nvim_says')
    local lines, results = {}, {}
    local function on_log(line) table.insert(lines, line) end
    local function on_complete(result, err) table.insert(results, { result or false, err or false }) end
    t.eq(nil, tool.func({ value = 'x' }, on_log, on_complete))
    t.eq(nil, tool.func({ value = 'y' }, { on_log = on_log, on_complete = on_complete }))
    t.eq(nil, tool.func({}, { on_complete = on_complete }))
    t.wait(function() return #results == 3 end)
    t.eq({ { '1/2 half', '1/2 half' }, { 'x', false }, { 'y', false } }, { lines, results[1], results[2] })
    t.matches('value: is required', results[3][2])
    t.eq({}, vim.api.nvim_get_autocmds({ event = 'User', pattern = 'AvanteLLMEscape' }))
    local result, err = tool.func({ value = 'x' }, {})
    t.eq(nil, result)
    t.matches('on_complete', err)
  end)
end)

local CHECKOUTS = vim.env.AVANTE
if CHECKOUTS then
  it('in Avante itself are sent to models, run, and stopped with a request', function()
    for path in CHECKOUTS:gmatch('[^:]+') do
      vim.opt.runtimepath:prepend(path)
    end
    config.setup({ tools = 'recommended', approval = { default = 'allow' } })
    local begun, stopped
    register('says', {
      args = { value = { type = 'string', required = true } },
      execute = function(ctx, args) ctx(args.value) end,
    })
    local function execute(ctx)
      begun = true
      ctx:on_cancel(function(reason) stopped = reason end)
    end
    register('waits', { execute = execute })
    require('avante.config').setup({ custom_tools = tools })
    local llm_tools = require('avante.llm_tools')
    local theirs = llm_tools.get_tools('hello', {})
    local ours = 0
    for _, tool in ipairs(theirs) do
      if vim.startswith(tool.name, 'nvim_') then
        ours = ours + 1
        local schema = vim.json.encode(require('avante.providers.openai'):transform_tool(tool))
        t.ok(not schema:gsub('"required":%[%]', ''):find('[]', 1, true), schema)
      end
    end
    t.ok(ours > 10)
    local results = {}
    local function use(name, input)
      local count = #results
      local opts = { session_ctx = {} }
      function opts.on_complete(result, err) table.insert(results, { result or false, err or false }) end
      t.eq(nil, llm_tools.process_tool_use(theirs, { id = '1', name = name, input = input }, opts))
      return function() return #results > count end
    end
    t.wait(use('nvim_says', { value = 'x' }))
    t.wait(use('nvim_says', {}))
    local ended = use('nvim_waits', {})
    t.wait(function() return begun end)
    require('avante.llm').cancel_inflight_request()
    t.eq('user', stopped)
    t.wait(ended)
    t.eq({ 'x', false }, results[1])
    t.matches('value: is required', results[2][2])
    t.eq({ false, require('avante.llm_tools.helpers').CANCEL_TOKEN }, results[3])
  end)
end

local t = require('helpers')
local config = require('mcp-tools.config')
local host = require('mcp-tools.callers.codecompanion')
local mcp = require('mcp-tools')
local scripted_model = require('scripted_model')

local CHECKOUTS = vim.env.CODECOMPANION

local function register(name, def)
  mcp.register(vim.tbl_extend('force', { name = name, description = name, needs_approval = false }, def))
end

local function says(def)
  local base = { args = { value = { type = 'string', required = true } } }
  function base.execute(ctx, args) ctx('it says ' .. args.value) end
  register('says', vim.tbl_extend('force', base, def or {}))
end

before_each(function()
  config.reset()
  config.setup({ tools = false, approval = { default = 'allow' } })
end)

describe('the tools for CodeCompanion', function()
  it('are the enabled tools with their schemas, and a group of all', function()
    says()
    local tools = host.tools()
    local tool = tools.nvim_says.callback()
    t.eq('nvim_says', tool.schema['function'].name)
    t.eq({ 'value' }, tool.schema['function'].parameters.required)
    t.eq({ 'nvim_says' }, tools.groups.nvim_tools.tools)
    t.eq(false, tools.nvim_says.opts.require_approval_before)
  end)

  it('are narrowed by its options', function()
    says()
    register('reads', { annotations = { read_only = true }, execute = t.answers('read') })
    local tools = host.tools({ readonly = true, group = 'mine' })
    t.eq({ 'nvim_reads' }, tools.groups.mine.tools)
  end)

  it('use fields of a definition for this caller only, such as approval by CodeCompanion', function()
    local own = { system_prompt = 'be brief', opts = { require_approval_before = true } }
    says({ callers = { codecompanion = own, other = { system_prompt = 'no' } } })
    local tool = host.tools().nvim_says
    t.eq({ 'be brief', true }, { tool.callback().system_prompt, tool.opts.require_approval_before })
  end)

  it('do not use names that have another meaning in that table', function()
    config.setup({ tool_prefix = '' })
    register('groups', { execute = function() end })
    t.eq('table', type(host.tools().groups.nvim_tools.tools))
    t.ok(not vim.tbl_contains(host.tools().groups.nvim_tools.tools, 'groups'))
    mcp.unregister('groups')
  end)

  it('end with a closed chat, which gets no result', function()
    local reason, results = nil, {}
    local function execute(ctx)
      ctx:on_cancel(function(why) reason = why end)
    end
    register('waits', { execute = execute })
    local function start(chat)
      local function output_cb(message) results[chat] = message.data end
      host.tools().nvim_waits.callback().cmds[1]({ bufnr = chat }, {}, { output_cb = output_cb })
    end
    local closed, other = vim.api.nvim_create_buf(false, true), vim.api.nvim_create_buf(false, true)
    start(other)
    start(closed)
    vim.api.nvim_exec_autocmds('User', { pattern = 'CodeCompanionChatClosed', data = { bufnr = closed } })
    vim.api.nvim_buf_delete(closed, { force = true })
    t.eq({ 'session_closed', 1 }, { reason, (#require('mcp-tools.core').get().executor:pending()) })
    reason = nil
    vim.api.nvim_exec_autocmds('User', { pattern = 'CodeCompanionChatStopped', data = { bufnr = other } })
    t.eq('user', reason)
    t.wait(function() return results[other] end)
    t.matches('cancelled', results[other])
    t.eq(nil, results[closed])
  end)
end)

describe('the extension for CodeCompanion', function()
  local there

  before_each(function()
    there = { groups = {}, opts = {} }
    package.loaded['codecompanion.config'] = { interactions = { chat = { tools = there } } }
  end)

  after_each(function() package.loaded['codecompanion.config'] = nil end)

  it('is found by CodeCompanion, and loads bundled tools without a long block', function()
    config.setup({ tools = 'recommended' })
    require('codecompanion._extensions.mcp_tools').setup({ tools = 'file' })
    t.eq({}, there.groups)
    local bundled = require('mcp-tools.loading.bundled')
    local load, at_once = bundled.load, false
    bundled.load = function(registry, kind, ns)
      at_once = at_once or not ns and bundled.is_pending('tools')
      return load(registry, kind, ns)
    end
    t.wait(function() return there.nvim_file_read end)
    bundled.load = load
    t.eq(false, at_once)
    t.ok(#there.groups.nvim_tools.tools > 2)
    t.eq(nil, there.nvim_says)
    config.setup({ tools = {} })
  end)

  it('does not replace a tool with the same name', function()
    local own = { description = 'its own' }
    there.nvim_says = own
    says()
    host.setup()
    t.wait(function() return there.groups.nvim_tools end)
    t.eq(own, there.nvim_says)
    t.ok(not vim.tbl_contains(there.groups.nvim_tools.tools, 'nvim_says'))
    mcp.unregister('says')
    register('other', { execute = function() end })
    t.wait(function() return there.nvim_other end)
    t.eq(own, there.nvim_says)
    mcp.unregister('other')
    t.wait(function() return not there.nvim_other end)
  end)
end)

--- Sets up the plugin from a checkout, with a model that follows a script.
local function real(url)
  for path in CHECKOUTS:gmatch('[^:]+') do
    vim.opt.runtimepath:prepend(path)
  end
  local function adapter()
    return require('codecompanion.adapters').extend('openai', {
      url = url,
      env = { api_key = t.returns('none') },
      schema = { model = { default = 'gpt-4o', choices = { ['gpt-4o'] = {} } } },
    })
  end
  require('codecompanion').setup({
    adapters = { http = { openai = adapter } },
    interactions = { chat = { adapter = 'openai' } },
    extensions = { mcp_tools = { opts = {} } },
  })
  return require('codecompanion.config').interactions.chat.tools
end

--- Writes into a chat, and sends it.
local function ask(chat, text)
  chat:add_buf_message({ role = 'user', content = text })
  chat:submit()
end

--- The results of calls in a request to the model.
local function results_in(request)
  local texts = {}
  for _, message in ipairs(request.body.messages) do
    if message.role == 'tool' then
      table.insert(texts, message.content)
    end
  end
  return texts
end

if CHECKOUTS then
  describe('in a chat of CodeCompanion', function()
    local begun, stopped, model, there

    before_each(function()
      begun, stopped = nil, nil
      says()
      local function execute(ctx)
        begun = true
        ctx:on_cancel(function(reason) stopped = reason end)
      end
      register('waits', { execute = execute })
    end)

    after_each(function() model.stop() end)

    local function open(script)
      model = scripted_model.start(script)
      there = real(model.url)
      t.wait(function() return there.nvim_says and there.nvim_waits end)
      return require('codecompanion').chat()
    end

    it('a model gets the tools, calls them, and reads their results, without a second approval', function()
      config.setup({ tools = 'recommended', approval = { tools = { denied = 'deny' } } })
      register('denied', { needs_approval = true, execute = function() end })
      local asked = 0
      vim.api.nvim_create_autocmd('User', {
        pattern = 'CodeCompanionToolApprovalRequested',
        callback = function() asked = asked + 1 end,
      })
      local calls = { { 'nvim_says', '{"value":"x"}' }, { 'nvim_says', '{"value":3}' }, { 'nvim_nothing', '{}' } }
      table.insert(calls, { 'nvim_denied', '' })
      local chat = open({ { calls = calls }, { text = 'I have said it' } })
      ask(chat, '@{nvim_tools} say x')
      t.wait(function() return #model.requests == 2 end, 10000, 'the answer to the calls')
      local sent = {}
      for _, each in ipairs(model.requests[1].body.tools) do
        sent[each['function'].name] = each['function']
      end
      t.eq({ 'value' }, sent.nvim_says.parameters.required)
      t.ok(vim.tbl_count(sent) > 10)
      t.matches('"properties":{}', model.requests[1].json) -- of the ones without arguments
      t.ok(not model.requests[1].json:find('"%a+":%[%]')) -- an empty list may have been an object
      local texts = results_in(model.requests[2])
      t.eq({ 4, 0 }, { #texts, asked })
      local all = table.concat(texts, '\n')
      t.matches({ 'it says x', 'value: must be string', 'denied was not run' }, all)
      t.matches('Tool `nvim_nothing` not found', all)
      local function text() return table.concat(vim.api.nvim_buf_get_lines(chat.bufnr, 0, -1, false), '\n') end
      t.wait(function() return text():find('I have said it') end, 5000, 'the text of the model')
      chat:close()
    end)

    it('a call ends when the chat is stopped or closed', function()
      local chat = open({ { calls = { { 'nvim_waits', '{}' } } }, { calls = { { 'nvim_waits', '{}' } } } })
      ask(chat, '@{nvim_waits} wait')
      t.wait(function() return begun end, 10000, 'the call')
      chat:stop()
      t.eq('user', stopped)
      t.wait(function() return not chat.current_request and not chat.tool_orchestrator end)
      begun, stopped = nil, nil
      ask(chat, 'wait again')
      t.wait(function() return begun end, 10000, 'the second call')
      chat:close()
      t.eq('session_closed', stopped)
    end)

    it('tools are added and removed as they are registered and unregistered', function()
      open({})
      register('late', { execute = t.answers('late') })
      mcp.unregister('waits')
      t.wait(function() return there.nvim_late and not there.nvim_waits end)
      t.ok(vim.tbl_contains(there.groups.nvim_tools.tools, 'nvim_late'))
      t.ok(there.read_file and there.groups.agent) -- its own tools
    end)
  end)
end

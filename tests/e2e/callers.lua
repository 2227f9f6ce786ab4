--- Tools with every kind of outcome, and the callers of this editor: `callers[name](tool, args)` starts a call.
--- `_G.seen` has its progress, states and outcome; `_G.seen.stop()` cancels it.

local errors = mcp_tools.errors

local content = mcp_tools.content

local function tool(name, execute, more)
  local definition = { name = name, description = name, needs_approval = false, execute = execute }
  mcp_tools.register(vim.tbl_extend('force', definition, more or {}))
end

tool(
  'says',
  function(ctx, args) ctx(('%s to %s, %d times'):format(args.value, ctx.host, args.times)) end,
  { args = { value = { type = 'string', required = true }, times = { type = 'integer', default = 1 } } }
)
tool('data', function(ctx) ctx({ list = { 1, 2.5 }, empty = {} }) end)
tool('promises', function(ctx) ctx({ n = 'none' }) end, {
  output_schema = { type = 'object', properties = { n = { type = 'integer' } }, required = { 'n' } },
})
tool('fails', function(ctx) ctx(nil, 'not today') end)
tool('misses', function(ctx) ctx(nil, { code = 'not_found', message = 'no such thing' }) end)
tool('refuses', function(ctx) ctx(content.result({ content = { content.text('it went wrong') }, is_error = true })) end)
tool('throws', function() error('a fault of the code') end)
tool('tarries', function() end, { timeout = 30 })
tool('denied', function(ctx) ctx('it ran') end)
tool('garbles', function(ctx) ctx({ inner = { '\255\254' } }) end)
tool('shows', function(ctx) ctx({ content.text('a picture'), content.image('\1\2', 'image/png') }) end)
tool('steps', nil, {
  run = function(ctx)
    ctx:progress(1, 2, 'half')
    coroutine.yield('so far')
    ctx:await(function(done) _G.proceed = done end)
    return 'all'
  end,
})
tool('waits', function(ctx)
  _G.begun = true
  ctx:on_cancel(function(reason) _G.stopped = reason end)
end)

local function see()
  _G.seen = { progress = {}, states = {} }
  return _G.seen
end

local function kind_of(err)
  return errors.is_validation_failure(err) and 'validation' or errors.is_domain_failure(err) and 'domain' or 'other'
end

--- Hooks that record progress and states.
local function hooks_of(found)
  return function(progress) table.insert(found.progress, progress.message) end, function(state)
    table.insert(found.states, state)
  end
end

local function text_of(value)
  local result = content.as_result(value)
  return result and result.content[1].text or type(value) == 'string' and value or probe.json.encode(value)
end

_G.callers = {}

function callers.call(name, args)
  local found = see()
  local on_progress, on_state = hooks_of(found)
  local opts = { on_progress = on_progress, on_state = on_state }
  local handle = mcp_tools.call(name, args, opts, function(value, err)
    local result = content.as_result(value)
    local ok = not err and not (result and result.is_error)
    found.outcome = { ok = ok, text = err and err.message or text_of(value), code = err and err.code }
    found.outcome.kind = err and kind_of(err)
  end)
  function found.stop() handle:cancel() end
end

--- What the user sees: the window of `:McpTools call`.
function callers.command(name, args)
  local found, window = see(), 'mcp-tools://call ' .. name
  if vim.fn.bufexists(window) == 1 then
    vim.cmd.bwipeout(vim.fn.bufnr(window))
  end
  vim.cmd(('McpTools call %s %s'):format(name, vim.json.encode(args)))
  function found.look()
    local buffer = vim.fn.bufnr(window)
    if buffer < 0 then
      return
    end
    local text = table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
    local title = vim.wo[vim.fn.bufwinid(buffer)].winbar
    local ended = title:match(': (%a[%a ]*) in ')
    if ended then
      local code = text:match('^Error %((.-)%)')
      local ok = ended == 'done' and not vim.startswith(text, 'The tool reports an error')
      found.outcome = { ok = ok, text = text, code = code }
    else
      found.progress = { text:match('1/2  (%a+)') }
      found.states = { text:match('state  ([%a ]+)') }
    end
  end
  function found.stop() vim.cmd('McpTools cancel all') end
end

--- Any other assistant in the editor.
function callers.assistant(name, args)
  local found = see()
  local hooks = {}
  hooks.progress, hooks.state = hooks_of(found)
  local handle = require('mcp-tools.callers.assistant').start('assistant', name, args, {}, hooks, function(outcome)
    local err = outcome.error
    found.outcome = { ok = outcome.ok, text = outcome.text, code = err and err.code, kind = err and kind_of(err) }
  end)
  function found.stop() handle:cancel() end
end

--- CodeCompanion: resolves a tool, runs its commands, and puts its output into a chat.
function callers.codecompanion(name, args)
  local found = see()
  local on_progress, on_state = hooks_of(found)
  local tools = require('mcp-tools.callers.codecompanion').tools({
    on_progress = function(_, progress) on_progress(progress) end,
    on_state = function(_, state) on_state(state) end,
  })
  local tool_config = tools['nvim_' .. name]
  local resolved = vim.deepcopy(tool_config.callback())
  local buffer = vim.api.nvim_create_buf(false, true)
  local meta = { tools = { bufnr = buffer, chat = {} } }
  local ended = false
  function meta.tools.chat:add_tool_output(_, for_llm)
    found.outcome = { ok = ended == 'success', text = for_llm }
    vim.api.nvim_buf_delete(buffer, { force = true })
  end
  local returned = resolved.cmds[1](meta.tools, args, {
    output_cb = function(message)
      assert(not ended, 'answered twice')
      ended = message.status
      resolved.output[ended](resolved, { message.data }, meta)
    end,
  })
  assert(returned == nil, 'it must answer later')
  function found.stop()
    local event = { pattern = 'CodeCompanionChatStopped', data = { bufnr = buffer } }
    vim.api.nvim_exec_autocmds('User', event)
  end
end

--- Avante, which ends a stopped request itself.
function callers.avante(name, args)
  local found = see()
  local list = vim.tbl_filter(
    function(each) return each.name == 'nvim_' .. name end,
    require('mcp-tools.callers.avante').tools()
  )
  local opts = { session_ctx = {} }
  function opts.on_log(line)
    table.insert(found.progress, line:match('^1/2 (.*)$'))
    table.insert(found.states, line:match('^%a.*$'))
  end
  function opts.on_complete(result, err)
    assert(not found.outcome, 'answered twice')
    found.outcome = { ok = err == nil, text = err or result }
  end
  assert(list[1].func(args, opts) == nil, 'it must answer later')
  function found.stop()
    opts.on_complete(nil, 'cancelled')
    vim.api.nvim_exec_autocmds('User', { pattern = 'AvanteLLMEscape' })
  end
end

--- MCP Hub, which has no progress.
function callers.mcphub(name, args)
  local found = see()
  local list = vim.tbl_filter(
    function(each) return each.name == 'nvim_' .. name end,
    require('mcp-tools.callers.mcphub').server().capabilities.tools
  )
  local response = {}
  function response:send(result)
    assert(not found.outcome, 'answered twice')
    found.outcome = { ok = not result.isError, text = result.content[1].text }
  end
  assert(list[1].handler({ params = args }, response) == nil, 'it must answer later')
end

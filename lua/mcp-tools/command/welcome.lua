--- `:McpTools welcome`: a checklist that leads to the first call by an assistant.

local bridge = require('mcp-tools.bridge')
local clients = require('mcp-tools.bridge.clients')
local connect_client = require('mcp-tools.command.clients').connect.run --[[@as function]]
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local install = require('mcp-tools.bridge.install')
local interpreter = require('mcp-tools.bridge.interpreter')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')

local REFRESH = 250 -- ms
--- Indentation up to the text of a step.
local INDENT = (' '):rep(17)
local MARKS = { done = '✓', todo = '·', busy = '…', waits = ' ', fault = '✗' }
--- Callers that are not an assistant: Lua, `:McpTools call`, and the command that the test uses.
local OURS = { nvim = true, command = true, cli = true, ['mcp-tools'] = true }
local SETUP = 'require("mcp-tools").setup({ tools = "recommended" })'
local PROMPT = 'Use the nvim tools and tell me what I am looking at.'
--- Tools for the test, by preference: they only read and need no argument.
local TRIES = { 'editor_state', 'buffer_list', 'bridge_status' }

--- `{ state, text, hint = …, more = …, act = … }`. The state is 'done', 'todo', 'busy', 'fault', or 'waits' for an
--- earlier step. `hint` is shown when the step is next, `act` performs it.
---@alias mcp-tools.WelcomeStep table

--- Results of checks, as far as they are known.
---@class mcp-tools.WelcomeFacts
---@field clients? table[] from `mcp-tools clients`
---@field fault? string why that failed
---@field looking? boolean
---@field advice? string about the client that was connected here
---@field test? mcp-tools.WelcomeStep
---@field row? integer last line of the next step
local facts = {}

---@return mcp-tools.WelcomeStep
local function options()
  local tools, refusal = config.get('tools'), config.refusal()
  if refusal then
    local hint = 'correct them in your configuration, and restart Neovim'
    return { 'fault', refusal:gsub('%s+', ' '), hint = hint }
  elseif config.is_setup() and (tools or next(core.registry().entries.tools)) then
    return { 'done', type(tools) == 'string' and ('tools = "%s"'):format(tools) or 'tools are set' }
  end
  return {
    'todo',
    config.is_setup() and 'no tool is on: `tools` is false' or 'setup() was not called',
    hint = ('add %s to your configuration; <CR> runs it for this session'):format(SETUP),
    act = function()
      require('mcp-tools').setup({ tools = 'recommended' }) -- the public function, which also starts the bridge
    end,
  }
end

---@return mcp-tools.WelcomeStep
local function python()
  local status = bridge.status()
  local option = config.get('bridge.command') ~= nil and 'bridge.command'
    or config.get('bridge.python') ~= nil and 'bridge.python'
  local fault = not option and interpreter.environment_fault()
    or option and status.state == 'failed' and status.fault
    or nil
  if install.is_running() or (fault and fault.under_way) then
    return { 'busy', 'installing; see :McpTools log for details' }
  elseif not fault then
    return {
      'done',
      status.python_version and 'Python ' .. status.python_version or option and option .. ' is set' or 'installed',
    }
  end
  local failed = install.last_error()
  return {
    failed and 'fault' or 'todo',
    failed or fault.message,
    hint = fault.needs_install and '<CR> installs it: about 20 MB to download, 95 MB on disk, in a private environment'
      or fault.advice,
    act = fault.needs_install and function()
      bridge.install({})
    end,
  }
end

---@param has_python boolean
---@return mcp-tools.WelcomeStep
local function running(has_python)
  local status, blocker = bridge.status(), bridge.blocker()
  if status.state == 'ready' then
    return { 'done', ('ready: %s'):format(status.url) }
  elseif not has_python then
    return { 'waits', 'starts when Python is installed' }
  elseif status.state == 'stopped' then
    local why = blocker and ': ' .. blocker or ''
    return { 'todo', 'not running' .. why, hint = '<CR> starts it', act = bridge.start }
  elseif status.state == 'failed' then
    local hint = ('%s; <CR> tries again'):format(status.to_do or 'see :McpTools log')
    return { 'fault', status.last_error or 'not running', hint = hint, act = bridge.start }
  end
  return { 'busy', 'starting …' }
end

--- Describes the latest call by an assistant, if there was one.
---@return string?
local function latest_call()
  for _, call in ipairs(core.get().executor.history.list(100)) do
    if call.client and not OURS[call.client] then
      return ('%s has called %s: the setup is complete'):format(call.client, call.name)
    end
  end
end

local run

local function connect()
  connect_client('', false, nil, function(advice)
    facts.advice = advice
    run()
  end)
end

---@param has_python boolean
---@return mcp-tools.WelcomeStep
local function client(has_python)
  if not has_python then
    return { 'waits', 'needs Python' }
  elseif facts.fault then
    local function again()
      facts.fault, facts.clients = nil, nil
    end
    return { 'fault', facts.fault, hint = '<CR> tries again', act = again }
  elseif not facts.clients then
    if not facts.looking then
      facts.looking = true
      clients.run({ 'clients' }, function(found, fault)
        facts.looking, facts.clients, facts.fault = nil, found, fault
      end)
    end
    return { 'busy', 'looking for installed clients …' }
  end
  local installed, connected = {}, {}
  for _, each in ipairs(facts.clients) do
    local list = each.state == 'connected' and connected or each.installed and installed or {}
    table.insert(list, each.title)
  end
  if #connected > 0 then
    return { 'done', table.concat(connected, ', '), more = facts.advice }
  elseif latest_call() then
    return { 'done', 'connected by hand' }
  elseif #installed > 0 then
    local hint = '<CR> connects one; or :McpTools terminal AGENT starts one that needs no connection'
    return { 'todo', 'found: ' .. table.concat(installed, ', '), hint = hint, act = connect }
  end
  local hint = ':McpTools endpoint shows what any other client needs; <CR> connects one anyway'
  return { 'todo', ('none of the %d known clients is installed'):format(#facts.clients), hint = hint, act = connect }
end

local function try()
  local registry, started_at = core.get().registry, vim.uv.hrtime()
  local name = vim.iter(TRIES):find(function(each)
    return registry:find_tool(each) ~= nil
  end)
  if not name then
    facts.test = { 'fault', ('none of %s is on'):format(table.concat(TRIES, ', ')) }
    return
  end
  facts.test = { 'busy', ('calling %s …'):format(name) }
  clients.run({ 'call', name, '{}', '--instance', tostring(vim.uv.os_getpid()) }, function(result, fault)
    local ms = (vim.uv.hrtime() - started_at) / 1e6
    if result and not result.isError then
      facts.test = { 'done', ('%s answered through client and bridge in %d ms'):format(name, ms) }
    else
      local message = result and vim.tbl_get(result, 'content', 1, 'text') or fault or 'no answer'
      facts.test = { 'fault', ('%s: %s'):format(name, message), act = try }
    end
  end)
end

---@return { [1]: string, [2]: mcp-tools.WelcomeStep }[]
local function steps()
  local has_python = python()[1] == 'done'
  local bridge_step, call = running(has_python), latest_call()
  local is_ready = bridge_step[1] == 'done'
  local test = facts.test
    or is_ready and { 'todo', 'a call, as an assistant would make it', hint = '<CR> calls a tool through the bridge' }
    or { 'waits', 'a call, as an assistant would make it' }
  test.act = test[1] == 'todo' and try or test.act
  local turn = call and { 'done', call }
    or is_ready and { 'todo', 'start your assistant in this directory, and say:', more = PROMPT }
    or { 'waits', 'ask your assistant' }
  return {
    { 'Options', options() },
    { 'Python', python() },
    { 'Bridge', bridge_step },
    { 'Client', client(has_python) },
    { 'Try it', test },
    { 'Your turn', turn },
  }
end

--- Returns the next step: the first that is not done, nil while one is busy.
---@param list { [1]: string, [2]: mcp-tools.WelcomeStep }[]
---@return mcp-tools.WelcomeStep?
local function next_of(list)
  for _, each in ipairs(list) do
    local state = each[2][1]
    if state == 'busy' then
      return nil
    elseif state == 'todo' or state == 'fault' then
      return each[2]
    end
  end
end

---@return string[]
local function lines()
  local list = steps()
  local now, out = next_of(list), { 'The steps to the first call by an assistant:', '' }
  facts.row = nil
  for i, each in ipairs(list) do
    local step = each[2]
    local mark = step == now and step[1] == 'todo' and '→' or MARKS[step[1]]
    table.insert(out, ('  %s %d %-9s  %s'):format(mark, i, each[1], sanitize.line(step[2])))
    for _, text in ipairs({ step.more or '', step == now and step.hint or '' }) do
      table.insert(out, text ~= '' and INDENT .. sanitize.line(text) or nil)
    end
    facts.row = step == now and #out or facts.row
  end
  return vim.list_extend(out, { '', '  Any time: :McpTools status, :checkhealth mcp-tools, :h mcp-tools-errors' })
end

local function act()
  local step = next_of(steps())
  if step and step.act then
    step.act()
  elseif step and step.more == PROMPT then
    notify.info('type the sentence below step 6 into your assistant')
  elseif step then
    notify.info('<CR> cannot do this step', 'Follow the hint below it')
  end
end

function run()
  -- Clients may have been connected, disconnected or installed since the window was last open.
  facts.clients, facts.fault = nil, nil
  facts.test = facts.test and facts.test[1] ~= 'fault' and facts.test or nil
  scratch.show('welcome', lines, {
    every = REFRESH,
    at = function() -- the advice on a client may be longer than the window
      return facts.row
    end,
    keys = {
      { lhs = '<CR>', word = 'do the next step', description = 'do the next step', run = act },
    },
  })
  vim.wo[0][0].breakindentopt = ('column:%d'):format(#INDENT + 4) -- below the text of its step
end

---@type table<string, mcp-tools.Subcommand>
local M = {}

M.welcome = {
  description = 'set up everything for the first call by an assistant: check options, Python, bridge and client, do the'
    .. ' missing steps with `<CR>`, and make a test call',
  run = run,
}

return M

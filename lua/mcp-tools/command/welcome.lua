--- `:McpTools welcome`: a checklist that leads to the first call by an assistant.

local autostart = require('mcp-tools.bridge.autostart')
local bridge = require('mcp-tools.bridge')
local clients = require('mcp-tools.bridge.clients')
local connect_client = require('mcp-tools.command.clients').connect.run
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local install = require('mcp-tools.bridge.install')
local interpreter = require('mcp-tools.bridge.interpreter')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')

local REFRESH = 250 -- ms
--- As far as the text of a step.
local INDENT = (' '):rep(17)
local MARKS = { done = '✓', todo = '·', busy = '…', waits = ' ', fault = '✗' }
--- Callers that are no assistant: this editor, and the command of the try.
local OURS = { nvim = true, cli = true, ['mcp-tools'] = true }
local SETUP = 'require("mcp-tools").setup({ tools = "recommended" })'
local PROMPT = 'Use the nvim tools and tell me what I am looking at.'
--- Tools for a try, the first that is there: they only read, and need no argument.
local TRIES = { 'editor_state', 'buffer_list', 'bridge_status' }

---@class mcp-tools.WelcomeStep
---@field [1] 'done'|'todo'|'busy'|'waits'|'fault' `waits`: for an earlier one
---@field [2] string
---@field hint? string what can be done, once it is next
---@field act? fun() does it

--- What the window has found out so far.
---@class mcp-tools.WelcomeFacts
---@field clients? table[] as `mcp-tools clients` reports
---@field fault? string why there are none
---@field looking? boolean
---@field test? mcp-tools.WelcomeStep
local facts = {}

---@return mcp-tools.WelcomeStep
local function options()
  local tools, refusal = config.get('tools'), config.refusal()
  if refusal then
    local hint = 'correct them in your configuration, and start Neovim again'
    return { 'fault', refusal:gsub('%s+', ' '), hint = hint }
  elseif config.is_setup() and (tools ~= nil or next(core.registry().entries.tools)) then
    return { 'done', type(tools) == 'string' and ('tools = "%s"'):format(tools) or 'tools are named' }
  end
  return {
    'todo',
    config.is_setup() and 'no tool is offered: `tools` is not set' or 'setup() was not called',
    hint = ('put %s into your configuration; <CR> does it for this once'):format(SETUP),
    act = function()
      require('mcp-tools').setup({ tools = 'recommended' }) -- by name: the public way, as a user would
    end,
  }
end

---@return mcp-tools.WelcomeStep
local function python()
  local status = bridge.status()
  local own = config.get('bridge.command') ~= nil and 'bridge.command'
    or config.get('bridge.python') ~= nil and 'bridge.python'
  local fault = not own and interpreter.environment_fault() or own and status.state == 'failed' and status.fault or nil
  if install.is_running() or (fault and fault.under_way) then
    return { 'busy', 'is being installed; :McpTools log has the details' }
  elseif not fault then
    return {
      'done',
      status.python_version and 'Python ' .. status.python_version or own and own .. ' is set' or 'is there',
    }
  end
  local failed = install.last_error()
  return {
    failed and 'fault' or 'todo',
    failed or fault.message,
    hint = fault.needs_install and '<CR> installs it: about 20 MB, into an environment of its own' or fault.advice,
    act = fault.needs_install and function()
      bridge.install({})
    end,
  }
end

---@param has_python boolean
---@return mcp-tools.WelcomeStep
local function running(has_python)
  local status, hindrance = bridge.status(), autostart.hindrance()
  if status.state == 'ready' then
    return { 'done', ('ready: %s'):format(status.url) }
  elseif not has_python then
    return { 'waits', 'starts when Python is there' }
  elseif status.state == 'stopped' then
    local why = hindrance and ': ' .. hindrance or ''
    return { 'todo', 'does not run' .. why, hint = '<CR> starts it', act = bridge.start }
  elseif status.state == 'failed' then
    local hint = ('%s; <CR> tries again'):format(status.to_do or 'see :McpTools log')
    return { 'fault', status.last_error or 'it does not run', hint = hint, act = bridge.start }
  end
  return { 'busy', 'starting …' }
end

--- Who has called a tool, and which.
---@return string?
local function caller()
  for _, call in ipairs(core.get().history.list(100)) do
    if call.client and not OURS[call.client] then
      return ('%s has called %s: you are there'):format(call.client, call.name)
    end
  end
end

local run

local function connect()
  connect_client('', false, nil, function()
    facts.clients = nil
    run()
  end)
end

---@param has_python boolean
---@return mcp-tools.WelcomeStep
local function client(has_python)
  if not has_python then
    return { 'waits', 'is looked for when Python is there' }
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
    return { 'busy', 'looking for those that are installed …' }
  end
  local installed, connected = {}, {}
  for _, each in ipairs(facts.clients) do
    local list = each.state == 'connected' and connected or each.installed and installed or {}
    table.insert(list, each.title)
  end
  if #connected > 0 then
    return { 'done', table.concat(connected, ', ') }
  elseif caller() then
    return { 'done', 'one that was connected by hand' }
  elseif #installed > 0 then
    local hint = '<CR> connects one; what is to be written is shown first'
    return { 'todo', 'found: ' .. table.concat(installed, ', '), hint = hint, act = connect }
  end
  local hint = ':McpTools endpoint shows what any other needs; <CR> connects one all the same'
  return { 'todo', ('none of the %d that are known is installed'):format(#facts.clients), hint = hint, act = connect }
end

local function try()
  local registry, began = core.get().registry, vim.uv.hrtime()
  local name = vim.iter(TRIES):find(function(each)
    return registry:find_tool(each) ~= nil
  end)
  if not name then
    facts.test = { 'fault', ('none of %s is offered'):format(table.concat(TRIES, ', ')) }
    return
  end
  facts.test = { 'busy', ('calling %s …'):format(name) }
  clients.run({ 'call', name, '{}', '--instance', tostring(vim.uv.os_getpid()) }, function(result, fault)
    local ms = (vim.uv.hrtime() - began) / 1e6
    if result and not result.isError then
      facts.test = { 'done', ('%s has answered, through client and bridge, in %d ms'):format(name, ms) }
    else
      local said = result and vim.tbl_get(result, 'content', 1, 'text') or fault or 'no answer'
      facts.test = { 'fault', ('%s: %s'):format(name, said), act = try }
    end
  end)
end

---@return { [1]: string, [2]: mcp-tools.WelcomeStep }[]
local function steps()
  local has_python = python()[1] == 'done'
  local bridge_step, who = running(has_python), caller()
  local is_ready = bridge_step[1] == 'done'
  local test = facts.test
    or is_ready and { 'todo', 'a call, as an assistant would make it', hint = '<CR> calls a tool through the bridge' }
    or { 'waits', 'a call, as an assistant would make it' }
  test.act = test[1] == 'todo' and try or test.act
  local turn = who and { 'done', who }
    or is_ready and { 'todo', 'start your assistant in this folder, and say:', more = PROMPT }
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

--- The step that is next: the first that is not done and can be.
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
  local now, out = next_of(list), { 'From here to the first call by an assistant:', '' }
  for i, each in ipairs(list) do
    local step = each[2]
    local mark = step == now and step[1] == 'todo' and '→' or MARKS[step[1]]
    table.insert(out, ('  %s %d %-9s  %s'):format(mark, i, each[1], sanitize.line(step[2])))
    for _, text in ipairs({ step.more or '', step == now and step.hint or '' }) do
      table.insert(out, text ~= '' and INDENT .. sanitize.line(text) or nil)
    end
  end
  return vim.list_extend(out, { '', '  Any time: :McpTools status, :checkhealth mcp-tools, :h mcp-tools-errors' })
end

local function act()
  local step = next_of(steps())
  if step and step.act then
    step.act()
  end
end

function run()
  scratch.show('welcome', lines, {
    every = REFRESH,
    keys = {
      { lhs = '<CR>', word = 'does what is next', description = 'do what is next', run = act },
    },
  })
  vim.wo[0][0].breakindentopt = ('column:%d'):format(#INDENT + 4) -- below the text of its step
end

---@type table<string, mcp-tools.Subcommand>
local M = {}

M.welcome = {
  description = 'lead to the first call by an assistant: options, Python, bridge and client are checked, `<CR>` does'
    .. ' what is missing, and a call is tried',
  run = run,
}

return M

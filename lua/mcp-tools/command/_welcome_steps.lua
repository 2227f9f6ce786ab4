--- The steps to the first call by an assistant: how far each is, and what does it.
---
--- Receives: what is known of options, Python, bridge and clients. Sends: a list of steps, made anew each time.
--- Does not know about: how they are shown.

local autostart = require('mcp-tools.bridge.autostart')
local bridge = require('mcp-tools.bridge')
local clients = require('mcp-tools.bridge.clients')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local install = require('mcp-tools.bridge.install')
local interpreter = require('mcp-tools.bridge.interpreter')
local log = require('mcp-tools.log')
local trim = require('mcp-tools.util.trim')

local M = {}

---@class mcp-tools.WelcomeStep
---@field title string
---@field state 'done'|'todo'|'busy'|'waits'|'fault' `waits`: for an earlier one
---@field text string
---@field more? string goes on below the text
---@field hint? string what can be done, once it is next
---@field act? fun() does it

--- What the window has found out so far; each function writes into it.
---@class mcp-tools.WelcomeFacts
---@field clients? table[] as `mcp-tools clients` tells
---@field clients_fault? string
---@field looking? boolean
---@field advice? string of the client that was connected last
---@field proposal? { client: table, diff: string } a change that waits for a yes
---@field test? { state: 'done'|'busy'|'fault', text: string }
---@field caller? string who has called a tool, and which

local SETUP = 'require("mcp-tools").setup({ tools = "recommended" })'
local PROMPT = 'Use the nvim tools and tell me what I am looking at.'
--- Tools for a try, the first that is there: they only read, and need no argument.
local TRIES = { 'editor_state', 'buffer_list', 'bridge_status' }

--- Characters of an installation's line that are shown: a list of packages fills the screen.
local LINE = 48

---@return mcp-tools.WelcomeStep
local function options()
  local step = { title = 'Options', state = 'todo' }
  local tools, refusal = config.get('tools'), config.refusal()
  if refusal then
    step.state, step.text = 'fault', refusal:gsub('%s+', ' ')
    step.hint = 'correct them in your configuration, and start Neovim again'
  elseif not config.is_setup() or (tools == nil and next(core.registry().entries.tools) == nil) then
    step.text = config.is_setup() and 'no tool is offered: `tools` is not set' or 'setup() was not called'
    step.hint = ('put %s into your configuration; <CR> does it for this once'):format(SETUP)
    step.act = function()
      require('mcp-tools').setup({ tools = 'recommended' }) -- by name: the public way, as a person would
    end
  else
    step.state = 'done'
    step.text = type(tools) == 'string' and ('tools = "%s"'):format(tools) or 'tools are named'
  end
  return step
end

--- The last line that an installation has said.
---@return string
local function install_line()
  local lines = log.lines(20)
  for i = #lines, 1, -1 do
    local text = lines[i]:match('install: (.*)')
    if text then
      return vim.fn.strcharpart(trim(text), 0, LINE)
    end
  end
  return 'working …'
end

---@return mcp-tools.WelcomeStep
local function python()
  local step = { title = 'Python', state = 'done' }
  local status = bridge.status()
  local own = config.get('bridge.command') ~= nil and 'bridge.command'
    or config.get('bridge.python') ~= nil and 'bridge.python'
  local fault = not own and interpreter.environment_fault() or own and status.state == 'failed' and status.fault or nil
  if install.is_running() or (fault and fault.under_way) then
    step.state, step.text = 'busy', 'installing: ' .. install_line()
  elseif not fault then
    step.text = status.python_version and ('Python %s'):format(status.python_version)
      or own and own .. ' is set'
      or 'is there'
  else
    step.state, step.text = install.last_error() and 'fault' or 'todo', install.last_error() or fault.message
    step.hint = fault.advice
    if fault.needs_install then
      step.hint = '<CR> installs it: about 20 MB, into an environment of its own'
      step.act = function()
        bridge.install({})
      end
    end
  end
  return step
end

---@param ready boolean is Python there?
---@return mcp-tools.WelcomeStep
local function running(ready)
  local status, hindrance = bridge.status(), autostart.hindrance()
  local step = { title = 'Bridge', state = 'waits', text = 'starts when Python is there' }
  if status.state == 'ready' then
    step.state, step.text = 'done', ('ready: %s'):format(status.url)
  elseif ready and status.state == 'stopped' then
    step.state, step.text = 'todo', 'does not run' .. (hindrance and (': ' .. hindrance) or '')
    step.hint = '<CR> starts it'
    step.act = bridge.start
  elseif ready and status.state == 'failed' then
    step.state, step.text = 'fault', status.last_error or 'it does not run'
    step.hint = ('%s; <CR> tries again'):format(status.to_do or 'see :McpTools log')
    step.act = bridge.start
  elseif ready then
    step.state, step.text = 'busy', 'starting …'
  end
  return step
end

--- Asks which clients there are, once.
---@param facts mcp-tools.WelcomeFacts
local function look_for_clients(facts)
  facts.looking = true
  clients.run({ 'clients' }, function(found, fault)
    facts.looking, facts.clients, facts.clients_fault = nil, found, fault
  end)
end

--- Shows what would be written for a client.
---@param facts mcp-tools.WelcomeFacts
---@param client table
local function propose(facts, client)
  clients.run({ 'connect', '--dry-run', client.name }, function(answer, fault)
    facts.clients_fault = fault
    if answer and answer.needed then
      facts.proposal = { client = client, diff = answer.diff }
    end
  end)
end

--- Writes it. What is another by now than what was agreed to is shown again.
---@param facts mcp-tools.WelcomeFacts
function M.agree(facts)
  local client, shown = facts.proposal.client, facts.proposal.diff
  facts.proposal = nil
  clients.run({ 'connect', '--yes', '--shown', vim.fn.sha256(shown), client.name }, function(answer, fault)
    if answer and answer.needed and not answer.written then
      return propose(facts, client)
    end
    facts.clients, facts.clients_fault, facts.advice = nil, fault, answer and answer.advice
  end)
end

---@param facts mcp-tools.WelcomeFacts
---@param installed table[]
local function choose(facts, installed)
  local list = #installed > 0 and installed or facts.clients or {}
  vim.ui.select(list, {
    prompt = 'connect which client?',
    format_item = function(client)
      return client.title
    end,
  }, function(client)
    if client then
      propose(facts, client)
    end
  end)
end

---@param list table[]
---@return string
local function titles(list)
  return table.concat(
    vim.tbl_map(function(client)
      return client.title
    end, list),
    ', '
  )
end

---@param facts mcp-tools.WelcomeFacts
---@param ready boolean
---@return mcp-tools.WelcomeStep
local function client(facts, ready)
  local step = { title = 'Client', state = 'waits', text = 'is looked for when Python is there' }
  if not ready then
    return step
  elseif facts.clients_fault then
    step.state, step.text, step.hint = 'fault', facts.clients_fault, '<CR> tries again'
    step.act = function()
      facts.clients_fault, facts.clients = nil, nil
    end
    return step
  elseif not facts.clients then
    step.state, step.text = 'busy', 'looking for those that are installed …'
    if not facts.looking then
      look_for_clients(facts)
    end
    return step
  end
  local installed, connected = {}, {}
  for _, each in ipairs(facts.clients) do
    table.insert(each.state == 'connected' and connected or each.installed and installed or {}, each)
  end
  step.act = function()
    choose(facts, installed)
  end
  if #connected > 0 then
    step.state, step.text = 'done', titles(connected) .. (facts.advice and '. ' .. facts.advice or '')
  elseif facts.caller then
    step.state, step.text = 'done', 'one that was connected by hand'
  elseif #installed > 0 then
    step.state, step.text = 'todo', 'found: ' .. titles(installed)
    step.hint = '<CR> connects one; what is to be written is shown first'
  else
    step.state, step.text = 'todo', ('none of the %d that are known is installed'):format(#facts.clients)
    step.hint = ':McpTools endpoint shows what any other needs; <CR> connects one all the same'
  end
  return step
end

--- A tool that can be called for a try.
---@return string?
local function tool_for_a_try()
  local registry = core.get().registry
  for _, name in ipairs(TRIES) do
    if registry:find_tool(name) then
      return name
    end
  end
  for _, tool in ipairs(registry:list('tools')) do
    local schema = tool.input_schema or {}
    if tool.annotations and tool.annotations.read_only and #(schema.required or {}) == 0 then
      return tool.name
    end
  end
end

---@param facts mcp-tools.WelcomeFacts
local function try(facts)
  local name, began = tool_for_a_try(), vim.uv.hrtime()
  if not name then
    facts.test = { state = 'fault', text = 'no tool is there that only reads and needs no argument' }
    return
  end
  facts.test = { state = 'busy', text = ('calling %s …'):format(name) }
  clients.run({ 'call', name, '{}', '--instance', tostring(vim.uv.os_getpid()) }, function(result, fault)
    local ms = (vim.uv.hrtime() - began) / 1e6
    if result and not result.isError then
      facts.test = { state = 'done', text = ('%s has answered, through client and bridge, in %d ms'):format(name, ms) }
    else
      local said = result and vim.tbl_get(result, 'content', 1, 'text') or fault or 'no answer'
      facts.test = { state = 'fault', text = ('%s: %s'):format(name, said) }
    end
  end)
end

---@param facts mcp-tools.WelcomeFacts
---@param ready boolean
---@return mcp-tools.WelcomeStep
local function test(facts, ready)
  local step = { title = 'Try it', state = 'waits', text = 'a call, as an assistant would make it' }
  if facts.test then
    step.state, step.text = facts.test.state, facts.test.text
  elseif ready then
    step.state, step.hint = 'todo', '<CR> calls a tool through the bridge'
  end
  if ready then
    step.act = function()
      try(facts)
    end
  end
  return step
end

---@param facts mcp-tools.WelcomeFacts
---@param ready boolean
---@return mcp-tools.WelcomeStep
local function assistant(facts, ready)
  local step = { title = 'Your turn', state = 'waits', text = 'ask your assistant' }
  if facts.caller then
    step.state, step.text = 'done', facts.caller
  elseif ready then
    step.state, step.text = 'todo', 'start your assistant in this folder, and say:'
    step.more = PROMPT
  end
  return step
end

--- Every step as it is now.
---@param facts mcp-tools.WelcomeFacts
---@return mcp-tools.WelcomeStep[]
function M.look(facts)
  local first, second = options(), python()
  local has_python = second.state == 'done'
  local third = running(has_python)
  local is_ready = third.state == 'done'
  return { first, second, third, client(facts, has_python), test(facts, is_ready), assistant(facts, is_ready) }
end

return M

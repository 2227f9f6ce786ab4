-- every Neovim
-- `:McpTools send` and `:McpTools terminal`, with a made-up bridge and a made-up agent.

local agents = require('agent_sessions')
local bridge = require('mcp-tools.bridge')
local config = require('mcp-tools.config')
local our_agents = require('mcp-tools.agents')
local notifications = require('notifications')
local project = require('editor_project')
local t = require('helpers')

local HERE = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2))
local FAKE = vim.fs.normalize(vim.fs.joinpath(HERE, '..', 'fixtures', 'fake_bridge.py'))

local session, file, path

vim.g.loaded_mcp_tools = nil
vim.cmd('runtime plugin/mcp-tools.lua')

--- Creates an agent that prints its arguments and then its input.
local function program(name, text)
  local directory = vim.fn.tempname()
  vim.fn.mkdir(directory, 'p')
  vim.fn.writefile({ '#!/bin/sh', text, 'exec cat' }, directory .. '/' .. name)
  vim.uv.fs_chmod(directory .. '/' .. name, tonumber('755', 8))
  vim.env.PATH = directory .. ':' .. path
end

local function screen() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '') end

local function comes(text)
  local ok = pcall(t.wait, function() return screen():find(text, 1, true) end, 5000)
  t.ok(ok, ('there is no %q in %s; %s'):format(text, screen(), notifications.text()))
end

local function start()
  bridge.start()
  t.wait(function() return bridge.status().state == 'ready' end, 5000, 'a bridge that is ready')
end

before_each(function()
  path = vim.env.PATH
  project.open()
  notifications.collect()
  vim.env.FAKE_REPORT = vim.fn.tempname()
  config.setup({ bridge = { command = { 'python3', FAKE, 'ready' } }, agents = { 'claude', 'gemini' } })
  our_agents.follow()
  file = project.write('a.txt', 'one\ntwo\nthree\n')
  vim.cmd('silent edit ' .. file)
end)

after_each(function()
  vim.env.PATH = path
  if session then
    agents.close(session)
    session = nil
  end
  vim.cmd('silent! %bwipeout!')
  bridge.stop()
  t.wait(function() return bridge.status().state == 'stopped' end, 5000)
  project.close()
end)

describe(':McpTools send', function()
  it('mentions the file, a range or the selection', function()
    session = agents.open('claude', 'claude-code')
    vim.cmd('McpTools send')
    t.eq({ 'at_mentioned', { filePath = file } }, session.pushed[1])
    vim.cmd('2,3McpTools send')
    t.eq({ 'at_mentioned', { filePath = file, lineStart = 1, lineEnd = 2 } }, session.pushed[2])
    vim.api.nvim_feedkeys(vim.keycode('ggV<Plug>(mcp-tools-send)<Esc>'), 'xt', false)
    t.eq({ 'at_mentioned', { filePath = file, lineStart = 0, lineEnd = 0 } }, session.pushed[3])
  end)

  it('lets the user choose between several agents', function()
    session = agents.open('claude', 'claude-code')
    local other = agents.open('claude', 'opencode')
    local real = vim.ui.select
    vim.ui.select = function(items, opts, on_choice)
      t.eq({ 'claude-code 1', 'opencode 1' }, vim.tbl_map(opts.format_item, items))
      on_choice(items[2])
    end
    vim.cmd('McpTools send')
    vim.ui.select = real
    t.eq({ 0, 1 }, { #session.pushed, #other.pushed })
    agents.close(other)
  end)

  it('reports why it cannot', function()
    vim.cmd('McpTools send')
    notifications.wait('no agent is connected')
    session = agents.open('gemini', 'gemini')
    vim.cmd('McpTools send')
    notifications.wait('gemini 1 does not accept mentions')
    vim.b.sensitive = true
    vim.cmd('McpTools send')
    notifications.wait('nothing to mention')
    vim.cmd('1McpTools status')
    notifications.wait('does not accept a range')
  end)
end)

describe(':McpTools terminal', function()
  it('passes an agent our tools by flags and environment, and the token only in a private file', function()
    start()
    program('claude', 'echo "args: $*"; cat "$2"')
    vim.cmd('McpTools terminal claude --verbose')
    comes('"Authorization"')
    local text = screen()
    t.ok(text:find(bridge.get_auth_token(), 1, true))
    local given, more = text:match('args: %-%-mcp%-config (%S-%.json) (%-%-verbose)')
    t.eq('--verbose', more)
    t.eq('600', ('%o'):format(bit.band(vim.uv.fs_stat(given).mode, tonumber('777', 8))))
    t.ok(vim.startswith(vim.uv.fs_realpath(given), vim.fs.dirname(vim.uv.fs_realpath(vim.fs.dirname(given)))))
  end)

  it('lets it run bundled read-only tools if the option agent_permissions is set', function()
    config.setup({ agent_permissions = true, tools = { 'file_read', 'file_write' }, approval = { default = 'allow' } })
    start()
    program('claude', 'echo "args: $*."')
    vim.cmd('McpTools terminal claude')
    notifications.wait('claude asks for all tools: approval.default is "allow"')
    comes('.json.')
    vim.cmd('bwipeout!')
    config.change({ approval = { default = 'ask' } })
    vim.cmd('McpTools terminal claude')
    comes('--allowedTools=mcp__nvim-tools__nvim_file_read.')
  end)

  it('types a prompt into it, and leaves Enter to the user', function()
    start()
    program('gemini', 'echo started')
    vim.cmd('McpTools terminal gemini')
    comes('started')
    local window = vim.api.nvim_get_current_win()
    vim.cmd('stopinsert | wincmd p')
    session = agents.open('gemini', 'streamable-http-client')
    vim.cmd('2McpTools send explain this')
    vim.api.nvim_set_current_win(window)
    comes('/a.txt lines 2-2 explain this')
  end)

  it('starts the bridge before the agent, also by the command of guill/mcp-tools.nvim for Amp', function()
    t.eq(0, vim.fn.exists(':AmpStartWithMCP'))
    require('mcp-tools').setup({ integrations = { ampcode = true } })
    program('amp', 'echo "args: $*"; cat "$3"')
    t.eq(false, bridge.is_running())
    vim.cmd('AmpStartWithMCP --no-color')
    t.wait(function() return vim.bo.buftype == 'terminal' end, 5000, 'a terminal')
    comes('"Authorization"')
    local text = screen()
    t.matches('args: %-%-ide %-%-mcp%-config %S-%.json %-%-no%-color', text)
    t.ok(text:find('"nvim-tools"', 1, true) and text:find(bridge.get_auth_token(), 1, true))
    t.eq('', notifications.text())
    vim.api.nvim_del_user_command('AmpStartWithMCP')
  end)

  it('reports why it cannot', function()
    vim.cmd('McpTools terminal')
    notifications.wait('which agent')
    vim.cmd('McpTools terminal nobody')
    notifications.wait("unknown agent 'nobody'")
    start()
    vim.env.PATH = '/nowhere'
    vim.cmd('McpTools terminal codex')
    notifications.wait('codex is not installed')
    vim.env.PATH = path
    t.eq(1, #vim.api.nvim_list_wins())
  end)
end)

it('acp_server() returns an entry for mcpServers, or an error', function()
  local acp_server = require('mcp-tools').acp_server
  local entry, err = acp_server()
  t.eq({ nil, 'busy' }, { entry, err.code })
  start()
  local endpoint = bridge.endpoint()
  entry = t.ok(acp_server({ transport = 'http' }))
  t.eq({ 'http', 'nvim-tools', endpoint.url }, { entry.type, entry.name, entry.url })
  entry, err = acp_server({ transport = 'pigeon' })
  t.eq({ nil, 'validation_error' }, { entry, err.code })
end)

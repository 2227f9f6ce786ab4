-- every Neovim
-- `:McpTools send` and `:McpTools terminal`, with a made-up bridge and a made-up agent.

local agents = require('agent_sessions')
local bridge = require('mcp-tools.bridge')
local config = require('mcp-tools.config')
local our_agents = require('mcp-tools.agents')
local notifications = require('notifications')
local project = require('editor_project')
local reviews = require('review_screen')
local t = require('helpers')

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

local function comes(text, bufnr)
  local function now() return table.concat(vim.api.nvim_buf_get_lines(bufnr or 0, 0, -1, false), '') end
  local ok = pcall(t.wait, function() return now():find(text, 1, true) end, 5000)
  t.ok(ok, ('there is no %q in %s; %s'):format(text, now(), notifications.text()))
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
  config.setup({
    bridge = { command = { 'python3', t.FIXTURES .. '/fake_bridge.py', 'ready' } },
    agents = { 'claude', 'gemini' },
  })
  our_agents.follow()
  file = project.edit('a.txt', 'one\ntwo\nthree\n')
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

--- Chooses the item with a label; returns all labels.
local function choosing(label, action)
  local real, offered = vim.ui.select, nil
  vim.ui.select = function(items, opts, choose)
    offered = vim.tbl_map(opts.format_item, items)
    choose(vim.iter(items):find(function(item) return opts.format_item(item) == label end))
  end
  action()
  vim.ui.select = real
  return offered
end

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

  it('applies a range to no other file', function()
    session = agents.open('claude', 'claude-code')
    vim.cmd('help | 2,3McpTools send')
    notifications.wait('nothing to mention')
    vim.api.nvim_feedkeys(vim.keycode('V<Plug>(mcp-tools-send)'), 'xt', false)
    vim.cmd('2,3McpTools type fix {diagnostics}')
    notifications.wait('no diagnostics here')
    t.eq({}, session.pushed)
    vim.cmd('McpTools send | helpclose')
    t.eq({ 'at_mentioned', { filePath = file } }, session.pushed[1])
    vim.fn.setqflist({ { filename = file }, { filename = project.root } })
    vim.cmd('copen')
    vim.api.nvim_feedkeys(vim.keycode('Vj<Plug>(mcp-tools-send)'), 'xt', false)
    t.eq(3, #session.pushed)
    vim.cmd('cclose')
  end)

  it('lets the user choose between several agents', function()
    session = agents.open('claude', 'claude-code')
    local other = agents.open('claude', 'opencode')
    local offered = choosing('opencode 1', function() vim.cmd('McpTools send') end)
    t.eq({ { 'claude-code 1', 'opencode 1' }, 0, 1 }, { offered, #session.pushed, #other.pushed })
    agents.close(other)
  end)

  it('mentions only lines that a file has', function()
    session = agents.open('claude', 'claude-code')
    local other = project.write('b.txt', 'one\ntwo\n')
    for _, line in ipairs({ '% 0', '% 3 2', '% 4', other .. ' 3 4', project.root .. ' 1' }) do
      notifications.collect()
      vim.cmd('McpTools add ' .. line)
      notifications.wait('no such lines: ' .. line)
    end
    vim.cmd('McpTools add % 2 999999')
    vim.cmd('McpTools add ' .. other .. ' 1 99999999999999999999')
    local mentions = vim.tbl_map(function(push) return { push[2].lineStart, push[2].lineEnd } end, session.pushed)
    t.eq({ { 1, 2 }, { 0, 1 } }, mentions)
  end)

  it('refuses a sensitive name whose file has another one', function()
    session = agents.open('claude', 'claude-code')
    local link = vim.fs.joinpath(project.root, '.env')
    vim.uv.fs_symlink(project.write('shared.conf', ''), link)
    vim.cmd('McpTools add ' .. link)
    notifications.wait('sensitive file')
    vim.fn.setqflist({ { filename = link } })
    vim.cmd('copen | 1McpTools send | cclose')
    t.eq({}, session.pushed)
  end)

  it('reports why it cannot', function()
    notifications.after('McpTools send', 'no agent is connected')
    local current = require('mcp-tools.bridge.current')
    current.reported.sessions = { count = 1, calls = 0, clients = { { name = 'codex-mcp-client' } } }
    vim.api.nvim_feedkeys(vim.keycode('ggV<Plug>(mcp-tools-send)'), 'xt!', false)
    current.reported.sessions = nil
    notifications.wait('codex-mcp-client accepts no selection. See :h mcp-tools-agents')
    t.eq('n', vim.fn.mode())
    session = agents.open('gemini', 'gemini')
    notifications.after('McpTools send', 'gemini 1 does not accept mentions')
    vim.b.sensitive = true
    notifications.after('McpTools send', 'nothing to mention')
    notifications.after('1McpTools status', 'does not accept a range')
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
    notifications.after('McpTools terminal claude', 'claude asks for all tools: approval.default is "allow"')
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
    project.write('x, @~/c.txt', '')
    vim.cmd('wincmd p')
    vim.cmd('McpTools add ' .. vim.fs.dirname(file) .. '/x, @~/c.txt')
    vim.api.nvim_set_current_win(window)
    comes([[/x\,\ @~/c.txt ]])
  end)

  it('lets it run no tool without asking where the directory in which it starts has a server of our name', function()
    local other = vim.fs.joinpath(project.base, 'other')
    project.write(other .. '/.mcp.json', '{"mcpServers": {"nvim-tools": {}}}')
    vim.uv.fs_symlink(other, vim.fs.joinpath(project.base, 'link'))
    config.setup({ agent_permissions = true, tools = { 'file_read', 'file_write' } })
    start()
    program('claude', 'echo "args: $*. in $PWD"')
    config.change({ terminal = { cwd = vim.fs.joinpath(project.base, 'link') } })
    vim.cmd('McpTools terminal claude')
    comes('.json. in ' .. project.base)
  end)

  it('of Claude Code gets no prompt for opencode, which uses the same endpoint', function()
    start()
    program('claude', 'echo started')
    vim.cmd('McpTools terminal claude')
    comes('started')
    vim.cmd('stopinsert | wincmd p')
    session = agents.open('claude', 'opencode')
    local labels
    local real = vim.ui.select
    vim.ui.select = function(items, opts) labels = vim.tbl_map(opts.format_item, items) end
    vim.cmd('McpTools send! delete the file')
    vim.ui.select = real
    t.eq('opencode 1', t.ok(labels)[1])
    t.eq(2, #labels)
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

  it('without a name is chosen among the installed ones, then hidden and shown', function()
    start()
    program('codex', 'echo "started"')
    vim.env.PATH = vim.env.PATH:match('^[^:]+') .. ':/usr/bin:/bin'
    vim.wo.number, vim.wo.relativenumber, vim.wo.signcolumn = true, true, 'yes'
    local select, offered = vim.ui.select, nil
    vim.ui.select = function(list, _, choose)
      offered = list
      choose(list[1])
    end
    vim.cmd('McpTools terminal')
    t.wait(function() return vim.bo.buftype == 'terminal' end, 5000, 'a terminal')
    comes('started')
    vim.ui.select, vim.env.PATH = select, path
    local window = vim.api.nvim_get_current_win()
    t.eq({ { 'codex' }, 2 }, { offered, #vim.api.nvim_list_wins() })
    t.eq({ false, false, 'no' }, { vim.wo.number, vim.wo.relativenumber, vim.wo.signcolumn })
    vim.cmd('McpTools terminal')
    t.eq({ false, 1 }, { vim.api.nvim_win_is_valid(window), #vim.api.nvim_list_wins() })
    vim.cmd('McpTools terminal')
    t.eq({ 'terminal', 2 }, { vim.bo.buftype, #vim.api.nvim_list_wins() })
  end)

  it('reports why it cannot', function()
    notifications.after('McpTools terminal nobody', "unknown agent 'nobody'")
    start()
    vim.env.PATH = '/nowhere'
    notifications.after('McpTools terminal codex', 'codex is not installed')
    vim.env.PATH = path
    t.eq(1, #vim.api.nvim_list_wins())
  end)
end)

--- Runs a subcommand, which may have a range before it.
local function run(command)
  local range, rest = command:match('^([%d,]*)(.*)$')
  vim.cmd(range .. 'McpTools ' .. rest)
end

--- The windows of the terminals of an agent.
local function terminals(name)
  return vim.tbl_filter(function(buffer) return vim.b[buffer].mcp_tools_terminal == name end, vim.api.nvim_list_bufs())
end

--- Sets options for terminals and a program of each name that prints its arguments.
local function prepare(options, ...)
  config.change({ terminal = options })
  for _, name in ipairs({ ... }) do
    program(name, 'echo "args: $*."')
    path = vim.env.PATH
  end
end

--- Starts a program without tools.
local function start_own(name, options)
  prepare(vim.tbl_extend('force', { commands = { [name] = { name } } }, options or {}), name)
  run('terminal ' .. name)
  comes('args: .')
  return vim.api.nvim_get_current_win()
end

describe('the window of a terminal', function()
  local function shape(position, size)
    local window = start_own('aider', { position = position, size = size })
    local layout = vim.fn.winlayout()
    local found = {
      vim.api.nvim_win_get_width(window),
      vim.api.nvim_win_get_height(window),
      layout[1] ~= 'leaf' and layout[1] .. (layout[2][1][2] == window and ' first' or ' last') or 'leaf',
      vim.api.nvim_win_get_config(window).relative,
    }
    vim.cmd('bwipeout!')
    return found
  end

  it('has the position and the size of the options', function()
    t.has({ 24, [3] = 'row last' }, shape('right', 30)) -- of 80 columns and 24 lines
    t.has({ 24, [3] = 'row first' }, shape('left', 30))
    t.has({ [2] = 7, [3] = 'col last' }, shape('below', 30))
    t.has({ [2] = 4, [3] = 'col first' }, shape('above', 20))
    t.eq({ 72, 21, 'leaf', 'editor' }, shape('float', 90))
    t.has({ [2] = 12, [3] = 'col last' }, shape('auto', 50))
  end)

  it('of an agent is shown and hidden by its name, and another one is started with ! or arguments', function()
    start_own('aider')
    vim.o.hidden = false
    run('terminal aider')
    vim.o.hidden = true
    t.eq({ 1, 1 }, { #vim.api.nvim_list_wins(), #terminals('aider') })
    run('terminal aider')
    t.eq({ 2, 1 }, { #vim.api.nvim_list_wins(), #terminals('aider') })
    run('terminal aider --resume')
    comes('args: --resume.')
    local second = vim.api.nvim_get_current_buf()
    run('terminal! aider')
    comes('args: .')
    t.eq(3, #terminals('aider'))
    vim.api.nvim_set_current_win(vim.fn.bufwinid(second))
    run('terminal aider')
    t.eq(-1, vim.fn.bufwinid(second))
    vim.b[second].term_title = 'fix the tests'
    local offered = choosing('aider: fix the tests', function() run('terminal!') end)
    t.ok(vim.list_contains(offered, 'start aider'))
    t.eq(second, vim.api.nvim_get_current_buf())
  end)

  it('gets the focus, and is hidden only from there, unless it is the only one', function()
    local window = start_own('aider')
    vim.cmd('only')
    run('focus')
    notifications.wait('the terminal cannot be hidden')
    vim.cmd('new')
    run('focus')
    t.eq(window, vim.api.nvim_get_current_win())
    run('focus aider')
    t.eq({ false, 1 }, { vim.api.nvim_win_is_valid(window), #vim.api.nvim_list_wins() })
    run('focus')
    t.eq({ 'terminal', 2 }, { vim.bo.buftype, #vim.api.nvim_list_wins() })
  end)

  it('floats over no review that the user enters, and is shown again after it', function()
    start_own('aider', { position = 'float', size = 100 })
    local buffer = vim.api.nvim_get_current_buf()
    reviews.ends = {}
    reviews.open({ { path = project.root .. '/new.txt', text = 'one\n', is_new = true } })
    run('review')
    t.eq(-1, vim.fn.bufwinid(buffer))
    t.wait(function()
      reviews.press('y')
      return reviews.ends[1]
    end, 5000, 'the end of the review')
    t.eq({ buffer, 'editor' }, { vim.api.nvim_get_current_buf(), vim.api.nvim_win_get_config(0).relative })
  end)

  it('closes when the agent has ended without an error, unless the option forbids it', function()
    local function ends(code, auto_close)
      prepare({ auto_close = auto_close, commands = { brief = { 'sh', '-c', 'read line; exit ' .. code } } })
      run('terminal brief')
      local buffer = vim.api.nvim_get_current_buf()
      run('type! now')
      t.wait(function() return #require('mcp-tools.agents.terminal').list('brief') == 0 end, 5000, 'the end')
      vim.wait(50)
      local stays = vim.api.nvim_buf_is_valid(buffer)
      vim.cmd('silent! bwipeout! ' .. buffer)
      return stays
    end
    t.eq({ false, true, true }, { ends(0, true), ends(1, true), ends(0, false) })
  end)
end)

describe('the options of a terminal', function()
  it('set its command, environment and directory', function()
    start()
    program('mine', 'echo "$0 $* $WORD $PWD"')
    local directory = vim.uv.fs_realpath(vim.fs.dirname(vim.fn.tempname()))
    local own = vim.fn.exepath('mine')
    local cwd = function() return directory end
    config.change({ terminal = { commands = { claude = { own, '--first' } }, env = { WORD = 'hello' }, cwd = cwd } })
    run('terminal claude --last')
    comes('--last hello ' .. directory)
    t.matches('mine %-%-first %-%-mcp%-config %S+%.json %-%-last', screen())
    config.change({ terminal = { cwd = '/nowhere/at/all' } })
    notifications.after('McpTools terminal! claude', 'cannot be started')
    config.change({ terminal = { cwd = function() error('no root') end } })
    notifications.after('McpTools terminal! claude', 'no root')
  end)

  it('open it elsewhere, with no secret or variable of the user in the command and the environment', function()
    config.change({ agents = our_agents.names() })
    our_agents.follow()
    start()
    local given = {}
    local function open(command, env, cwd) given = { command = command, env = env, cwd = cwd } end
    prepare({ open = open, env = { PGPASSWORD = 'a1B2', IT = "isn't" } }, unpack(our_agents.names()))
    for _, name in ipairs(our_agents.names()) do
      given = {}
      run('terminal ' .. name .. ' --last')
      t.wait(function() return given.command end, 5000, name)
      t.eq({ vim.fn.getcwd(), '--last' }, { given.cwd, given.command[#given.command] })
      local public = vim.inspect(given)
      t.eq(public, require('mcp-tools.util.secrets').text(require('mcp-tools.log').strip(public)))
      t.ok(not public:find(bridge.get_auth_token(), 1, true) and not public:find('a1B2', 1, true))
      local shown = vim.system(given.command, { env = given.env, text = true }):wait()
      t.eq({ 0, nil }, { shown.code, given.env.IT })
      t.matches('args: .*%-%-last%.', shown.stdout)
    end
    local line = vim.list_extend(vim.list_slice(given.command, 1, 4), { 'sh', '-c', 'echo "$PGPASSWORD $IT"' })
    t.eq("a1B2 isn't\n", vim.system(line, { env = given.env, text = true }):wait().stdout)
    t.eq({ 'sh', 1 }, { given.command[1], #vim.api.nvim_list_wins() })
    prepare({ open = function() error('no tmux') end })
    notifications.after('McpTools terminal claude', 'claude cannot be started: ')
    t.matches('no tmux', notifications.text())
  end)

  it('let a function return the buffer of a terminal, which then can be hidden and gets text', function()
    local function open()
      t.terminal()
      return vim.api.nvim_get_current_buf()
    end
    prepare({ open = open, commands = { aider = { 'cat' } } })
    run('terminal aider')
    run('type over there')
    comes('over there')
    run('terminal')
    t.ok(vim.bo.buftype ~= 'terminal')
  end)

  it('open it in tmux or kitty by the functions in the help', function()
    local help =
      table.concat(vim.fn.readfile(vim.api.nvim_get_runtime_file('doc/mcp-tools-clients.txt', false)[1]), '\n')
    local recipes = vim.split(help:match('%*mcp%-tools%-terminal%-open%*(.-)\n  +%*'), '>lua\n')
    local out = vim.fn.tempname()
    local function opens(recipe, name)
      prepare({ commands = { aider = { 'aider', 'a b' } }, env = { WORD = 'x y' } }, 'aider')
      program(name, ('printf "%%s|" "$@" "WORD=$WORD" > %s.tmp; mv %s.tmp %s; exit'):format(out, out, out))
      assert(loadstring(recipe:match('^(.-)\n<')))()
      run('terminal aider --resume')
      t.wait(function() return vim.uv.fs_stat(out) end, 5000, name)
      local text = vim.fn.readfile(out)[1]
      vim.fn.delete(out)
      return text
    end
    local cwd = vim.fn.getcwd()
    local tmux = opens(recipes[2], 'tmux')
    t.ok(vim.startswith(tmux, 'split-window|-h|-c|' .. cwd .. '|') and tmux:find('|-e|PATH=', 1, true))
    local command = '|sh|%-c|[^|]+|[^|]+|aider|a b|%-%-resume|WORD=|$'
    t.matches(command, tmux)
    t.matches('^%-%-directory|' .. vim.pesc(cwd) .. command, opens(recipes[3], 'kitty'))
  end)
end)

describe('a terminal', function()
  it('gets files, lines and directories, without and with <Enter>', function()
    start_own('aider')
    local buffer = vim.api.nvim_get_current_buf()
    vim.cmd('wincmd p')
    local sent = {}
    local id = vim.api.nvim_create_autocmd('User', {
      pattern = 'McpToolsSend',
      callback = function(args) table.insert(sent, args.data) end,
    })
    local function gets(text)
      local function now() return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '') end
      t.wait(function() return now():find(text, 1, true) end, 5000, text .. ' in ' .. now())
    end
    run('2,3send! compare')
    gets('/a.txt lines 2-3 compare')
    run('add ' .. file .. ' 1 2')
    gets('/a.txt lines 1-2 ')
    run('add ' .. vim.fs.dirname(file))
    run('add %')
    notifications.after('McpTools add a file', 'no such file: a file')
    notifications.after('McpTools add', 'add: name a file')
    project.write('b c.txt', '')
    run('add ' .. vim.fs.dirname(file) .. '/b c.txt')
    gets('/b c.txt" ')
    for _, name in ipairs({ 'x @~', 'x,@~', 'x\194\160@~', 'x"' }) do
      project.write(name .. '/c.txt', '')
      local added = 'McpTools add ' .. vim.fn.fnameescape(vim.fs.dirname(file) .. '/' .. name .. '/c.txt')
      notifications.after(added, 'cannot be mentioned')
    end
    project.write('x@y/@z/c.txt', '')
    run('add ' .. vim.fs.dirname(file) .. '/x@y/@z/c.txt')
    gets('/x@y/@z/c.txt ')
    project.write('.env', '')
    notifications.after('McpTools add ' .. vim.fs.dirname(file) .. '/.env', 'sensitive file')
    t.eq({ true, false, false, false, false, false }, vim.tbl_map(function(each) return each.submit end, sent))
    t.has({ agent = sent[1].agent, bufnr = buffer, text = 'compare' }, sent[1])
    t.has({ path = vim.uv.fs_realpath(file), first = 2, last = 3 }, sent[1].places[1])
    t.eq(vim.uv.fs_realpath(vim.fs.dirname(file)), sent[3].places[1].path)
    vim.cmd('new')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { ('x'):rep(256 * 1024 + 1) })
    run('type {selection}')
    vim.cmd('bwipeout!')
    notifications.wait('too long to be typed')
    t.eq(6, #sent)
    vim.api.nvim_del_autocmd(id)
    t.eq('a.txt', vim.fs.basename(vim.api.nvim_buf_get_name(0)))
    config.change({ terminal = { focus_after_send = true } })
    run('type here')
    t.eq(buffer, vim.api.nvim_get_current_buf())
  end)

  it('gets texts in the order in which they were sent', function()
    start()
    program('claude', 'echo started')
    run('terminal claude')
    comes('started')
    local terminal = vim.api.nvim_get_current_buf()
    vim.cmd('stopinsert | wincmd p')
    session = agents.open('claude', 'claude-code')
    run('send first')
    run('type! second')
    comes('second', terminal)
    t.matches('first.*second', table.concat(vim.api.nvim_buf_get_lines(terminal, 0, -1, false)))
  end)

  it('gets a text with the selection or the diagnostics', function()
    notifications.after('McpTools type alone', 'no agent runs in a terminal of this editor')
    start_own('aider')
    local terminal = vim.api.nvim_get_current_buf()
    vim.cmd('wincmd p')
    notifications.after('McpTools type fix {diagnostics}', 'no diagnostics here')
    vim.diagnostic.set(vim.api.nvim_create_namespace('test'), 0, {
      { lnum = 0, col = 0, severity = 2, message = 'unused' },
      { lnum = 2, col = 0, severity = 1, message = 'undefined\nthree' },
    })
    run('type fix {diagnostics} {other}')
    comes('a.txt:1: warn: unused', terminal)
    comes('a.txt:3: error: undefined three {other}', terminal)
    run('3type only {diagnostics}')
    comes('only ' .. vim.uv.fs_realpath(file) .. ':3: error', terminal)
    vim.cmd('new')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, { '!touch x', 'but text', '$touch y', '&touch z', 'see @.env' })
    run('2type see {selection}')
    comes('see but text', terminal)
    run('1type {selection}')
    run('3type {selection}')
    run('4type {selection}')
    comes('Text:!touch x', terminal) -- otherwise agents run it
    comes('Text:$touch y', terminal)
    comes('Text:&touch z', terminal)
    run('5type {selection}')
    comes('see \\@.env', terminal) -- otherwise agents read the file
    vim.b.sensitive = true
    notifications.after('McpTools type {selection}', 'no selection here, or the file is sensitive')
    vim.cmd('bwipeout!')
  end)

  it('gets a long text whole, typed and pasted', function()
    local text = vim.fn.tempname()
    prepare({ commands = { raw = { 'sh', '-c', 'stty raw -echo; printf "\\033[?2004hready"; cat > ' .. text } } })
    run('terminal raw')
    comes('ready')
    local function written() return table.concat(vim.fn.readfile(text, 'b'), '\n') end
    local lines = t.lines(3000, 'line %d of a long text')
    local whole = table.concat(lines, '\n')
    vim.cmd('wincmd p')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
    run('type {selection}')
    local expected = '\27[200~' .. whole .. '\27[201~'
    t.wait(function() return #written() >= #expected end, 10000, 'the typed text')
    t.eq(true, written() == expected)
    vim.cmd('wincmd p')
    for at = 1, #whole, 1000 do
      vim.api.nvim_paste(whole:sub(at, at + 999), true, at == 1 and 1 or at + 1000 > #whole and 3 or 2)
    end
    t.wait(function() return #written() >= 2 * #expected end, 10000, 'the pasted text')
    t.eq(true, written() == expected .. expected)
    vim.cmd('wincmd p')
    vim.api.nvim_buf_set_lines(0, 0, -1, false, {})
    vim.api.nvim_paste('in a ', true, 1)
    vim.api.nvim_paste('buffer', true, 3)
    t.eq({ 'in a buffer' }, vim.api.nvim_buf_get_lines(0, 0, -1, false))
    vim.cmd('silent! edit!')
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
  t.fails('validation_error', nil, acp_server({ transport = 'pigeon' }))
end)

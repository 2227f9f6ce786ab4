-- slow, every Neovim
local changes = require('mcp-tools.editor.edit.history')
local command = require('mcp-tools.command')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local notifications = require('notifications')
local project = require('editor_project')
local t = require('helpers')

local function window_text(name)
  local buffer = t.wait(function()
    local found = vim.fn.bufnr('^mcp-tools://' .. name .. '$')
    return found > 0 and found
  end, 3000, 'window ' .. name)
  return table.concat(vim.api.nvim_buf_get_lines(buffer, 0, -1, false), '\n')
end

--- Waits until a window has a text.
local function comes(pattern, name)
  t.wait(function() return window_text(name):find(pattern) end, 3000, pattern)
end

local function completions(line) return vim.fn.getcompletion(line, 'cmdline') end

it('the clients of `connect` are those of the command mcp-tools', function()
  local wanted = {}
  for line in io.lines(require('mcp-tools.instances.project').python_package() .. '/client_config/known.py') do
    table.insert(wanted, line:match('^    "([%w-]+)": AiClient%('))
  end
  t.eq(wanted, require('mcp-tools.bridge.clients').NAMES)
end)

it('the plugin file defines the command and loads nothing', function()
  local path = vim.api.nvim_get_runtime_file('plugin/mcp-tools.lua', false)[1]
  local before = vim.tbl_keys(package.loaded)
  vim.g.loaded_mcp_tools = nil
  vim.cmd.source(path)
  t.eq({ before, 2 }, { vim.tbl_keys(package.loaded), (vim.fn.exists(':McpTools')) })
end)

describe(':McpTools', function()
  notifications.each()
  before_each(function()
    config.reset()
    config.setup({ bridge = { command = { 'python3', t.FIXTURES .. '/fake_bridge.py', 'ready' } } })
    core.get().registry:clear('tools')
    local read_only = { read_only = true }
    local echo = { name = 'echo', description = 'returns its argument', annotations = read_only }
    echo.args = { text = { type = 'string', required = true } }
    function echo.execute(ctx, args) ctx({ said = args.text }) end
    core.get().registry:add('tools', echo)
    local wait = { name = 'wait', description = 'never answers', annotations = read_only, execute = function() end }
    core.get().registry:add('tools', wait)
  end)

  after_each(function()
    local stopped
    require('mcp-tools.bridge').stop(function() stopped = true end)
    t.wait(function() return stopped end, 5000)
    vim.cmd('silent! only | enew')
  end)

  it('accepts a ! where it is meaningful: install! rebuilds the environment', function()
    local dir, path = vim.fn.tempname(), vim.env.PATH
    vim.fn.mkdir(dir)
    vim.fn.writefile({ '#!/bin/sh', '[ "$2" = -c ] || { echo "asked with $*" >&2; exit 1; }' }, dir .. '/python3')
    vim.uv.fs_chmod(dir .. '/python3', tonumber('755', 8))
    vim.env.PATH = dir
    notifications.after('McpTools install!', 'venv --force')
    vim.env.PATH = path
  end)

  it('reports invalid arguments, with the nearest subcommand', function()
    for line, message in pairs({
      ['status!'] = ':McpTools status does not accept !',
      ['status foo'] = ":McpTools status has no argument: 'foo'",
      stauts = "unknown subcommand 'stauts'; did you mean status?",
      foo = "unknown subcommand 'foo'",
      ['trust wait deny'] = "'deny' is not a valid level. One of trusted, verified, untrusted, denied",
      ['jobs start'] = ':McpTools jobs [stop ID | stop all]',
      call = 'which tool?',
      cancel = 'no call is running',
      ['cancel nope'] = 'no call is running',
      ['tools enabel'] = "unknown action 'enabel'; did you mean enable?",
      ['mounts nope'] = ":McpTools mounts accepts only retry, not 'nope'",
    }) do
      notifications.after('McpTools ' .. line, message)
    end
    t.eq(-1, vim.fn.bufnr('^mcp-tools://status$'))
  end)

  it('completes subcommands and their arguments', function()
    t.eq({ 'start', 'status', 'stop' }, completions('McpTools st'))
    t.eq({ 'echo', 'wait' }, completions('McpTools call '))
    t.eq({ { 'wait' }, { 'all' } }, { completions('McpTools call w'), (completions('McpTools cancel ')) })
    t.eq({ { 'text=' }, {} }, { completions('McpTools call echo '), (completions('McpTools stop ')) })
    t.eq({ 'claude' }, completions('McpTools terminal! cl'))
  end)

  it('starts, shows, restarts and stops the bridge', function()
    notifications.after('McpTools start', 'ready: http://127.0.0.1:')
    local port = require('mcp-tools.bridge').get_port()
    notifications.after('McpTools start', ('is already running on port %d'):format(port))
    notifications.collect()
    notifications.after('McpTools restart', ('ready: http://127.0.0.1:%d/mcp'):format(port))

    local other = vim.fn.tempname() .. ' $HOME'
    vim.fn.mkdir(other .. '/.git', 'p')
    vim.fn.mkdir(other .. '/sub')
    other = vim.uv.fs_realpath(other)
    notifications.collect()
    notifications.after('McpTools restart ' .. other .. '/none', "/none' is not a directory")
    vim.cmd('McpTools start ' .. other)
    notifications.wait(('on port %d; :McpTools restart DIR changes its project'):format(port))
    local above = vim.fs.dirname(other)
    t.ok(vim.list_contains(completions('McpTools restart ' .. above:sub(1, -2)), above .. '/'))
    notifications.collect()
    notifications.after('McpTools restart ' .. other .. '/sub', 'ready: http://127.0.0.1:')
    t.eq(other, require('mcp-tools.bridge').status().root)
    t.ok(require('mcp-tools.bridge').get_port() ~= port)
    notifications.after('McpTools stop', 'the bridge has stopped')
  end)

  it('shows the state of everything, without the token', function()
    vim.cmd('McpTools status')
    t.matches('● stopped', window_text('status'))
    t.matches('to do +:McpTools start', window_text('status'))
    notifications.after('McpTools start', 'ready: ')
    local some_client = { name = 'some-client', version = '2', transport = 'http', key = 'k' }
    require('mcp-tools.bridge.current').report('sessions', { count = 1, calls = 1, clients = { some_client } })
    vim.cmd('McpTools call wait')
    vim.cmd('McpTools status')
    local text = window_text('status')
    t.matches({ '● ready', 'endpoint +http://127%.0%.0%.1:%d+/mcp', 'some%-client  2 +no call yet' }, text)
    t.matches('Calls in flight  1\n  wait  running', text)
    t.ok(not text:find(require('mcp-tools.bridge').get_auth_token(), 1, true))
    vim.cmd('McpTools jobs')
    comes('no job is running, but calls are %(1%)', 'jobs')
    notifications.after('McpTools cancel all', 'cancelled wait')
    comes('Error %(cancelled%)', 'call wait')
  end)

  it('escapes names of clients and descriptions of tools', function()
    local hostile = 'a\27[2J\n\226\128\174b'
    local tool = { name = 'goes_on', description = hostile, annotations = { read_only = true } }
    tool.execute = function() end
    core.get().registry:add('tools', tool) -- such a name would be refused
    local client = { name = hostile, version = hostile, transport = 'sse' }
    require('mcp-tools.bridge.current').report('sessions', { count = 1, calls = 0, clients = { client } })
    require('mcp-tools').call('goes_on', {}, { host = hostile }, function() end)
    vim.cmd('McpTools status')
    local shown = vim.pesc('a<U+001B>[2J<U+000A><U+202E>b')
    local text = window_text('status')
    t.matches({ '●  a<U%+001B>%[2J.* sse', 'goes_on  running +%d+ s  ' .. shown .. '\n' }, text)
    vim.cmd('McpTools tools')
    t.matches('nvim_goes_on +a<U%+001B>%[2J', window_text('tools'))
    vim.cmd('McpTools cancel all')
  end)

  it('shows and yanks the configuration of a client', function()
    notifications.after('McpTools endpoint', ':McpTools start')
    notifications.after('McpTools start', 'ready: ')
    local endpoint = require('mcp-tools').endpoint()
    local header = 'Authorization: Bearer ' .. endpoint.token
    vim.cmd('McpTools endpoint')
    local lines = vim.split(window_text('endpoint'), '\n')
    t.eq({ endpoint.url, header }, { lines[1], lines[2] })
    vim.cmd('normal y')
    t.eq(endpoint.url, vim.fn.getreg('"'))
    vim.cmd('normal j"ay')
    t.eq(header, vim.fn.getreg('a'))
    vim.cmd('normal G"ay')
    local servers = { ['nvim-tools'] = { type = 'http', url = endpoint.url, headers = {} } }
    servers['nvim-tools'].headers.Authorization = 'Bearer ' .. endpoint.token
    t.eq({ mcpServers = servers }, vim.json.decode(vim.fn.getreg('a')))
    vim.cmd('McpTools endpoint b')
    t.eq(vim.fn.getreg('a'), vim.fn.getreg('b'))
    notifications.wait("register 'b'")
    notifications.after('McpTools endpoint nowhere', 'nowhere')
    vim.fn.setreg('a', '')
    vim.fn.setreg('b', '')
    t.ok(not notifications.text():find(endpoint.token, 1, true))
  end)

  it('runs a tool with JSON arguments and shows its result', function()
    vim.cmd('McpTools call echo {"text": "a | b"}')
    t.eq('{\n  "said": "a | b"\n}', window_text('call echo'))
    t.eq('json', vim.bo[vim.fn.bufnr('^mcp-tools://call echo$')].filetype)
    vim.cmd.wincmd('b')
    vim.cmd('normal q')
    t.eq(-1, vim.fn.bufnr('^mcp-tools://call echo$'))
  end)

  it('shows errors of a call', function()
    vim.cmd('McpTools call echo')
    t.matches('Error %(validation_error%).*\n  text: ', window_text('call echo'))
    vim.cmd('McpTools call echo [1]')
    t.matches('^The arguments must be NAME=VALUE or a JSON object: .*\n  %[1%]$', window_text('call echo'))
    vim.cmd('McpTools call echo {nope')
    t.matches('^The arguments must be NAME=VALUE or a JSON object: Expected .*\n  {nope$', window_text('call echo'))
  end)

  it('reads arguments as words', function()
    vim.cmd('McpTools call echo text="two words"')
    t.matches('two words', window_text('call echo'))
    vim.cmd('McpTools call echo text=5')
    t.wait(function() return window_text('call echo'):find('"5"', 1, true) end)
    vim.cmd('McpTools call echo text')
    t.matches('neither JSON nor NAME=VALUE', window_text('call echo'))
  end)

  it('shows everything in one window', function()
    local windows = #vim.api.nvim_list_wins()
    local here = vim.api.nvim_get_current_win()
    vim.cmd('McpTools tools')
    vim.cmd('McpTools status')
    vim.cmd('McpTools call echo {"text": "x"}')
    t.eq(windows + 1, #vim.api.nvim_list_wins())
    t.ok(vim.api.nvim_get_current_win() ~= here)
    vim.api.nvim_set_current_win(here)
    vim.cmd('McpTools call echo {"text": "x"}')
    vim.cmd('McpTools call wait')
    vim.cmd('McpTools cancel!')
    comes('Error %(cancelled%)', 'call wait')
    t.eq(windows + 1, #vim.api.nvim_list_wins())
  end)

  it('a call runs in the window of the user, and the cursor enters its result', function()
    local here = vim.api.nvim_get_current_win()
    local function enters(name)
      t.wait(function() return vim.fn.bufname() == 'mcp-tools://call ' .. name end, 3000, name)
    end
    local seen = {}
    core.get().registry:add('tools', {
      name = 'where',
      description = 'x',
      annotations = { read_only = true },
      execute = function(ctx)
        table.insert(seen, vim.api.nvim_get_current_win())
        ctx('done')
      end,
    })
    for _ = 1, 2 do
      vim.cmd('McpTools call where')
      enters('where')
    end
    t.eq({ here, here }, seen)
    vim.cmd('McpTools call echo [1]')
    enters('echo')
    vim.cmd('normal q')
    t.eq(here, vim.api.nvim_get_current_win())
    vim.cmd('McpTools call wait')
    t.eq(here, vim.api.nvim_get_current_win())
    vim.cmd('McpTools cancel wait')
    enters('wait')
    vim.cmd('normal q')
    vim.cmd('McpTools call wait')
    vim.api.nvim_buf_set_lines(0, 0, 0, false, { 'typed' })
    vim.cmd('McpTools cancel wait')
    comes('Error %(cancelled%)', 'call wait')
    t.eq(here, vim.api.nvim_get_current_win())
  end)

  it('lists calls to cancel, even if there is only one', function()
    local select, offered = vim.ui.select, {}
    vim.ui.select = function(calls, opts, done)
      table.insert(offered, opts.format_item(calls[1]))
      done(calls[1])
    end
    vim.cmd('McpTools call wait {"command": ["sleep", "50"]}')
    vim.cmd('McpTools cancel')
    vim.cmd(('McpTools call wait {"text": "%s"}'):format(('x'):rep(50)))
    vim.cmd('McpTools cancel')
    vim.ui.select = select
    t.eq({ 'wait  you, 0 s ago  "sleep 50"', 'wait  you, 0 s ago  {"text":"' .. ('x'):rep(30) .. '…' }, offered)
    t.eq(0, #core.get().executor:pending())
    vim.cmd('McpTools call wait')
    vim.cmd('McpTools cancel wait')
    t.eq(0, #core.get().executor:pending())
  end)

  it('cancels one call by its id', function()
    vim.cmd('McpTools call wait')
    local id = core.get().executor:pending()[1].id
    t.eq({ id, 'all' }, completions('McpTools cancel '))
    notifications.after('McpTools cancel nope', "no running call has the name or id 'nope'")
    notifications.after('McpTools cancel ' .. id, ('cancelled wait (%s)'):format(id))
    t.eq(0, #core.get().executor:pending())
  end)

  it('lists the tools by group', function()
    vim.cmd('McpTools tools')
    t.matches('registered\n  nvim_echo +returns its argument\n  nvim_wait', window_text('tools'))
    t.matches('\nresources\n  nvim://buffers +Open buffers\n', window_text('tools'))
    t.matches('\nresource templates\n  file:///{%+path}', window_text('tools'))
    t.matches('\nprompts\n  analyze_module', window_text('tools'))
    vim.cmd('only')
    vim.cmd('normal q') -- the last window
    t.eq('', vim.api.nvim_buf_get_name(0))
  end)

  it('says that Codex needs a new conversation after a change, if it is connected', function()
    local current = require('mcp-tools.bridge.current')
    current.reported.sessions = { count = 1, calls = 0, clients = { { name = 'codex-mcp-client' } } }
    vim.cmd('McpTools tools disable wait')
    notifications.wait('off now: wait. Type /new in Codex: it lists tools only when a conversation starts')
    current.reported.sessions = nil
    notifications.after('McpTools tools enable wait', 'on now: wait')
    t.ok(not notifications.text():find('on now: wait.', 1, true))
  end)

  it('reloads one definition, and reports only its failures', function()
    local plugin = vim.fn.tempname()
    local function write(name, text)
      vim.fn.mkdir(plugin .. '/lua/mcp-tools/ext', 'p')
      vim.fn.writefile({ text }, ('%s/lua/mcp-tools/ext/%s.lua'):format(plugin, name))
    end
    local good = "return { name = 'shipped', description = 'x', execute = function(ctx) ctx(1) end }"
    write('broken', 'return {')
    write('good', good)
    vim.opt.runtimepath:append(plugin)
    notifications.after('McpTools tools refresh', 'ext/broken.lua')
    for _, name in ipairs({ 'shipped', 'nvim_shipped', 'good' }) do
      notifications.collect()
      notifications.after('McpTools tools reload ' .. name, 'reloaded')
    end
    write('good', 'return {')
    for _, name in ipairs({ 'shipped', 'nvim_shipped', 'good' }) do
      notifications.collect()
      notifications.after('McpTools tools reload ' .. name, 'ext/good.lua')
    end
    vim.opt.runtimepath:remove(plugin)
    vim.cmd('McpTools tools refresh')
    vim.fn.delete(plugin, 'rf')
  end)

  it('welcome checks the clients each time it is opened, and ignores calls by the user', function()
    local clients = require('mcp-tools.bridge.clients')
    local run, state = clients.run, 'not connected'
    clients.run = function(_, cb) cb({ { title = 'Some Client', installed = true, state = state } }) end
    local history = core.get().executor.history
    local list = history.list
    history.list = function() return { { client = 'command', name = 'wait' }, { client = 'nvim', name = 'wait' } } end
    vim.cmd('McpTools welcome')
    comes('Client +found: Some Client', 'welcome')
    t.ok(not window_text('welcome'):find('has called', 1, true))
    vim.api.nvim_feedkeys('q', 'xt', false)
    state = 'connected'
    vim.cmd('McpTools welcome')
    comes('Client +Some Client\n', 'welcome')
    vim.api.nvim_feedkeys('q', 'xt', false)
    clients.run, history.list = run, list
  end)

  it('writes nothing by a key that was typed right after the change appeared, or while the user types', function()
    local clients = require('mcp-tools.bridge.clients')
    local keepers = require('mcp-tools.ui.window.keeper')
    local run, may_enter, answer, written = clients.run, keepers.may_enter, nil, false
    clients.run = function(words, cb)
      if vim.list_contains(words, '--yes') then
        written = true
      else
        answer = function() cb({ needed = true, diff = '+ x\n', files = 'a.json', path = 'a.json' }) end
      end
    end
    local user = vim.api.nvim_get_current_win()
    local function press(key)
      vim.cmd.redraw()
      vim.api.nvim_feedkeys(key, 'xt', false)
    end
    vim.cmd('McpTools connect cursor')
    keepers.may_enter = t.returns(false)
    answer()
    keepers.may_enter = may_enter
    t.eq(user, vim.api.nvim_get_current_win())
    vim.cmd('only')

    vim.cmd('McpTools connect cursor')
    answer()
    t.ok(user ~= vim.api.nvim_get_current_win())
    press('y')
    t.eq(false, written)
    vim.wait(550, function() return false end)
    press('y')
    t.eq(true, written)
    clients.run = run
  end)

  it('shows the end of the log in one window', function()
    local function shows(text)
      require('mcp-tools.log').warn('%s', text)
      t.wait(function()
        vim.cmd('McpTools log')
        return window_text('log'):find(text, 1, true)
      end)
    end
    shows('something to read')
    local windows = #vim.api.nvim_list_wins()
    shows('more to read')
    t.eq(windows, #vim.api.nvim_list_wins())
    require('mcp-tools.log').warn('%s', 'turned \226\128\174 around')
    t.wait(function()
      vim.cmd('McpTools log')
      return window_text('log'):find('turned <U+202E> around', 1, true)
    end)
  end)
end)

describe(':McpTools changes', function()
  local api = vim.api

  local function run(text) command.run({ args = 'changes ' .. text }) end

  local function press(keys) api.nvim_feedkeys(vim.keycode(keys), 'xt', false) end

  local function lines(bufnr) return api.nvim_buf_get_lines(bufnr or 0, 0, -1, false) end

  local path

  project.each(nil, function()
    require('mcp-tools').setup({ tools = 'all', approval = { groups = { buffer = 'allow', file = 'allow' } } })
    require('mcp-tools.instances.project').fix(project.root)
    path = project.edit('a.txt', 'a\nb\nc\n')
    local args = { path = path, edits = { { search = 'c', replace = 'C\nD' } } }
    t.eq(nil, project.run('tool', 'file_edit', args).error)
  end)

  it('lists the changes, newest first, and jumps to one, also when lines were inserted before it', function()
    run('')
    t.matches('^ +%d+  %d%d:%d%d:%d%d  a.txt:3  %+2 %-1  .*, file_edit$', lines()[1])
    local winbar = api.nvim_eval_statusline(vim.wo.winbar, { use_winbar = true, maxwidth = 80 }).str
    t.matches('changes by agents.*<CR> jump  d diff  u revert  q close  %? keys', winbar)
    vim.cmd.close()
    api.nvim_buf_set_lines(0, 0, 0, false, { 'mine' })
    run('')
    press('<CR>')
    t.eq({ path, 4 }, { api.nvim_buf_get_name(0), api.nvim_win_get_cursor(0)[1] })
  end)

  it('shows one as a diff, with escaped characters', function()
    local args = { path = path, edits = { { search = 'a', replace = 'x\226\128\174y\tz' } } }
    t.eq(nil, project.run('tool', 'file_edit', args).error)
    run('diff ' .. changes.list()[1].id)
    t.eq('diff', vim.bo.filetype)
    t.ok(vim.list_contains(lines(), '-a') and vim.list_contains(lines(), '+x<U+202E>y    z'))
  end)

  it('asks before it deletes a file that was created', function()
    local new, asked, answer = project.root .. '/new.txt', nil, 2
    t.eq(nil, project.run('tool', 'file_write', { path = new, text = 'one\n' }).error)
    local select = vim.ui.select
    vim.ui.select = function(items, opts, fn)
      asked = opts.prompt
      fn(items[answer])
    end
    local id = changes.list()[1].id
    run('revert ' .. id)
    t.matches('This change created new.txt. Delete', asked)
    t.ok(vim.uv.fs_stat(new))
    answer = 1
    run('revert ' .. id)
    vim.ui.select = select
    t.wait(function() return not vim.uv.fs_stat(new) and changes.find(id).reverted end)
  end)

  it('shows whether a change is reverted now, by any way', function()
    local function is_gone()
      run('')
      local row = lines()[1]
      vim.cmd.close()
      return row:find('reverted', 1, true) ~= nil
    end
    local seen = { is_gone() }
    for _, way in ipairs({ 'undo', 'redo' }) do
      vim.cmd('silent ' .. way)
      table.insert(seen, is_gone())
    end
    run('revert ' .. changes.list()[1].id)
    t.wait(function() return #lines() == 3 end)
    table.insert(seen, is_gone())
    vim.cmd('silent undo')
    t.eq({ false, true, false, true, false }, vim.list_extend(seen, { is_gone() }))
  end)

  it('returns from a diff, in which a change can be reverted as well', function()
    run('')
    press('d')
    t.eq('diff', vim.bo.filetype)
    press('q')
    t.matches('a.txt:3', lines()[1])
    press('d')
    press('u')
    t.wait(function() return lines()[1]:find('reverted', 1, true) end)
    notifications.collect()
    press('u')
    notifications.wait('already been reverted')
    press('q')
    t.eq(-1, vim.fn.bufnr('^mcp-tools://change'))
  end)
end)

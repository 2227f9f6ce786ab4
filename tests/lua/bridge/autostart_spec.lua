local t = require('helpers')

local INIT = [[
vim.opt.runtimepath:prepend(%q)
vim.cmd('filetype on')
SETUP = function(bridge)
  bridge = vim.tbl_extend('force', { command = { 'python3', %q, 'ready' } }, bridge or {})
  require('mcp-tools.config').setup({ bridge = bridge })
  require('mcp-tools.bridge').autostart()
end
]]

local children = {}

--- Starts another editor like a user does; returns its channel once it has a UI.
local function editor(opts)
  local init = vim.fn.tempname() .. '.lua'
  local lines = INIT:format(t.CHECKOUT, t.FIXTURES .. '/fake_bridge.py') .. (opts.init or 'SETUP()')
  vim.fn.writefile(vim.split(lines, '\n'), init)
  local command = { vim.v.progpath, '--embed', '-i', 'NONE', '-n', '-u', init }
  vim.list_extend(command, opts.args or {})
  local channel = vim.fn.jobstart(command, { rpc = true, env = { NVIM = opts.nvim or '' } })
  table.insert(children, channel)
  if not opts.no_ui then
    vim.rpcrequest(channel, 'nvim_ui_attach', 80, 24, {})
  end
  return channel
end

local function lua(channel, code) return vim.rpcrequest(channel, 'nvim_exec_lua', code, {}) end

--- A field of the status of the bridge; nil when it was not loaded.
local function status(channel, field)
  local code = "return package.loaded['mcp-tools.bridge.control'] and require('mcp-tools.bridge').status().%s"
  local value = lua(channel, code:format(field))
  return value ~= vim.NIL and value or nil
end

local function starts(channel)
  t.wait(function() return status(channel, 'state') == 'ready' end, 5000, 'the bridge being ready')
end

--- Asserts that the bridge does not start within the delay of autostart.
local function starts_not(channel)
  t.wait(function() return lua(channel, 'return vim.v.vim_did_enter') == 1 end)
  lua(channel, 'vim.defer_fn(function() LATER = true end, 50)')
  t.wait(function() return lua(channel, 'return LATER') end)
  t.eq(nil, status(channel, 'state'))
end

--- Whether a process has ended; a zombie counts as ended.
local function is_gone(pid)
  local stat = io.open(('/proc/%d/stat'):format(pid))
  if not stat then
    return vim.uv.kill(pid, 0) ~= 0
  end
  local ended = stat:read('*a'):find(') Z', 1, true) ~= nil
  stat:close()
  return ended
end

describe('autostart', function()
  after_each(function()
    for _, channel in ipairs(children) do
      local pid = status(channel, 'pid')
      vim.rpcnotify(channel, 'nvim_command', 'qa!')
      -- The editor exits without waiting for the bridge.
      t.wait(function() return vim.fn.jobwait({ channel }, 0)[1] ~= -1 end, 1000, 'the exit of the editor')
      -- The exit stops the bridge.
      if pid then
        t.wait(function() return is_gone(pid) end)
      end
    end
    children = {}
  end)

  it('starts immediately when setup runs later', function()
    local channel = editor({ init = '' })
    starts_not(channel)
    lua(channel, 'SETUP()')
    starts(channel)
  end)

  it('waits for a UI', function()
    local channel = editor({ no_ui = true, args = { '--headless' } })
    starts_not(channel)
    vim.rpcrequest(channel, 'nvim_ui_attach', 80, 24, {})
    starts(channel)
  end)

  it('does not start inside another Neovim', function() starts_not(editor({ nvim = '/run/user/1/nvim.1.0' })) end)

  it('does not start for a commit message, a rebase list, a manual page or a diff', function()
    local dir = vim.fn.tempname()
    vim.fn.mkdir(dir)
    local one, two = dir .. '/one', dir .. '/two'
    vim.fn.writefile({ 'a' }, one)
    vim.fn.writefile({ 'b' }, two)
    for _, args in ipairs({
      { dir .. '/COMMIT_EDITMSG' },
      { dir .. '/git-rebase-todo' },
      { '-d', one, two },
      { '-c', 'set filetype=man', one },
      { '-c', 'diffthis', one },
    }) do
      starts_not(editor({ args = args }))
    end
  end)

  it('starts for files whose names begin with Man', function()
    local dir = vim.fn.tempname()
    vim.fn.mkdir(dir)
    for _, name in ipairs({ 'Manager.java', 'Man', 'Manual.md' }) do
      vim.fn.writefile({ '' }, dir .. '/' .. name)
    end
    starts(editor({ args = { '-c', 'cd ' .. dir, dir .. '/Manager.java' } }))
    starts(editor({ args = { dir .. '/Manual.md' } }))
    local here = vim.uv.cwd()
    vim.cmd.cd(dir)
    local channel = editor({ args = { 'Man', 'Manager.java' } })
    vim.cmd.cd(here)
    starts(channel)
    starts_not(editor({ args = { '+Man! ls' } }))
    starts_not(editor({ args = { '-c', 'Man ls' } }))
  end)

  it('does not start while the editor exits', function()
    local file = vim.fn.tempname()
    local code = [[
      vim.api.nvim_create_autocmd('VimLeave', { callback = function()
        require('mcp-tools.bridge').start()
        SETUP()
        vim.wait(50, function() return false end)
        vim.fn.writefile({ require('mcp-tools.bridge').status().state }, %q)
      end })
    ]]
    local channel = editor({ init = code:format(file) })
    vim.rpcnotify(channel, 'nvim_command', 'qa!')
    t.wait(function() return vim.uv.fs_stat(file) end)
    t.eq({ 'stopped' }, vim.fn.readfile(file))
    t.wait(function() return vim.fn.jobwait({ channel }, 0)[1] ~= -1 end, 1000, 'the exit of the editor')
    children = {}
  end)

  it('starts once there is a UI, and has no blocker afterwards, whatever is shown', function()
    local channel = editor({})
    starts(channel)
    lua(channel, "vim.cmd('diffthis')")
    t.eq(vim.NIL, lua(channel, "return require('mcp-tools.bridge').blocker()"))
  end)

  it('loads nothing of the bridge at start-up', function()
    local channel = editor({ no_ui = true, args = { '--headless' } })
    local loaded = lua(channel, 'return vim.tbl_keys(package.loaded)')
    for _, part in ipairs({ 'control', 'process', 'current', 'launch', 'interpreter' }) do
      t.ok(not vim.list_contains(loaded, 'mcp-tools.bridge.' .. part), part)
    end
  end)
end)

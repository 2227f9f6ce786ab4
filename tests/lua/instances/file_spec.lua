local t = require('helpers')
local instances = require('mcp-tools.instances.file')

local function folder(mode)
  local path = vim.fn.tempname()
  vim.fn.mkdir(path, 'p', mode or tonumber('700', 8))
  return vim.uv.fs_realpath(path)
end

local facts =
  { root = '/p', socket = '/s', url = 'http://127.0.0.1:1/mcp', port = 1, token = ('a'):rep(64), boot = 'b' }

local function own_file()
  return vim.fs.joinpath(instances.dir(), vim.uv.os_getpid() .. '.json')
end

local function read()
  return vim.json.decode(table.concat(vim.fn.readfile(own_file()), '\n'))
end

describe('instances', function()
  before_each(function()
    vim.env.XDG_RUNTIME_DIR = folder()
  end)

  after_each(function()
    instances.remove()
  end)

  it('lie in the runtime folder, or in the state folder when that one is missing or not ours alone', function()
    t.eq(vim.env.XDG_RUNTIME_DIR .. '/mcp-tools', instances.dir())
    local state = vim.fn.stdpath('state') .. '/mcp-tools/instances'
    vim.env.XDG_RUNTIME_DIR = '/nonexistent'
    t.eq(state, instances.dir())
    vim.env.XDG_RUNTIME_DIR = nil
    t.eq(state, instances.dir())
    local shared = folder()
    vim.uv.fs_chmod(shared, tonumber('777', 8))
    vim.env.XDG_RUNTIME_DIR = shared
    t.eq(state, instances.dir())
  end)

  it('say who and where, for the owner only, and go away', function()
    t.ok(instances.publish(facts))
    local got = read()
    t.eq(vim.uv.os_getpid(), got.pid)
    t.eq(vim.uv.cwd(), got.cwd)
    t.ok(math.abs(got.focused_at - os.time()) < 5)
    for key, value in pairs(facts) do
      t.eq(value, got[key])
    end
    t.eq('600', ('%o'):format(bit.band(vim.uv.fs_stat(own_file()).mode, tonumber('777', 8))))
    instances.remove()
    t.eq(nil, vim.uv.fs_stat(own_file()))
  end)

  it('follow the working folder and, not too often, the focus', function()
    instances.publish(facts)
    local before = vim.uv.cwd()
    local other = folder()
    vim.cmd.cd(other)
    t.eq(other, read().cwd)
    vim.cmd.cd(before)

    local path = own_file()
    vim.uv.fs_unlink(path)
    vim.api.nvim_exec_autocmds('FocusGained', {})
    t.ok(vim.uv.fs_stat(path), 'written at the first focus')
    vim.uv.fs_unlink(path)
    vim.api.nvim_exec_autocmds('FocusGained', {})
    t.eq(nil, vim.uv.fs_stat(path))
  end)

  it('of editors that are gone are cleaned; those of living ones and foreign files stay', function()
    local dir = instances.dir()
    vim.fn.mkdir(dir, 'p', tonumber('700', 8))
    local dead = vim.fn.jobstart({ 'true' })
    local dead_pid = vim.fn.jobpid(dead)
    vim.fn.jobwait({ dead })
    t.wait(function()
      return vim.uv.kill(dead_pid, 0) ~= 0
    end)
    local names = {
      [dead_pid .. '.json'] = false,
      ['1.json.' .. dead_pid .. '-3.tmp'] = false,
      [vim.uv.os_getppid() .. '.json'] = true,
      ['notes.txt'] = true,
    }
    for name in pairs(names) do
      vim.fn.writefile({ '{}' }, dir .. '/' .. name)
    end
    instances.clean()
    for name, stays in pairs(names) do
      t.eq(stays, vim.uv.fs_stat(dir .. '/' .. name) ~= nil)
    end
  end)

  it('are not written into a folder that others can write, and the person is told', function()
    vim.fn.mkdir(instances.dir(), 'p')
    vim.uv.fs_chmod(instances.dir(), tonumber('777', 8))
    local ok, err = instances.publish(facts)
    t.eq(false, ok)
    t.matches('is writable by other users', err)
  end)
end)

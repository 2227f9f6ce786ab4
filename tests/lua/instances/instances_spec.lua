local config = require('mcp-tools.config')
local identity = require('mcp-tools.instances.identity')
local instances = require('mcp-tools.instances.file')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')
local t = require('helpers')

local function directory(...)
  local path = vim.fs.joinpath(vim.fn.tempname(), ...)
  vim.fn.mkdir(path, 'p', tonumber('700', 8))
  return vim.uv.fs_realpath(path)
end

local function mode(path) return ('%o'):format(bit.band(vim.uv.fs_stat(path).mode, tonumber('777', 8))) end

describe('the root of the project', function()
  before_each(config.reset)

  it('is the nearest directory with a marker, else the directory itself', function()
    local outer = directory()
    vim.fn.mkdir(outer .. '/.git')
    vim.fn.mkdir(outer .. '/sub/deep', 'p')
    t.eq(outer, project.find(outer .. '/sub/deep'))
    vim.fn.writefile({}, outer .. '/sub/.git')
    t.eq(outer .. '/sub', project.find(outer .. '/sub/deep'))
    local bare = directory()
    t.eq(bare, project.find(bare))
  end)

  it('is the nearest of several kinds of markers, in any order', function()
    local outer = directory()
    vim.fn.mkdir(outer .. '/.first')
    vim.fn.mkdir(outer .. '/sub/.second', 'p')
    config.setup({ roots = { markers = { '.first', '.second' } } })
    t.eq(outer .. '/sub', project.find(outer .. '/sub'))
  end)

  it('is searched from the current file, or from the working directory for other buffers', function()
    local inner, other = directory(), directory()
    vim.fn.mkdir(inner .. '/.git')
    vim.fn.mkdir(inner .. '/src')
    vim.cmd.cd(other)
    vim.cmd.edit(inner .. '/src/new.txt')
    t.eq(inner, project.find())
    vim.cmd.enew()
    vim.bo.buftype = 'nofile'
    t.eq(other, project.find())
    vim.cmd.bwipeout()
  end)

  it('can have any name', function()
    for _, name in ipairs({ '$HOME', '~', '[ab]*', 'caf\xe9', ' ' }) do
      local inner = directory(name, 'project')
      vim.fn.mkdir(inner .. '/.git')
      vim.fn.mkdir(inner .. '/sub')
      vim.uv.chdir(inner .. '/sub')
      vim.cmd.enew()
      t.eq({ inner, inner }, { project.find(), (project.find(inner .. '/sub')) })
      t.eq(inner, project.find(inner .. '/sub/gone'))
    end
    vim.uv.chdir('/')
  end)

  it('is the home directory when the working directory is deleted', function()
    local gone = directory()
    vim.uv.chdir(gone)
    vim.fn.delete(gone, 'd')
    vim.cmd.enew()
    t.eq(vim.uv.fs_realpath(vim.uv.os_homedir()), project.find())
    vim.uv.chdir('/')
  end)

  it('does not change once it is fixed, until it is released', function()
    local here, elsewhere = directory(), directory()
    vim.cmd.enew()
    vim.cmd.cd(here)
    t.eq(here, project.root())
    project.fix(project.root())
    vim.cmd.cd(elsewhere)
    t.eq(here, project.root())
    project.fix(nil)
    t.eq(elsewhere, project.root())
  end)
end)

it(
  'the plugin has its own directory',
  function() t.ok(vim.uv.fs_stat(project.plugin_dir() .. '/lua/mcp-tools/instances/project.lua')) end
)

describe('identity', function()
  before_each(function()
    config.reset()
    vim.fn.delete(project.state_dir(), 'rf')
  end)

  it('has the same port and token each time, and others for another project', function()
    local first, second = assert(identity.load('/a/project')), assert(identity.load('/a/project'))
    local other = assert(identity.load('/another/project'))
    t.eq(first, second)
    t.matches('^%x+$', first.token)
    t.eq(64, #first.token)
    t.ok(first.token ~= other.token and first.port ~= other.port)
    t.ok(first.port >= 20000 and first.port < 32000)
    t.eq({ '600', '700', '700' }, { mode(first.path), mode(vim.fs.dirname(first.path)), mode(project.state_dir()) })
  end)

  it('stores whether a client has connected', function()
    local first = assert(identity.load('/a/project'))
    t.eq(nil, first.had_client)
    identity.connected(first)
    local second = assert(identity.load('/a/project'))
    t.eq({ true, first.port, first.token }, { second.had_client, second.port, second.token })
    assert(identity.renew_token(second, 4711))
    t.eq(true, assert(identity.load('/a/project')).had_client)
    t.eq(nil, assert(identity.load('/another/project')).had_client)
  end)

  it('keeps the new token and the served port of another editor', function()
    local first, second = assert(identity.load('/a/project')), assert(identity.load('/a/project'))
    assert(identity.renew_token(second, 4711))
    identity.connected(first)
    t.eq(second.token, assert(identity.load('/a/project')).token)
    first, second = assert(identity.load('/a/project')), assert(identity.load('/a/project'))
    identity.served(first, 4711)
    identity.connected(second)
    local stored = assert(identity.load('/a/project'))
    t.eq({ first.token, nil, true }, { stored.token, stored.kept_from, stored.had_client })
  end)

  it('refuses a file that others can write or that is a link, and tells what to do', function()
    local mine = assert(identity.load('/a/project'))
    local function refuses(pattern)
      local none, err = identity.load('/a/project')
      t.eq(nil, none)
      t.matches(pattern, err)
    end
    vim.uv.fs_chmod(mine.path, tonumber('622', 8))
    refuses('is writable by other users; run `rm ')
    vim.uv.fs_chmod(mine.path, tonumber('600', 8))
    vim.uv.fs_chmod(vim.fs.dirname(mine.path), tonumber('770', 8))
    refuses('is writable by other users; run `chmod 700 ')
    vim.uv.fs_chmod(vim.fs.dirname(mine.path), tonumber('700', 8))
    vim.uv.fs_rename(mine.path, mine.path .. '.real')
    vim.uv.fs_symlink(mine.path .. '.real', mine.path)
    refuses('is a link')
  end)

  it('creates a new token when others could read the old one', function()
    local mine = assert(identity.load('/a/project'))
    vim.uv.fs_chmod(mine.path, tonumber('644', 8))
    local renewed = assert(identity.load('/a/project'))
    t.ok(renewed.token ~= mine.token)
    t.eq({ mine.port, '600', renewed }, { renewed.port, (mode(mine.path)), (identity.load('/a/project')) })
  end)

  it('replaces a truncated file', function()
    local mine = assert(identity.load('/a/project'))
    vim.fn.writefile({ '{"root": "/a/pro' }, mine.path)
    local again = assert(identity.load('/a/project'))
    t.eq({ 64, again }, { #again.token, (identity.load('/a/project')) })
  end)

  it('prefers bridge.port and does not store it', function()
    local stable = assert(identity.load('/a/project')).port
    config.setup({ bridge = { port = 4567 } })
    local mine = assert(identity.load('/a/project'))
    t.eq(4567, mine.port)
    assert(identity.renew_token(mine))
    config.reset()
    local after = assert(identity.load('/a/project'))
    t.eq({ stable, mine.token }, { after.port, after.token })
  end)

  it('refuses to create a token without random bytes', function()
    local none, err = identity.load('/fresh/project', function() return nil, 'ENOSYS: function not implemented' end)
    t.eq(nil, none)
    t.matches('no random bytes .*ENOSYS', err)
    t.eq({}, vim.fn.readdir(project.state_dir() .. '/projects'))
  end)

  it('keeps the token out of the log', function()
    local log = require('mcp-tools.log')
    log.error('leak %s', assert(identity.load('/a/project')).token)
    t.matches('leak <hidden>$', log.lines(1)[1])
  end)
end)

describe('private files', function()
  it('are created by the first of two writers', function()
    local path = vim.fs.joinpath(directory(), 'x.json')
    t.eq(true, private_files.create(path, { by = 'first' }))
    t.eq(false, private_files.create(path, { by = 'second' }))
    t.eq({ 'first', 1 }, { private_files.read(path).value.by, (#vim.fn.readdir(vim.fs.dirname(path))) })
  end)

  it('are replaced atomically', function()
    local dir = directory()
    local path = vim.fs.joinpath(dir, 'x.json')
    t.ok(private_files.write(path, { n = 1 }) and private_files.write(path, { n = 2 }))
    t.eq({ 2, { 'x.json' } }, { private_files.read(path).value.n, (vim.fn.readdir(dir)) })
    local ok, err = private_files.write(dir .. '/missing/x.json', {})
    t.eq(false, ok)
    t.matches('cannot write', err)
  end)
end)

local facts =
  { root = '/p', socket = '/s', url = 'http://127.0.0.1:1/mcp', port = 1, token = ('a'):rep(64), boot = 'b' }

local function own_file() return vim.fs.joinpath(instances.dir(), vim.uv.os_getpid() .. '.json') end

local function read() return vim.json.decode(table.concat(vim.fn.readfile(own_file()), '\n')) end

describe('instances', function()
  before_each(function() vim.env.XDG_RUNTIME_DIR = directory() end)

  after_each(instances.remove)

  it('are in the runtime directory, or in the state directory if that is missing or shared', function()
    t.eq(vim.env.XDG_RUNTIME_DIR .. '/mcp-tools', instances.dir())
    local state = vim.fn.stdpath('state') .. '/mcp-tools/instances'
    vim.env.XDG_RUNTIME_DIR = '/nonexistent'
    t.eq(state, instances.dir())
    vim.env.XDG_RUNTIME_DIR = nil
    t.eq(state, instances.dir())
    local shared = directory()
    vim.uv.fs_chmod(shared, tonumber('777', 8))
    vim.env.XDG_RUNTIME_DIR = shared
    t.eq(state, instances.dir())
  end)

  it('have the facts of this editor, for the owner only, and are removed', function()
    t.ok(instances.publish(facts))
    local got = read()
    t.eq(vim.uv.os_getpid(), got.pid)
    t.eq(vim.uv.cwd(), got.cwd)
    t.ok(math.abs(got.focused_at - os.time()) < 5)
    for key, value in pairs(facts) do
      t.eq(value, got[key])
    end
    t.eq('600', mode(own_file()))
    instances.remove()
    t.eq(nil, vim.uv.fs_stat(own_file()))
  end)

  it('follow the working directory and, not too often, the focus', function()
    instances.publish(facts)
    local before = vim.uv.cwd()
    local other = directory()
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

  it('of editors that have exited are removed; those of others stay', function()
    local dir = instances.dir()
    vim.fn.mkdir(dir, 'p', tonumber('700', 8))
    local dead = vim.fn.jobstart({ 'true' })
    local dead_pid = vim.fn.jobpid(dead)
    vim.fn.jobwait({ dead })
    t.wait(function() return vim.uv.kill(dead_pid, 0) ~= 0 end)
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

  it('are not written into a directory that others can write', function()
    vim.fn.mkdir(instances.dir(), 'p')
    vim.uv.fs_chmod(instances.dir(), tonumber('777', 8))
    local ok, err = instances.publish(facts)
    t.eq(false, ok)
    t.matches('is writable by other users', err)
  end)
end)

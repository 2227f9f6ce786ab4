local config = require('mcp-tools.config')
local install = require('mcp-tools.bridge.install')
local interpreter = require('mcp-tools.bridge.interpreter')
local notifications = require('notifications')
local project = require('mcp-tools.instances.project')
local t = require('helpers')

local function resolve()
  local got
  interpreter.resolve(function(runtime, fault) got = { runtime, fault } end)
  t.wait(function() return got end, 6000)
  return got[1], got[2]
end

--- Creates an environment that looks complete.
local function make_environment(stamp)
  local dir = interpreter.environment_dir()
  vim.fn.mkdir(dir .. '/bin', 'p')
  local lock = table.concat(vim.fn.readfile(project.plugin_dir() .. '/requirements.lock', 'b'), '\n')
  vim.fn.writefile({ stamp or vim.fn.sha256(lock) }, dir .. '/.lock-hash')
  vim.fn.writefile({ 'home = /usr/bin', 'version = 3.12.1' }, dir .. '/pyvenv.cfg')
  vim.uv.fs_symlink(vim.fn.exepath('python3'), dir .. '/bin/python')
  return dir
end

local function program(lines)
  local path = vim.fn.tempname()
  vim.fn.writefile(lines, path)
  vim.uv.fs_chmod(path, tonumber('755', 8))
  return path
end

describe('python', function()
  before_each(function()
    config.reset()
    vim.fn.delete(interpreter.environment_dir(), 'rf')
  end)

  it('needs an installation when the environment is missing', function()
    local runtime, fault = resolve()
    t.eq(nil, runtime)
    t.matches('not set up', fault.message)
    t.eq({ 'Run :McpTools install', true }, { fault.advice, fault.needs_install })
  end)

  it("needs an installation when the user's packages differ from their file", function()
    local dir, file = make_environment(), vim.fn.tempname()
    t.eq(nil, interpreter.packages_fault())
    config.setup({ python = { packages = file } })
    t.matches(vim.pesc(file) .. ' cannot be read', interpreter.packages_fault().message)
    vim.fn.writefile({ 'one' }, file)
    t.matches('are not installed', interpreter.packages_fault().message)
    t.eq('Run :McpTools install', interpreter.packages_fault().advice)
    vim.fn.writefile({ vim.fn.sha256('one\n') }, dir .. '/.packages-hash')
    t.eq(nil, interpreter.packages_fault())
    vim.fn.writefile({ 'two' }, file)
    t.matches('has changed since', interpreter.packages_fault().message)
    t.eq(nil, interpreter.environment_fault())
  end)

  it('finds the file of packages by its name', function()
    for name, path in pairs({
      ['tools.txt'] = vim.fn.stdpath('config') .. '/tools.txt',
      ['~/tools.txt'] = vim.uv.os_homedir() .. '/tools.txt',
      ['/a/$HOME/tools.txt'] = '/a/$HOME/tools.txt',
    }) do
      config.setup({ python = { packages = name } })
      t.eq(path, interpreter.packages_file())
    end
  end)

  it('does not install packages for another Python', function()
    config.setup({ python = { packages = '/tools.txt' }, bridge = { python = '/py' } })
    t.matches('packages', interpreter.packages_fault().message)
    t.matches('/py %-m pip install %-r /tools.txt', interpreter.packages_fault().advice)
    t.eq(nil, interpreter.packages_file())
  end)

  it('needs an installation when the environment belongs to another lock file', function()
    make_environment(('0'):rep(64))
    local _, fault = resolve()
    t.matches('another version of the plugin', fault.message)
    t.eq(true, fault.needs_install)
  end)

  it('needs an installation when the interpreter of the environment is gone', function()
    local dir = make_environment()
    vim.uv.fs_unlink(dir .. '/bin/python')
    vim.uv.fs_symlink('/nonexistent/python3.11', dir .. '/bin/python')
    local _, fault = resolve()
    t.eq(true, fault.needs_install)
  end)

  it('reads the state that scripts/install-env writes', function()
    local note = interpreter.environment_dir() .. '.lock'
    local function after(text)
      vim.fn.mkdir(vim.fs.dirname(note), 'p')
      vim.fn.writefile({ text }, note)
      return select(2, resolve())
    end
    local here = vim.uv.os_getpid()
    local fault = after(vim.json.encode({ pid = here }))
    t.matches('is being installed', fault.message)
    t.eq({ true, true }, { fault.under_way, fault.needs_install })

    vim.uv.fs_utime(note, os.time(), os.time() - 3600)
    fault = select(2, resolve())
    t.matches('was interrupted', fault.message)
    t.eq(nil, fault.under_way)

    local ended = vim.system({ 'true' })
    ended:wait()
    t.matches('was interrupted', after(vim.json.encode({ pid = ended.pid })).message)

    fault = after(vim.json.encode({ failed = 'no route to the index' }))
    t.matches('could not be installed: no route to the index', fault.message)
    t.eq({ 'Run :McpTools install', true }, { fault.advice, fault.needs_install })

    for _, text in ipairs({ '{}', '', '{"pid": "x"}', '[]', 'no JSON' }) do
      t.matches('is not set up', after(text).message)
    end

    local dir = make_environment()
    after(vim.json.encode({ pid = here })) -- another editor that only checks
    t.eq(dir .. '/bin/python', resolve().python)
    vim.uv.fs_unlink(note)
  end)

  it('runs the bridge with a complete environment, and reads its version from its files', function()
    local dir = make_environment()
    local runtime = resolve()
    t.eq({ dir .. '/bin/python', project.python_package(), 'process.main' }, runtime.command)
    t.eq({ 'environment', '3.12.1' }, { runtime.source, runtime.version })
  end)

  it('uses bridge.command unchanged', function()
    config.setup({ bridge = { command = { 'my-bridge', '--x y' } } })
    t.eq({ command = { 'my-bridge', '--x y' }, source = 'command' }, (resolve()))
    config.setup({ bridge = { command = 'my bridge' } })
    t.eq({ 'my bridge' }, resolve().command)
  end)

  it('runs bridge.python to get its version', function()
    config.setup({ bridge = { python = program({ '#!/bin/sh', 'echo 3.13.2' }) } })
    local runtime = resolve()
    t.eq({ '3.13.2', 'python' }, { runtime.version, runtime.source })
    t.eq({ project.python_package(), 'process.main' }, { runtime.command[2], runtime.command[3] })
  end)

  it('runs it outside of the working directory, whose modules it must not import', function()
    local python = program({ '#!/bin/sh', '[ "$1" = -I ] && echo 3.13.2; pwd > "$0.cwd"' })
    config.setup({ bridge = { python = python } })
    t.eq('3.13.2', resolve().version)
    t.eq({ project.plugin_dir() }, vim.fn.readfile(python .. '.cwd'))
  end)

  it('reports that bridge.python is too old, missing or broken, and what to do', function()
    for _, case in ipairs({
      { program({ '#!/bin/sh', 'echo 3.10.12' }), 'is Python 3%.10%.12, but the bridge needs 3%.11 or newer' },
      { '/nonexistent/python', '/nonexistent/python' },
      { program({ '#!/bin/sh', 'echo no such version >&2; exit 127' }), 'does not run: no such version' },
    }) do
      config.reset()
      config.setup({ bridge = { python = case[1] } })
      local runtime, fault = resolve()
      t.eq(nil, runtime)
      t.matches(case[2], fault.message)
      t.matches('Set bridge.python to Python 3.11 or newer', fault.advice)
    end
  end)
end)

describe('install', function()
  notifications.each()

  local function run(lines)
    local ended, err
    install.run({ command = { program(lines) } }, function(fault)
      ended, err = true, fault
    end)
    t.ok(install.is_running())
    t.wait(function() return ended end, 5000)
    t.ok(not install.is_running())
    return err
  end

  it('shows progress and reports the end', function()
    t.eq({ nil, nil }, { run({ '#!/bin/sh', 'echo step one', 'echo step two' }), (install.last_error()) })
    t.matches('step one', table.concat(require('mcp-tools.log').lines(5), '\n'))
    notifications.wait('is ready')
  end)

  it('fails with the last line of stderr', function()
    local err = run({ '#!/bin/sh', 'echo noise >&2', 'echo "no route to the index: check the proxy" >&2', 'exit 1' })
    t.eq({ 'no route to the index: check the proxy', err }, { err, (install.last_error()) })
    notifications.wait('check the proxy')
  end)

  it('uses the first Python on PATH that runs', function()
    local dir, path = vim.fn.tempname(), vim.env.PATH
    vim.fn.mkdir(dir)
    for name, lines in pairs({
      python3 = { '#!/bin/sh', 'echo "no such version is switched on" >&2; exit 127' },
      ['python3.11'] = { '#!/bin/sh', '[ "$2" = -c ] || { echo "asked $0" >&2; exit 1; }' },
    }) do
      vim.uv.fs_rename(program(lines), vim.fs.joinpath(dir, name))
    end
    local err
    vim.env.PATH = dir
    install.run({}, function(fault) err = fault end)
    t.wait(function() return err end, 5000)
    vim.env.PATH = path
    t.eq(('asked %s/python3.11'):format(dir), err)
  end)

  it('does not run twice at a time', function()
    local ended = {}
    local command = { program({ '#!/bin/sh', 'sleep 0.2; exit 1' }) }
    install.run({ command = command }, function(err) table.insert(ended, { 'first', err }) end)
    install.run()
    install.run({}, function(err) table.insert(ended, { 'second', err }) end)
    notifications.wait('already running')
    t.wait(function() return #ended == 2 end)
    local err = install.last_error()
    t.eq({ { 'first', err }, { 'second', err } }, ended)
  end)
end)

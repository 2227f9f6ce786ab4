local config = require('mcp-tools.config')
local spec = require('mcp-tools.mounts.spec')
local t = require('helpers')
local wanted = require('mcp-tools.mounts.wanted')

describe('the definition of a mount', function()
  it('is normalized', function()
    local mount = assert(spec.check('fs', { command = 'server', args = { '--root', '/x' }, env = { A = 'b' } }))
    t.eq({ 'server', '--root', '/x' }, mount.command)
    t.eq({ { A = 'b' }, {}, {}, {} }, { mount.env, mount.headers, mount.secrets, mount.allow })
    t.eq(60000, mount.start_timeout)
    t.eq({ 'server', 'a', 'b' }, spec.check('fs', { command = { 'server', 'a' }, args = { 'b' } }).command)
    t.eq('https://x/mcp', spec.check('x', { url = 'https://x/mcp' }).url)
  end)

  it('is a copy of what was passed', function()
    local given = { command = { 'server' }, env = { A = 'b' } }
    local mount = spec.check('fs', given)
    given.command[1], given.env.A = 'other', 'other'
    t.eq({ { 'server' }, { A = 'b' } }, { mount.command, mount.env })
  end)

  for name, case in pairs({
    ['misspelt field'] = { { comand = { 'x' }, url = 'http://x' }, "unknown field 'comand', did you mean command?" },
    ['a list'] = { { 'server', url = 'http://x' }, "unknown field '1'" },
    ['neither'] = { {}, 'must have either command or url' },
    ['both'] = { { command = { 'x' }, url = 'http://x' }, 'must have either command or url' },
    ["a shell's line"] = { { command = 'npx -y server' }, 'command contains spaces: pass a list' },
    ['no program'] = { { command = {} }, 'command must begin with an executable' },
    ['a number in a list'] = { { command = { 'x' }, args = { 1 } }, 'args[1] must be a string' },
    ['a number in a map'] = { { command = { 'x' }, env = { A = 1 } }, 'env.A must be a string without line breaks' },
    ['a header of two lines'] = { { url = 'http://x', headers = { A = 'b\nc' } }, 'headers.A must be a string without' },
    ['another scheme'] = { { url = 'file:///x' }, 'url must begin with http:// or https://' },
    ['an unknown capability'] = { { url = 'http://x', allow = { 'sampeling' } }, "'sampeling'" },
    ['headers for a program'] = { { command = { 'x' }, headers = {} }, 'headers cannot be used with command' },
    ['variables for a URL'] = { { url = 'http://x', env = {} }, 'env cannot be used with url' },
    ['half a millisecond'] = { { url = 'http://x', timeout = 0.5 }, 'timeout must be a number of milliseconds' },
    ['no table'] = { 7, 'must be a table such as' },
  }) do
    it('is refused: ' .. name, function()
      local mount, fault = spec.check('fs', case[1])
      t.eq(nil, mount)
      t.ok(fault:find("mount 'fs': ", 1, true) and fault:find(case[2], 1, true), fault)
    end)
  end

  it('reports all faults at once', function()
    local _, fault = spec.check('1', { command = 'a b', env = { A = 1 } })
    t.eq(3, #vim.split(fault, '\n'), fault)
  end)

  it('has a name that tools and URIs can begin with', function()
    for _, name in ipairs({ 'fs', 'Fs-2', 'a_b' }) do
      t.eq(nil, spec.name_fault(name))
    end
    for _, name in ipairs({ '', '1a', 'a__b', 'a_', 'a.b', 'a b', ('a'):rep(25), 7, false }) do
      t.ok(spec.name_fault(name), tostring(name))
    end
  end)
end)

it('mount() raises all faults where it was called', function()
  local ok, err = pcall(require('mcp-tools').mount, 'fs', { comand = { 'x' } })
  t.eq(false, ok)
  t.matches('did you mean command', err)
  t.eq(false, require('mcp-tools').unmount('fs'))
end)

---@return string[] lines `name from` or the fault
local function collected(made)
  return vim.tbl_map(
    function(each) return each.fault or ('%s by %s'):format(each.name, each.from) end,
    (wanted.collect(made or {}))
  )
end

describe('wanted mounts', function()
  after_each(config.reset)

  it('come from the options, the list of tools and mount()', function()
    config.setup({
      tools = { 'buffer', { command = { '/opt/git-server' } }, { url = 'http://localhost:1/mcp', name = 'web' } },
      mounts = { fs = { command = { 'fs' } }, '.no-such-file.json' },
    })
    local actual = collected({ made = { command = { 'x' } } })
    t.eq({ 'made by mount()', 'fs by setup{mounts}', 'git-server by setup{tools}', 'web by setup{tools}' }, actual)
  end)

  it('do not exist by default', function()
    t.eq({}, collected({}))
    config.setup({ tools = { 'buffer', { name = 'x', description = 'x', execute = print } } })
    t.eq({}, collected({}))
  end)

  it('have names that differ in URIs', function()
    config.setup({
      mounts = { ['a-b'] = { command = { 'x' } }, a_b = { command = { 'y' } }, A_B = { command = { 'z' } } },
    })
    local lines = collected()
    t.eq("mount 'a-b' of setup{mounts}: the name is already used by setup{mounts}", lines[2])
    t.eq("mount 'a_b' of setup{mounts}: the name is already used by setup{mounts}", lines[3])
  end)

  it('with a fault do not affect the others', function()
    config.setup({ mounts = { bad = { comand = {} }, good = { command = { 'x' } } } })
    local lines = collected()
    t.matches("mount 'bad': unknown field 'comand'", lines[1])
    t.eq('good by setup{mounts}', lines[2])
  end)

  it('come from files, which may be missing', function()
    local file = vim.fn.tempname() .. '.json'
    config.setup({ mounts = { file, '.no-such-file.json', { file = file, secrets = { 'X' } } } })
    t.eq({}, collected())
    vim.fn.writefile({
      '{"mcpServers": {"a": {"command": "x", "type": "stdio", "autoApprove": []}, "b": 7,',
      '"c": {"url": "http://x", "type": "sse"}, "d": {"command": "y", "disabled": true}}}',
    }, file)
    local lines = collected()
    t.eq(3, #lines)
    t.eq('a by ' .. vim.fs.normalize(file), lines[1])
    t.matches("mount 'b': must be a table", lines[2])
    t.matches("mount 'c': type 'sse'", lines[3])
    vim.fn.writefile({ '{' }, file)
    t.matches('invalid JSON', collected()[1])
  end)

  it('from a file can have only secrets as another field', function()
    local file = vim.fn.tempname() .. '.json'
    vim.fn.writefile({ '{"mcpServers": {}}' }, file)
    config.setup({ mounts = { { file = file, secret = { 'X' } } } })
    t.matches("unknown field 'secret' next to file; allowed: secrets", collected()[1])
  end)
end)

describe('the configuration that the bridge gets', function()
  ---@return table? resolved, string? fault
  local function resolve(given, foreign)
    local mount = assert(spec.check('m', given))
    mount.foreign = foreign
    return spec.resolve('m', mount, 3)
  end

  before_each(function()
    vim.env.MCPT_A, vim.env.MCPT_EMPTY = 'secret-value-a', ''
  end)

  it('contains the values of variables, which the log hides', function()
    local out =
      assert(resolve({ command = { 'x' }, env = { T = 'a ${env:MCPT_A} b', U = 'plain' }, secrets = { 'MCPT_A' } }))
    t.eq({ T = 'a secret-value-a b', U = 'plain' }, { T = out.env.T, U = out.env.U })
    t.eq({ { 'secret-value-a' }, 3 }, { out.secrets, out.generation })
    t.eq('of <hidden>', require('mcp-tools.log').strip('of secret-value-a'))
  end)

  it('contains values unchanged, whatever they contain', function()
    vim.env.MCPT_A = 'pass${word}and${env:MCPT_B}'
    local out =
      assert(resolve({ command = 'x', env = { T = '${env:MCPT_A}-${MCPT_A}' }, secrets = { 'MCPT_A' } }, true))
    t.eq(vim.env.MCPT_A .. '-' .. vim.env.MCPT_A, out.env.T)
  end)

  it('runs a command of the user outside the project, unless its cwd is there', function()
    local project = require('mcp-tools.instances.project')
    local out = assert(resolve({ command = { 'npx', '-y', 'x' } }))
    t.ok(not require('mcp-tools.registry.source').is_project_file(out.cwd, project.root()))
    t.eq({ {}, 'rwx------' }, { vim.fn.readdir(out.cwd), (vim.fn.getfperm(out.cwd)) })
    t.eq(nil, out.env.PYTHONSAFEPATH)
    out = assert(resolve({ command = { 'python', '-m', 'x' }, cwd = '.' }))
    t.eq({ project.root(), '1' }, { out.cwd, out.env.PYTHONSAFEPATH })
    out = assert(resolve({ command = { 'python', '-m', 'x' }, cwd = '.', env = { PYTHONSAFEPATH = '' } }))
    t.eq('', out.env.PYTHONSAFEPATH)
    local mount = assert(spec.check('m', { command = { 'python', '-m', 'x' } }))
    mount.of_project = true
    out = assert(spec.resolve('m', mount, 1))
    t.eq({ project.root() }, { out.cwd, out.env.PYTHONSAFEPATH })
  end)

  it(
    'does not expand variables in its directory',
    function() t.eq('/srv/$MCPT_A', assert(resolve({ command = { 'x' }, cwd = '/srv/$MCPT_A' })).cwd) end
  )

  it('lists values that look like secrets', function()
    local out =
      assert(resolve({ url = 'http://u:pass-word@x/?k=12345678', headers = { Authorization = 'Bearer 123456789' } }))
    for _, secret in ipairs({ 'Bearer 123456789', '123456789', 'u:pass-word', 'k=12345678' }) do
      t.ok(vim.list_contains(out.secrets, secret), secret)
    end
    local lengths = vim.tbl_map(string.len, out.secrets)
    local sorted = vim.deepcopy(lengths)
    table.sort(sorted, function(a, b) return a > b end)
    t.eq(sorted, lengths)
  end)

  for name, case in pairs({
    ['a variable that is not listed'] = { { url = 'http://x', headers = { A = '${env:MCPT_A}' } }, 'headers.A uses' },
    ['one that is empty'] = { { url = 'http://x/${env:MCPT_EMPTY}', secrets = { 'MCPT_EMPTY' } }, 'which is not set' },
    ['one on the command line'] = { { command = { 'x', '${env:MCPT_A}' }, secrets = { 'MCPT_A' } }, 'use env' },
    ['one in the URL that is not listed'] = { { url = 'http://x/${env:MCPT_A}' }, "mount 'm': url uses" },
  }) do
    it('is refused for ' .. name, function()
      local out, fault = resolve(case[1])
      t.eq(nil, out)
      t.ok(fault:find(case[2], 1, true), fault)
      t.eq(nil, fault:find('secret-value-a', 1, true))
    end)
  end

  it('expands the variable syntax of other clients only in their files', function()
    local env = { A = '${MCPT_A}', B = '${MCPT_NONE:-default}' }
    local given = { command = { 'x' }, env = env, secrets = { 'MCPT_A' } }
    local own, foreign = assert(resolve(given)), assert(resolve(given, true))
    t.eq({ '${MCPT_A}', '${MCPT_NONE:-default}' }, { own.env.A, own.env.B })
    t.eq({ 'secret-value-a', 'default' }, { foreign.env.A, foreign.env.B })
  end)
end)

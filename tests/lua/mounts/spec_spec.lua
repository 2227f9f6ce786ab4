local t = require('helpers')
local spec = require('mcp-tools.mounts.spec')

describe('a spec of a mount', function()
  it('comes in one form', function()
    local mount = assert(spec.check('fs', { command = 'server', args = { '--root', '/x' }, env = { A = 'b' } }))
    t.eq({ 'server', '--root', '/x' }, mount.command)
    t.eq(
      { { A = 'b' }, {}, {}, {}, 60000 },
      { mount.env, mount.headers, mount.secrets, mount.allow, mount.start_timeout }
    )
    t.eq({ 'server', 'a', 'b' }, spec.check('fs', { command = { 'server', 'a' }, args = { 'b' } }).command)
    t.eq('https://x/mcp', spec.check('x', { url = 'https://x/mcp' }).url)
  end)

  it('is not changed by what is done to it later', function()
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
    ['a header of two lines'] = {
      { url = 'http://x', headers = { A = 'b\nc' } },
      'headers.A must be a string without line breaks',
    },
    ['another scheme'] = { { url = 'file:///x' }, 'url must begin with http:// or https://' },
    ['a right that is none'] = { { url = 'http://x', allow = { 'sampeling' } }, "'sampeling' is none of" },
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

  it('names every fault at once', function()
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

describe('mount()', function()
  it('raises every fault where it was called', function()
    local ok, err = pcall(require('mcp-tools').mount, 'fs', { comand = { 'x' } })
    t.eq(false, ok)
    t.matches('did you mean command', err)
    t.eq(false, require('mcp-tools').unmount('fs'))
  end)
end)

local Registry = require('mcp-tools.registry.store')
local config = require('mcp-tools.config')
local project = require('mcp-tools.instances.project')
local resource = require('mcp-tools.calls.kinds.resource')
local t = require('helpers')

local base = vim.uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/resolver'
local root = base .. '/project'

local function write(path, text) require('editor_project').write(path, text or 'x') end

local function registry()
  local made = Registry.new()
  local function add(def)
    def.name, def.read = def.name or 'n', function() end
    assert(made:add('resources', def))
  end
  add({ uri = 'nvim://fixed', name = 'fixed' })
  add({ uri_template = 'nvim://thing/{id}', name = 'thing' })
  add({ uri_template = 'nvim://thing/{id}/data', name = 'data' })
  add({ uri_template = 'any://{+rest}', name = 'rest' })
  add({ uri_template = 'any://one/{id}', name = 'one' })
  add({ uri_template = 'nvim://buffer/{+path}', name = 'buffer', paths = { 'path' } })
  add({ uri_template = 'file:///{+path}', name = 'file', paths = { 'path' } })
  return made
end

local function find(uri) return resource.find(registry(), uri) end

--- Every failure is the same.
local function refused(uri)
  local located, err = find(uri)
  t.eq({ nil, { code = 'not_found', message = 'Resource not found' } }, { located, err })
end

before_each(function()
  project.fix(root)
  write(root .. '/a.lua', 'inside')
  write(root .. '/sub/b c.lua')
  write(root .. '/.env', 'SECRET=1')
  write(root .. '/%2e%2e', 'a name that looks encoded')
  write(base .. '/outside.txt', 'outside')
  write(base .. '/project-twin/a.lua')
  vim.uv.fs_symlink(base .. '/outside.txt', root .. '/link.txt')
  vim.uv.fs_symlink(base, root .. '/up')
  vim.uv.fs_symlink(root .. '/.env', root .. '/harmless.txt')
  vim.uv.fs_symlink(root .. '/a.lua', root .. '/inner-link.lua')
  vim.uv.fs_symlink(root .. '/loop', root .. '/loop')
end)

after_each(function()
  project.fix()
  vim.cmd('silent! %bwipeout!')
  config.reset()
  vim.fn.delete(base, 'rf')
end)

describe('a URI', function()
  it('finds the fixed resource first, then the most specific template', function()
    for uri, name in pairs({
      ['nvim://fixed'] = 'fixed',
      ['nvim://thing/1'] = 'thing',
      ['nvim://thing/1/data'] = 'data',
      ['any://one/1'] = 'one',
      ['any://one/1/other'] = 'rest',
      ['nvim://buffer/a.lua'] = 'buffer',
    }) do
      t.eq(name, assert(find(uri)).resource.name)
    end
  end)

  it('passes real paths to the handler', function()
    local file = 'file://' .. root
    for uri, path in pairs({
      ['nvim://buffer/a.lua'] = '/a.lua',
      ['nvim://buffer/./sub/../a.lua'] = '/a.lua',
      ['nvim://buffer/' .. root .. '/a.lua'] = '/a.lua',
      ['nvim://buffer/sub/b%20c.lua'] = '/sub/b c.lua',
      ['nvim://buffer/inner-link.lua'] = '/a.lua',
      ['nvim://buffer/new/file.lua'] = '/new/file.lua',
      [file .. '/a.lua'] = '/a.lua',
      [file .. '//sub///b%20c.lua'] = '/sub/b c.lua',
      [file .. '/%61.lua'] = '/a.lua',
      [file .. '/%252e%252e'] = '/%2e%2e',
      [file .. '/up/project/a.lua'] = '/a.lua',
    }) do
      t.eq(root .. path, assert(find(uri)).params.path)
    end
  end)

  it('never resolves to a file outside the project', function()
    local file = 'file://' .. root
    for _, uri in ipairs({
      'file:///etc/passwd',
      'file:///etc/../etc/passwd',
      file .. '/../outside.txt',
      file .. '/sub/../../outside.txt',
      file .. '/%2e%2e/outside.txt',
      file .. '/%2E%2E%2Foutside.txt',
      file .. '/..%2foutside.txt',
      file .. '/link.txt',
      file .. '/up/outside.txt',
      file .. '/up/project-twin/a.lua',
      file .. '-twin/a.lua',
      file .. '/loop/../../outside.txt',
      'file:////etc/passwd',
      'file:///' .. '../' .. 'etc/passwd',
      'nvim://buffer/../outside.txt',
      'nvim://buffer//etc/passwd',
      'nvim://buffer/up/outside.txt',
      'nvim://buffer/link.txt',
      'nvim://buffer/~/.bashrc',
      'nvim://buffer/file:///etc/passwd',
      'nvim://buffer/%2Fetc%2Fpasswd',
    }) do
      local located = find(uri)
      t.ok(
        not located or vim.startswith(located.params.path, root .. '/'),
        uri .. ' resolves to ' .. vim.inspect(located)
      )
    end
    for _, uri in ipairs({ 'file:///etc/passwd', file .. '/link.txt', file .. '/%2e%2e/outside.txt' }) do
      refused(uri)
    end
  end)

  it('never resolves to a sensitive file', function()
    local file = 'file://' .. root
    vim.cmd.edit(root .. '/a.lua')
    vim.b.sensitive = true
    for _, uri in ipairs({
      file .. '/.env',
      file .. '/.ENV',
      file .. '/%2eenv',
      file .. '/sub/../.env',
      file .. '/harmless.txt',
      'nvim://buffer/.env',
      'nvim://buffer/harmless.txt',
      'nvim://buffer/a.lua',
      'nvim://buffer/inner-link.lua',
      file .. '/a.lua',
    }) do
      refused(uri)
    end
  end)

  it('is refused if it is malformed', function()
    local malformed = [[
      a.lua /etc/passwd //etc/passwd nvim: nvim:fixed NVIM://fixed File:///a http://127.0.0.1/ data:text/plain,x
      javascript:alert(1) ftp://x/y nvim://buffer/a.lua%00 nvim://buffer/a.lua%00.txt nvim://buffer/% nvim://buffer/%4
      nvim://buffer/%gg nvim://buffer/a% nvim://buffer/ file:/// file://host/a.lua
    ]]
    local list = vim.split(vim.trim(malformed), '%s+')
    vim.list_extend(list, { '', 'nvim://fixed ', ' nvim://fixed', 'nvim://buffer/a.lua\0', 'nvim://buffer/a\nb' })
    local long, localhost = 'nvim://thing/' .. ('a'):rep(9000), 'file://localhost' .. root .. '/a.lua'
    for _, uri in ipairs(vim.list_extend(list, { localhost, 'file:' .. root .. '/a.lua', long })) do
      refused(uri)
    end
    for _, uri in ipairs({ 5, {}, true }) do
      refused(uri)
    end
    refused(nil)
  end)

  it('is logged with the reason, which the client does not get', function()
    refused('file:///etc/passwd')
    local log = table.concat(require('mcp-tools.log').lines(5), '\n')
    t.matches('resource file:///etc/passwd cannot be read: /etc/passwd is outside the project', log)
    refused('nvim://fixed\27[31m')
    t.ok(not table.concat(require('mcp-tools.log').lines(5), '\n'):find('\27', 1, true))
  end)
end)

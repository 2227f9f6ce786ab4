local project = require('editor_project')
local t = require('helpers')

local function search(query, path) return project.prompt('search_code', { query = query, path = path }) end

--- An executable before all others in PATH.
local function with_program(name, text, fn)
  local path = vim.env.PATH
  vim.uv.fs_chmod(project.write(project.base .. '/bin/' .. name, text), 493)
  vim.env.PATH = project.base .. '/bin:' .. path
  local ok, err = pcall(fn)
  vim.env.PATH = path
  assert(ok, err)
end

project.each(nil, project.init)

describe('search_code', function()
  it('judges each file by its full name', function()
    project.write('.ssh/a\nb.lua', 'needle hidden')
    project.write('dir\nx/.env', 'needle hidden')
    project.write('c\nd.lua', 'needle shown')
    local text = search('needle')
    t.ok(not text:find('hidden', 1, true))
    t.matches('c%?d%.lua:1: needle shown', text)
    project.write('e.lua', 'needle e')
    t.ok(not search('needle', 'e.lua'):find('shown', 1, true))
    t.eq('not_found', project.run('prompt', 'search_code', { query = 'a', path = '/etc' }).error.code)
  end)

  it('does not follow a directory out of the project', function()
    project.write('inner/a.lua', 'needle inside')
    project.git('add', '-A')
    project.write(project.base .. '/outer/a.lua', 'needle hidden')
    vim.fn.delete(project.root .. '/inner', 'rf')
    vim.uv.fs_symlink(project.base .. '/outer', project.root .. '/inner')
    t.ok(not search('needle'):find('hidden', 1, true))
  end)

  it('treats the query as text', function()
    project.write('a.lua', 'x --open-files-in-pager=x y\n:(glob)*\n\\w+ 100%\n')
    for _, query in ipairs({ '--open-files-in-pager=x', ':(glob)*', '\\w+ 100%', '-y', '--' }) do
      local outcome = project.run('prompt', 'search_code', { query = query })
      t.eq({ nil, query ~= '-y' }, { outcome.error, outcome.payload.text:find('a.lua:', 1, true) ~= nil })
    end
    local long = project.run('prompt', 'search_code', { query = ('x'):rep(1001) })
    t.eq('validation_error', long.error.code)
    t.matches('found nothing', search(('x'):rep(1000)))
    t.matches('found nothing', search('.*'))
    t.eq('validation_error', project.run('prompt', 'search_code', { query = 'a\nb' }).error.code)
  end)

  it('is limited', function()
    for i = 1, 30 do
      project.write(i .. '.txt', ('needle %s\n'):format(('x'):rep(1000)):rep(10))
    end
    local text = search('needle')
    t.matches('Only the first 100 lines', text)
    t.ok(#text < 40 * 1024)
  end)

  it('runs no executable of the project', function()
    local script = project.write('rg', '#!/bin/sh\ntouch ' .. project.base .. '/ran\n')
    vim.uv.fs_chmod(script, 493)
    vim.uv.fs_symlink('rg', project.root .. '/git')
    project.git('config', 'core.fsmonitor', script)
    project.git('config', 'submodule.recurse', 'true')
    vim.fn.delete(project.base .. '/ran')
    project.write('a.lua', 'needle')
    local path = vim.env.PATH
    vim.env.PATH = '.:' .. path
    local text = search('needle')
    vim.env.PATH = path
    t.matches('a%.lua:1: needle', text)
    t.eq(nil, vim.uv.fs_stat(project.base .. '/ran'))
  end)

  it('works when programs fail, and without a repository', function()
    vim.fn.delete(project.root .. '/.git', 'rf')
    project.write('a.lua', 'needle')
    with_program(
      'rg',
      '#!/bin/sh\necho broken >&2; exit 2\n',
      function() t.matches('\na%.lua:1: needle\n', search('needle')) end
    )
  end)

  it('reports when not all files were searched', function()
    project.write('a.lua', 'needle')
    project.write('b.lua', 'needle')
    local engines = require('mcp-tools.editor.search.engine')
    local files = engines.files
    engines.files = function(...) return (files(...)), true end
    local text = search('needle')
    engines.files = files
    t.matches('Only the first 2 lines are shown', text)
  end)
end)

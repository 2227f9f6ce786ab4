-- slow
-- The contents of a repository are sensitive, whatever its name and the way of access.

local config = require('mcp-tools.config')
local sensitive = require('mcp-tools.privacy.sensitive')
local project = require('editor_project')
local t = require('helpers')

local SECRET = 'hunter2'

local function git(folder, ...) return project.git('-C', folder, ...) end

--- A bare repository with a password in its configuration, and one in its history.
---@param name string
---@return string directory
local function bare(name)
  local work, folder = project.base .. '/work', project.root .. '/' .. name
  vim.fn.delete(work, 'rf')
  vim.fn.mkdir(work, 'p')
  git(work, 'init', '-q', '-b', 'main')
  project.write(work .. '/.env', 'KEY=' .. SECRET .. '\n')
  git(work, 'add', '-f', '.')
  git(work, 'commit', '-qm', 'first')
  vim.fn.mkdir(vim.fs.dirname(folder), 'p')
  git(work, 'clone', '-q', '--bare', '.', folder)
  git(folder, 'config', 'remote.origin.url', 'https://me:' .. SECRET .. '@example.org/x')
  return folder
end

project.each(nil, function()
  project.init()
  config.setup({ tools = { 'file' }, approval = { groups = { file = 'allow' } } })
end)

describe('a bare repository in the project', function()
  it('cannot be read by a resource or tool', function()
    local folder = bare('sub/store')
    local object = assert(vim.fn.glob(folder .. '/objects/*/*', true, true)[1])
    for _, path in ipairs({ folder .. '/config', object, folder .. '/objects/later' }) do
      t.eq({ path, true }, { path, sensitive.is_sensitive(path) })
      t.eq('not_found', project.run('resource', 'file://' .. path).error.code)
      for _, tool in ipairs({ 'file_read', 'file_checksum' }) do
        project.refused(tool, 'access_denied', 'sensitive', { path = path })
      end
    end
    project.write('link/x', '')
    vim.uv.fs_symlink('../sub/store/config', project.root .. '/link/plain')
    t.eq('not_found', project.run('resource', 'file://' .. project.root .. '/link/plain').error.code)
    project.refused('file_read', 'access_denied', 'sensitive', { path = 'link/plain' })
    t.matches('^0 matches in 0 files', project.text('file_search', { query = SECRET }))
  end)

  it('is not listed with the files of the project, by any tool', function()
    bare('old/store')
    project.write('old/plain/HEAD', 'x')
    project.write('a.txt', 'x')
    local expected = { 'a.txt', 'old/plain/HEAD' }
    t.eq({ expected, 'git' }, (function(value) return { value.files, value.source } end)(project.call('file_list', {})))
    t.eq(
      { expected, 'walk' },
      (function(value) return { value.files, value.source } end)(project.call('file_list', { ignored = true }))
    )
  end)

  it('is still one when it is damaged, if its name says so', function()
    local folder = bare('broken.git')
    vim.fn.delete(folder .. '/HEAD')
    t.ok(sensitive.is_sensitive(folder .. '/config'))
    project.write('site.git/index.html', 'x')
    t.eq(false, sensitive.is_sensitive(project.root .. '/site.git/index.html'))
  end)

  it('does not make working trees in its directory sensitive', function()
    local folder = bare('around.git')
    git(folder, 'worktree', 'add', '-q', 'main')
    project.write('around.git/main/src/a.lua', 'x')
    t.eq(false, sensitive.is_sensitive(folder .. '/main/src/a.lua'))
    t.ok(sensitive.is_sensitive(folder .. '/main/.env'))
    t.ok(sensitive.is_sensitive(folder .. '/worktrees/main/HEAD'))
    t.ok(sensitive.is_sensitive(folder .. '/packed-refs'))
  end)

  it('matches the pattern `.git`', function()
    local folder = bare('chosen')
    config.setup({ sensitive = { patterns = { '**/.git/config' } } })
    t.eq({ true, false }, { sensitive.is_sensitive(folder .. '/config'), sensitive.is_sensitive(folder .. '/HEAD') })
  end)
end)

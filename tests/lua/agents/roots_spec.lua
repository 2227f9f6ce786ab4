-- The directories in which agents find this editor.

local roots = require('mcp-tools.agents.roots')
local t = require('helpers')

local top, before

local function git(directory, ...)
  local command = { 'git', '-c', 'user.name=a', '-c', 'user.email=a@example.org', '-C', directory, ... }
  t.eq(0, vim.system(command):wait().code)
end

local function repository(name)
  local path = vim.fs.joinpath(top, name)
  vim.fn.mkdir(path, 'p')
  git(path, 'init', '-q')
  git(path, 'commit', '-q', '--allow-empty', '-m', 'first')
  return path
end

local function found_in(directory)
  vim.cmd.cd(vim.fn.fnameescape(directory))
  local found
  roots.find(function(list) found = list end)
  return t.wait(function() return found end, 5000)
end

before_each(function()
  before = vim.uv.cwd()
  local path = vim.fn.tempname()
  vim.fn.mkdir(path, 'p')
  top = vim.uv.fs_realpath(path)
end)
after_each(function() vim.cmd.cd(vim.fn.fnameescape(before)) end)

it('include the working trees of a repository, from each of them', function()
  local bank = repository('bank')
  local tree, claimed = vim.fs.joinpath(top, 'tree'), vim.fs.joinpath(top, 'claimed')
  git(bank, 'worktree', 'add', '-q', tree)
  git(bank, 'worktree', 'add', '-q', claimed)
  vim.uv.fs_unlink(claimed .. '/.git')
  git(claimed, 'init', '-q') -- it does not say that it belongs to the other repository
  for _, directory in ipairs({ bank, tree }) do
    local found = found_in(directory)
    t.ok(vim.list_contains(found, bank) and vim.list_contains(found, tree), vim.inspect(found))
    t.ok(not vim.list_contains(found, claimed))
  end
end)

it('do not include the directory of another repository', function()
  local bank = repository('bank')
  local link, file = vim.fs.joinpath(top, 'link'), vim.fs.joinpath(top, 'file')
  vim.fn.mkdir(link)
  vim.uv.fs_symlink('../bank/.git', link .. '/.git')
  vim.fn.mkdir(file .. '/gd', 'p')
  vim.fn.writefile({ 'gitdir: gd' }, file .. '/.git')
  vim.fn.writefile({ '../../bank/.git' }, file .. '/gd/commondir')
  vim.fn.writefile({ 'ref: refs/heads/main' }, file .. '/gd/HEAD')
  for _, directory in ipairs({ link, file }) do
    local found = found_in(directory)
    t.ok(vim.list_contains(found, directory))
    t.ok(not vim.list_contains(found, bank), vim.inspect(found))
  end
end)

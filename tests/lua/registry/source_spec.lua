local source = require('mcp-tools.registry.source')
local t = require('helpers')

local uv = vim.uv
local base = uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/source-spec'
local project, outside = base .. '/project', base .. '/outside'

local function file(path)
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  vim.fn.writefile({}, path)
  return path
end

local function link(to, path)
  vim.fn.mkdir(vim.fs.dirname(path), 'p')
  assert(uv.fs_symlink(to, path))
  return path
end

before_each(function()
  file(project .. '/own.lua')
  file(outside .. '/theirs.lua')
end)

after_each(function()
  vim.fn.delete(base, 'rf')
end)

describe('a file is the project’s', function()
  it('when it lies there, whatever leads to it', function()
    t.eq(true, source.lies_in(project .. '/own.lua', project))
    t.eq(true, source.lies_in(link(project .. '/own.lua', outside .. '/to-own.lua'), project))
    t.eq(true, source.lies_in(link(project, outside .. '/folder') .. '/own.lua', project))
    t.eq(false, source.lies_in(outside .. '/theirs.lua', project))
    t.eq(false, source.lies_in(project .. '-other/own.lua', project))
  end)

  it('when a link there leads out of it, be it to a file, a folder, or another link', function()
    for _, path in ipairs({
      link(outside .. '/theirs.lua', project .. '/absolute.lua'),
      link('../outside/theirs.lua', project .. '/relative.lua'),
      link(outside, project .. '/folder') .. '/theirs.lua',
      link('absolute.lua', project .. '/again.lua'),
      link(project .. '/absolute.lua', outside .. '/in-and-out.lua'),
      link(project .. '/folder', base .. '/alias') .. '/theirs.lua',
      link(project, base .. '/spelled') .. '/absolute.lua',
      project .. '/folder/../project/absolute.lua',
    }) do
      t.eq({ path, true }, { path, source.lies_in(path, project) })
    end
  end)

  it('also when its links lead nowhere or in a circle', function()
    t.eq(true, source.lies_in(link(outside .. '/none', project .. '/dangling'), project))
    link('b', project .. '/a')
    t.eq(true, source.lies_in(link('a', project .. '/b'), project))
    t.eq(false, source.lies_in(link('c', outside .. '/c'), project))
  end)
end)

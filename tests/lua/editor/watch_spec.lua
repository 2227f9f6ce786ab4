-- every Neovim
local project = require('editor_project')
local t = require('helpers')
local watch = require('mcp-tools.editor.watch')

project.each()

describe('a watched file', function()
  local function watched(name)
    local seen = { count = 0 }
    seen.stop = watch.file(project.root .. '/' .. name, function() seen.count = seen.count + 1 end)
    --- Waits for a notification after `fn`.
    function seen.after(fn)
      vim.wait(50)
      local before = seen.count
      fn()
      t.wait(function() return seen.count > before end)
    end
    return seen
  end

  it('is noticed in a directory that does not exist yet, is deleted, and created again', function()
    local seen = watched('new/deep/a.txt')
    seen.after(function() project.write('new/deep/a.txt', 'one') end)
    seen.after(function() project.write('new/deep/a.txt', 'two') end)
    for _ = 1, 2 do
      seen.after(function() vim.fn.delete(project.root .. '/new', 'rf') end)
      seen.after(function() project.write('new/deep/a.txt', 'three') end)
    end
    seen.after(function()
      assert(vim.uv.fs_rename(project.root .. '/new/deep', project.root .. '/new/old'))
      vim.fn.mkdir(project.root .. '/new/deep')
    end)
    seen.after(function() project.write('new/deep/a.txt', 'four') end)
    seen.stop()
    local before = seen.count
    project.write('new/deep/a.txt', 'five')
    vim.wait(100)
    t.eq(before, seen.count)
  end)

  it('is noticed when a directory above it is renamed or replaced', function()
    project.write('top/middle/deep/a.txt', 'one')
    project.write('other/middle/deep/a.txt', 'two')
    local seen = watched('top/middle/deep/a.txt')
    seen.after(function() assert(vim.uv.fs_rename(project.root .. '/top', project.root .. '/old')) end)
    seen.after(function() assert(vim.uv.fs_rename(project.root .. '/other', project.root .. '/top')) end)
    seen.after(function() project.write('top/middle/deep/a.txt', 'three') end)
    seen.stop()
  end)

  it('is noticed by writes of the editor if the system has no more watches', function()
    local new = vim.uv.new_fs_event
    vim.uv.new_fs_event = function() return nil, 'EMFILE: too many open files', 'EMFILE' end
    local path = project.write('a.txt', 'one')
    local ok, seen = pcall(watched, 'a.txt')
    vim.uv.new_fs_event = new
    t.ok(ok, seen)
    vim.cmd.edit(path)
    seen.after(function() vim.cmd('silent write!') end)
    seen.stop()
  end)
end)

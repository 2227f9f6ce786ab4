-- every Neovim
local disk = require('mcp-tools.editor.buffer.disk')
local project = require('editor_project')
local t = require('helpers')

local api = vim.api

describe('a change on disk that Neovim has reported', function()
  before_each(function()
    project.open()
    project.offer({ 'file' })
    project.write('a.txt', 'one\ntwo\n')
    vim.cmd('silent edit a.txt')
  end)
  after_each(project.close)

  --- Changes the file and lets Neovim report it, as when the focus returns.
  local function change_on_disk()
    vim.uv.fs_utime(project.write('a.txt', 'one\ntwo\nprecious\n'), 9, 9)
    vim.cmd('silent! checktime')
  end

  it('is a conflict with unsaved changes, and is not overwritten', function()
    api.nvim_buf_set_lines(0, 0, 1, false, { 'user' })
    change_on_disk()
    local edits = { { old_text = 'two', new_text = 'TWO' } }
    project.refused('file_edit', 'stale', 'a%.txt', { path = 'a.txt', save = true, edits = edits })
    t.eq('one\ntwo\nprecious\n', project.disk('a.txt'))
    t.eq('conflict', disk.check(0 + api.nvim_get_current_buf()))
    vim.cmd('silent write!')
    t.eq('same', disk.check(api.nvim_get_current_buf()))
  end)

  it('is read if there are no unsaved changes and the user has ignored it', function()
    vim.bo.autoread = false
    change_on_disk()
    t.matches('precious', project.call('file_read', { path = 'a.txt' }).text)
  end)

  it('is not reported again after it was read, with unsaved changes since', function()
    vim.bo.autoread = true
    change_on_disk()
    api.nvim_buf_set_lines(0, 0, 1, false, { 'user' })
    t.eq('same', disk.check(api.nvim_get_current_buf()))
    vim.cmd('silent write ' .. project.root .. '/copy.txt')
    vim.uv.fs_utime(project.root .. '/a.txt', 20, 20)
    t.eq('conflict', disk.check(api.nvim_get_current_buf()))
  end)
end)

-- every Neovim
local disk = require('mcp-tools.editor.buffer.disk')
local open = require('mcp-tools.editor.buffer.open')
local project = require('editor_project')
local t = require('helpers')

local api = vim.api

--- Lets Neovim do what it does before it waits for a key. A script has no main loop that runs `BufModifiedSet`.
local function idle()
  api.nvim_exec_autocmds('BufModifiedSet', { buffer = api.nvim_get_current_buf() })
  local is_over = false
  vim.schedule(function() is_over = true end)
  t.wait(function() return is_over end)
end

--- Inserts a line, as the user does.
local function type_line(text)
  idle()
  api.nvim_buf_set_lines(0, 0, 0, false, { text })
end

describe('a change on disk that Neovim has reported', function()
  project.each({ 'file' }, function() project.edit('a.txt', 'one\ntwo\n') end)

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

  it('stays a conflict if its size is the same', function()
    api.nvim_buf_set_lines(0, 0, 1, false, { 'user' })
    vim.uv.fs_utime(project.write('a.txt', 'ONE\ntwo\n'), 9, 9)
    t.eq('conflict', disk.check(api.nvim_get_current_buf()))
    project.refused('file_save', 'tool_error', 'changed on disk', { paths = { 'a.txt' } })
    t.eq('ONE\ntwo\n', project.disk('a.txt'))
  end)

  it('is a conflict if another file of the same size and time replaced it', function()
    vim.uv.fs_utime('a.txt', 9, 9)
    vim.cmd('silent edit!')
    type_line('user')
    vim.uv.fs_utime(project.write('b.txt', 'ONE\ntwo\n'), 9, 9)
    vim.uv.fs_rename('b.txt', 'a.txt')
    t.eq('conflict', disk.check(api.nvim_get_current_buf()))
  end)

  it('is a conflict if an autocommand, which skips others, checked the file', function()
    api.nvim_buf_set_lines(0, 0, 1, false, { 'user' })
    vim.uv.fs_utime(project.write('a.txt', 'one\ntwo\nprecious\n'), 9, 9)
    project.once('User', 'Check', 'silent! checktime %')
    vim.cmd('doautocmd User Check')
    t.eq('conflict', disk.check(api.nvim_get_current_buf()))
  end)

  it('is a conflict after the file was written without autocommands', function()
    vim.cmd('silent noautocmd write!')
    api.nvim_buf_set_lines(0, 0, 1, false, { 'user' })
    change_on_disk()
    t.eq('conflict', disk.check(api.nvim_get_current_buf()))
    vim.cmd('silent noautocmd write!')
    type_line('user again')
    t.eq('same', disk.check(api.nvim_get_current_buf()))
  end)

  it('is a conflict if autocommands were skipped both for the write and for the report', function()
    vim.cmd('silent noautocmd write!')
    type_line('user')
    vim.uv.fs_utime(project.write('a.txt', 'ONE\ntwo\n'), 9, 9)
    vim.cmd('silent! noautocmd checktime')
    project.refused('file_save', 'tool_error', 'changed on disk', { paths = { 'a.txt' } })
    local edits = { { path = 'a.txt', old_text = 'two', new_text = 'TWO' } }
    project.refused('file_edit', 'stale', 'changed on disk', { save = true, edits = edits })
    t.eq('ONE\ntwo\n', project.disk('a.txt'))
  end)

  it('is a conflict in a buffer that an autocommand, which skips others, has opened', function()
    project.write('b.txt', 'one\ntwo\n')
    project.once('User', 'Open', 'silent edit b.txt')
    vim.cmd('doautocmd User Open')
    type_line('user')
    vim.uv.fs_utime(project.write('b.txt', 'ONE\ntwo\n'), 9, 9)
    vim.cmd('silent! noautocmd checktime')
    project.refused('file_save', 'tool_error', 'changed on disk', { paths = { 'b.txt' } })
    t.eq('ONE\ntwo\n', project.disk('b.txt'))
  end)

  it('is read although Neovim has reported it while autocommands were skipped', function()
    vim.cmd('silent noautocmd write!')
    vim.bo.autoread = false
    vim.uv.fs_utime(project.write('a.txt', 'ONE\ntwo\n'), 9, 9)
    vim.cmd('silent! noautocmd checktime')
    t.eq('ONE\ntwo', project.call('file_read', { path = 'a.txt' }).text)
  end)

  it('is found by its line breaks alone', function()
    project.edit('dos.txt', 'one\r\ntwo\r\n')
    t.eq('same', disk.check(api.nvim_get_current_buf()))
    project.write('dos.txt', 'one\ntwo\n')
    t.eq({ 'reloaded', 'unix' }, { disk.check(api.nvim_get_current_buf()), vim.bo.fileformat })
    project.write('dos.txt', 'one\ntwo')
    t.eq({ 'reloaded', false }, { disk.check(api.nvim_get_current_buf()), vim.bo.endofline })
  end)
end)

describe('a file that only Neovim has written', function()
  project.each({ 'file' }, function() project.edit('a.txt', 'one\ntwo\n') end)

  --- Asserts that a change of the user is not a conflict and can be saved.
  local function assert_unchanged()
    type_line('typed')
    t.eq(nil, project.call('file_read', { path = 'a.txt' }).disk)
    local edits = { { path = 'a.txt', old_text = 'two', new_text = 'TWO' } }
    t.eq(nil, select(2, project.call('file_edit', { save = true, edits = edits })))
    t.matches('^typed\n.*TWO\n$', project.disk('a.txt'))
  end

  it('is not in conflict after a write by an autocommand, which skips others', function()
    api.nvim_buf_set_lines(0, 0, 0, false, { 'saved' })
    project.once('User', 'Save', 'silent update')
    vim.cmd('doautocmd User Save')
    assert_unchanged()
  end)

  it('is in conflict after such a write if another program may have written it since', function()
    api.nvim_buf_set_lines(0, 0, 0, false, { 'saved' })
    project.once('User', 'Save', 'silent update')
    vim.cmd('doautocmd User Save')
    type_line('typed')
    vim.bo.autoread = false
    project.write('a.txt', 'of another program\n')
    vim.cmd('silent! noautocmd checktime')
    t.eq('conflict', disk.check(api.nvim_get_current_buf()))
    project.refused('file_save', 'tool_error', 'changed on disk', { paths = { 'a.txt' } })
    t.eq('of another program\n', project.disk('a.txt'))
  end)

  it('is not in conflict after only its time changed', function()
    vim.bo.autoread = false
    vim.uv.fs_utime('a.txt', 9, 9)
    vim.cmd('silent! checktime')
    assert_unchanged()
  end)

  it('is not in conflict after it was replaced by a file with the same text', function()
    local read = api.nvim_buf_get_changedtick(0)
    for time = 10, 30, 10 do
      vim.uv.fs_utime(project.write('b.txt', 'one\ntwo\n'), time, time)
      vim.uv.fs_rename('b.txt', 'a.txt')
      if time == 30 then
        vim.bo.autoread = false
        vim.cmd('silent! checktime')
      end
      t.eq('same', disk.check(api.nvim_get_current_buf()))
    end
    t.eq(read, api.nvim_buf_get_changedtick(0))
    assert_unchanged()
  end)

  it('is not in conflict after it was written again with the same text', function()
    vim.cmd('silent noautocmd edit!')
    type_line('typed before')
    vim.uv.fs_utime(project.write('a.txt', 'one\ntwo\n'), 9, 9)
    vim.cmd('silent! checktime')
    local edits = { { path = 'a.txt', old_text = 'two', new_text = 'TWO' } }
    t.eq(nil, select(2, project.call('file_edit', { save = true, edits = edits })))
    t.eq('typed before\none\nTWO\n', project.disk('a.txt'))
  end)

  it('is not in conflict after the written text was undone', function()
    type_line('first')
    vim.cmd('silent noautocmd write')
    idle()
    vim.cmd('silent undo')
    t.eq('same', disk.check(api.nvim_get_current_buf()))
    type_line('other branch')
    vim.uv.fs_utime('a.txt', 9, 9)
    t.eq('same', disk.check(api.nvim_get_current_buf()))
    vim.uv.fs_utime(project.write('a.txt', 'foreign\none\ntwo\n'), 9, 9)
    t.eq('conflict', disk.check(api.nvim_get_current_buf()))
  end)

  it('is not in conflict after an autocommand formatted the file and read it again', function()
    project.once('BufWritePost', 'a.txt', function()
      project.write('a.txt', '1\ntwo\n')
      vim.cmd('silent edit')
    end)
    vim.cmd('silent write')
    assert_unchanged()
  end)

  for encoding, text in pairs({
    latin1 = 'b\233\n',
    ['utf-16le'] = '\255\254b\0\n\0',
    ['utf-8'] = '\239\187\191\195\169',
  }) do
    it('is compared in its encoding: ' .. encoding, function()
      project.edit('b.txt', text)
      local read = api.nvim_buf_get_changedtick(0)
      t.eq({ 'same', read }, { disk.check(api.nvim_get_current_buf()), (api.nvim_buf_get_changedtick(0)) })
      type_line('typed')
      vim.uv.fs_utime('b.txt', 9, 9)
      t.eq('same', disk.check(api.nvim_get_current_buf()))
    end)
  end

  it('is not in conflict after its permissions changed', function()
    vim.bo.autoread = false
    vim.uv.fs_utime('a.txt', 9, 9)
    vim.uv.fs_chmod('a.txt', 384)
    vim.cmd('silent! checktime')
    assert_unchanged()
  end)
end)

describe('a file on disk that Neovim must not read again', function()
  local limit = open.MAX_BYTES

  after_each(function() open.MAX_BYTES = limit end)
  project.each({ 'file', 'search' }, function() project.edit('a.txt', 'one\n') end)

  --- Asserts that tools neither read nor write the file, with and without unsaved changes.
  local function assert_refused(code, pattern)
    local edits = { { path = 'a.txt', old_text = 'one', new_text = 'two' } }
    for _, lines in ipairs({ { 'one' }, { 'user', 'one' } }) do
      api.nvim_buf_set_lines(0, 0, -1, false, lines)
      vim.bo.modified = #lines > 1
      project.refused('file_read', code, pattern, { path = 'a.txt' })
      project.refused('file_edit', code, pattern, { edits = edits })
      project.refused('file_edit', code, pattern, { edits = edits, save = true })
      t.eq(lines, api.nvim_buf_get_lines(0, 0, -1, false))
    end
    project.refused('file_save', 'tool_error', pattern, { paths = { 'a.txt' } })
    t.eq(nil, disk.acknowledge(api.nvim_get_current_buf()))
  end

  it('has been replaced by a pipe', function()
    vim.uv.fs_unlink('a.txt')
    t.eq(0, vim.system({ 'mkfifo', 'a.txt' }):wait().code)
    assert_refused('tool_error', 'a%.txt is a fifo, not a file')
  end)

  it('has become too large', function()
    open.MAX_BYTES = 100
    project.write('a.txt', ('x'):rep(101))
    assert_refused('too_large', 'a%.txt has 101 bytes; the limit is 100')
  end)

  it('is used while it has not changed since the user opened it', function()
    open.MAX_BYTES = 2
    t.eq('one', project.call('file_read', { path = 'a.txt' }).text)
  end)
end)

describe('a file that another program has changed', function()
  local path, bufnr
  before_each(function()
    project.open()
    project.offer({ 'file' })
    path = project.write('a.txt', 'one\ntwo\n')
    vim.cmd('silent edit a.txt')
    bufnr = api.nvim_get_current_buf()
  end)
  after_each(project.close)

  local function change_elsewhere() vim.uv.fs_utime(project.write('a.txt', 'one\ntwo\nforeign\n'), 9, 9) end

  it('is not overwritten while the command-line window is open', function()
    local edits, call = { { path = 'a.txt', old_text = 'one', new_text = 'ONE' } }, nil
    change_elsewhere()
    vim.keymap.set('n', 'Q', function() call = project.start('file_edit', { save = true, edits = edits }) end)
    vim.keymap.set('n', 'W', function() t.ended(call, 5000, 'file_edit') end)
    api.nvim_feedkeys('q:QW:q\r', 'xt', false)
    t.eq({ 'busy', 'one\ntwo\nforeign\n' }, { call.outcome.error.code, project.disk('a.txt') })
    t.eq('reloaded', disk.check(bufnr))
  end)

  it('is read after an autocommand that is running', function()
    local read, moved
    project.write('b.txt', 'b\n')
    project.once('BufWritePre', 'b.txt', function()
      change_elsewhere()
      read = project.start('file_read', { path = 'a.txt' })
      moved = project.start('file_move', { path = 'a.txt', new_path = 'c.txt' })
      vim.wait(100, function() return read:ended() or moved:ended() end, 5)
      t.ok(not read:ended() and not moved:ended())
    end)
    vim.cmd('silent new b.txt | silent write')
    t.matches('foreign', t.ended(read, 5000, 'file_read').value.text)
    t.ended(moved, 5000, 'file_move')
    t.eq({ nil, 'one\ntwo\nforeign\n' }, { moved.outcome.error, project.disk('c.txt') })
  end)

  it('is read again as read-only, also after Neovim has reported it', function()
    for _, is_reported in ipairs({ false, true }) do
      vim.bo.readonly, vim.bo.autoread = true, false
      change_elsewhere()
      if is_reported then
        vim.cmd('silent! checktime')
      end
      t.eq('reloaded', disk.check(bufnr))
      t.eq(true, vim.bo.readonly)
      vim.uv.fs_utime(project.write('a.txt', 'one\ntwo\n'), 8, 8)
      t.eq('reloaded', disk.check(bufnr))
    end
    vim.bo.readonly = false
  end)

  it('is read although an autocommand of its filetype fails', function()
    vim.bo.filetype = 'spec'
    api.nvim_create_autocmd('FileType', { buffer = bufnr, command = 'throw "failed"' })
    change_elsewhere()
    t.matches('foreign', project.call('file_read', { path = 'a.txt' }).text)
  end)

  it('is in conflict if it has the text from before an edit and a write in one go', function()
    type_line('two edits')
    vim.cmd('silent write')
    api.nvim_buf_set_lines(bufnr, 0, 0, false, { 'without a pause' })
    vim.uv.fs_utime(project.write('a.txt', 'one\ntwo\n'), 9, 9)
    t.eq('conflict', disk.check(bufnr))
  end)

  it('is in conflict if it has a text from before a write without events', function()
    idle()
    api.nvim_buf_set_lines(bufnr, 0, 0, false, { 'edit' })
    vim.cmd('silent noautocmd write') -- as `autocmd FocusLost * wall` writes other buffers
    api.nvim_buf_set_lines(bufnr, 0, 0, false, { 'unsaved' })
    vim.uv.fs_utime(project.write('a.txt', 'one\ntwo\n'), 9, 9)
    t.eq('conflict', disk.check(bufnr))
  end)

  it('is noticed although a plugin runs BufReadPost', function()
    type_line('typed')
    change_elsewhere()
    t.eq('conflict', disk.check(bufnr))
    vim.cmd('silent doautoall BufReadPost')
    t.eq('conflict', disk.check(bufnr))
  end)

  it('is read without a question, whatever is in eventignore', function()
    for _, ignored in ipairs({ 'all', 'FileChangedShell' }) do
      vim.go.eventignore = ignored
      change_elsewhere()
      t.eq('reloaded', disk.check(bufnr))
      vim.go.eventignore = ''
      vim.uv.fs_utime(project.write('a.txt', 'one\n'), 8, 8)
      t.eq('reloaded', disk.check(bufnr))
    end
  end)

  it('is busy while an autocommand waits for the user, and read if it has not changed', function()
    project.write('b.txt', 'b\n')
    local same, changed
    project.once('BufWritePre', 'b.txt', function()
      same = project.start('file_read', { path = 'a.txt' })
      t.ended(same, 2000, 'file_read')
      change_elsewhere()
      changed = project.start('file_read', { path = 'a.txt' })
      t.ended(changed, 10000, 'file_read')
    end)
    vim.cmd('silent new b.txt | silent write')
    t.eq({ 'one\ntwo', 'busy' }, { same.outcome.value.text, changed.outcome.error.code })
  end)

  it('is formatted when it is saved during another autocommand', function()
    project.write('b.txt', 'b\n')
    type_line('typed')
    project.once('BufWritePre', 'a.txt', function() api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'formatted' }) end)
    local saved
    project.once('BufWritePre', 'b.txt', function()
      saved = project.start('file_save', { paths = { 'a.txt' } })
      vim.wait(100, function() return saved:ended() end, 5)
    end)
    vim.cmd('silent new b.txt | silent write')
    t.ended(saved, 5000, 'file_save')
    t.eq('formatted\none\ntwo\n', project.disk('a.txt'))
  end)

  it('is in conflict without a comparison if its text is large', function()
    vim.fn.writefile({ ('x'):rep(1024 * 1024) }, path)
    vim.cmd('silent edit!')
    type_line('typed')
    vim.uv.fs_utime(path, 9, 9)
    t.eq('conflict', disk.check(bufnr))
  end)

  it('with very many lines is read again in little time', function()
    project.write('a.txt', ('\n'):rep(4000 * 1000))
    vim.cmd('silent edit!')
    change_elsewhere()
    local begun = vim.uv.hrtime()
    t.eq('reloaded', disk.check(bufnr))
    t.ok(vim.uv.hrtime() - begun < 2e9)
  end)

  it('is left to a plugin that reads and writes it in its own way', function()
    local group = api.nvim_create_augroup('disk_spec', {})
    local function on(event, fn) api.nvim_create_autocmd(event, { group = group, pattern = '*.ipynb', callback = fn }) end
    local reads = 0
    on('BufReadCmd', function(args)
      reads = reads + 1
      api.nvim_buf_set_lines(args.buf, 0, -1, false, { '# text' })
      vim.bo[args.buf].modified = false
    end)
    on('BufWriteCmd', function(args)
      project.write('a.ipynb', '{}')
      vim.bo[args.buf].modified = false
    end)
    project.write('a.ipynb', '{ "cells": [] }')
    vim.cmd('silent edit a.ipynb')
    local notebook = api.nvim_get_current_buf()
    for _, added in ipairs({ 'one', 'two' }) do
      api.nvim_buf_set_lines(notebook, -1, -1, false, { added })
      t.eq('same', disk.check(notebook))
      vim.cmd('silent write')
      t.eq('same', disk.check(notebook))
    end
    t.eq({ 1, { '# text', 'one', 'two' } }, { reads, api.nvim_buf_get_lines(notebook, 0, -1, false) })
    api.nvim_buf_set_lines(notebook, -1, -1, false, { 'unsaved' })
    vim.uv.fs_utime(project.write('a.ipynb', '{ "of": "others" }'), 9, 9)
    for _ = 1, 3 do
      t.eq('conflict', disk.check(notebook))
    end
    api.nvim_del_augroup_by_id(group)
  end)
end)

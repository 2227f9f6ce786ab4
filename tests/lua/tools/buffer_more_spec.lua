-- every Neovim
-- buffer_write, buffer_diff, buffer_close, and reading by symbol.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local files = require('mcp-tools.instances.project')
local project = require('editor_project')
local t = require('helpers')

local api = vim.api

local call, refused = project.call, project.refused

local function disk(path)
  return table.concat(vim.fn.readfile(path), '\n')
end

local path, bufnr
before_each(function()
  project.open()
  vim.cmd('filetype on')
  config.setup({ tools = { 'buffer' }, approval = { groups = { buffer = 'allow' } } })
  core.get()
  files.fix(project.root)
  path = project.write('a.txt', 'one\ntwo\nthree\n')
  vim.cmd('silent edit ' .. path)
  bufnr = api.nvim_get_current_buf()
end)
after_each(function()
  files.fix(nil)
  project.close()
  core.get()
end)

describe('buffer_write', function()
  it('writes what has changed, also of a buffer that nobody sees', function()
    t.eq(false, call('buffer_write', { path = 'a.txt' }).written)
    api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'ONE' })
    vim.o.hidden = true
    vim.cmd.enew()
    local value = call('buffer_write', { bufnr = bufnr, changedtick = api.nvim_buf_get_changedtick(bufnr) })
    t.eq({ true, 'a.txt', 3 }, { value.written, value.path, value.lines })
    t.eq({ 'ONE\ntwo\nthree', false }, { disk(path), vim.bo[bufnr].modified })
  end)

  it('writes a new file', function()
    vim.cmd('silent edit ' .. project.root .. '/new.txt')
    t.eq(true, call('buffer_write', { bufnr = 0 }).written)
    t.ok(vim.uv.fs_stat(project.root .. '/new.txt'))
  end)

  it('does not overwrite what others wrote unless it is told to', function()
    api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'mine' })
    project.write('a.txt', 'theirs\n')
    refused('buffer_write', 'stale', 'buffer_diff', { bufnr = 0 })
    t.eq('theirs', disk(path))
    t.eq(true, call('buffer_write', { bufnr = 0, overwrite = true }).written)
    t.eq('mine\ntwo\nthree', disk(path))
  end)

  it('says what is wrong', function()
    refused('buffer_write', 'stale', 'changedtick', { bufnr = 0, changedtick = 1 })
    refused('buffer_write', 'not_found', 'not open', { path = project.write('b.txt', 'x') })
    api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'mine' })
    vim.bo.readonly = true
    refused('buffer_write', 'tool_error', 'read%-only', { bufnr = 0 })
    vim.cmd.enew()
    api.nvim_buf_set_lines(0, 0, 1, false, { 'text' })
    refused('buffer_write', 'tool_error', 'no file name', { bufnr = api.nvim_get_current_buf() })
  end)

  it('shows what would change on the disk', function()
    local function preview(args)
      return project.previewed(require('mcp-tools.tools.buffer.write'), args)
    end
    api.nvim_buf_set_lines(bufnr, 1, 2, false, { 'TWO' })
    t.eq('--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n', preview({ bufnr = 0 }))
  end)
end)

describe('buffer_diff', function()
  it('is against the disk, as others may have left it', function()
    t.eq('', call('buffer_diff', { bufnr = 0 }).diff)
    api.nvim_buf_set_lines(bufnr, 1, 2, false, { 'TWO' })
    project.write('a.txt', 'one\ntwo\nthree\nfour\n')
    local value = call('buffer_diff', { path = 'a.txt', context = 0 })
    t.eq('--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-two\n+TWO\n@@ -4 +3,0 @@\n-four\n', value.diff)
    t.eq({ 1, 2, true }, { value.added, value.removed, value.modified })
  end)

  it('is against the text before the session changed it', function()
    t.matches('has not changed', call('buffer_diff', { bufnr = 0, against = 'session' }).note)
    t.ok(call('buffer_edit', { bufnr = 0, edits = { { search = 'two', replace = 'TWO' } } }))
    t.ok(call('buffer_edit', { bufnr = 0, write = true, edits = { { search = 'one', replace = 'ONE' } } }))
    local value = call('buffer_diff', { bufnr = 0, against = 'session' })
    t.eq({ 2, 2, nil }, { value.added, value.removed, value.note })
    t.matches('%-one\n%-two\n%+ONE\n%+TWO\n', value.diff)
    t.eq('', call('buffer_diff', { bufnr = 0 }).diff)
  end)

  it('becomes less where it is too large', function()
    local lines = {}
    for i = 1, 4000 do
      lines[i] = ('line %d of a long text'):format(i)
    end
    vim.fn.writefile(lines, path)
    vim.cmd('silent edit!')
    for i = 1, 4000, 10 do
      lines[i] = ('line %d that has changed'):format(i)
    end
    api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
    local value = call('buffer_diff', { bufnr = 0, context = 5 })
    t.matches('without context', value.narrowed)
    t.eq({ 400, nil }, { value.added, value.hunks })
    for i = 1, 4000 do
      lines[i] = ('all of the text %d, which is long enough, is another one now'):format(i)
    end
    api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
    value = call('buffer_diff', { bufnr = 0 })
    t.eq({ nil, 4000, 4000 }, { value.diff, value.added, value.removed })
    t.eq({ { line = 1, removed = 4000, added = 4000 } }, value.hunks)
  end)

  it('knows files that are not open, not there, or in another encoding', function()
    t.matches('not open', call('buffer_diff', { path = project.write('b.txt', 'x') }).note)
    os.remove(path)
    local value = call('buffer_diff', { bufnr = 0 })
    t.eq({ 3, 'there is no such file on the disk' }, { value.added, value.note })
    vim.cmd('silent edit ++enc=latin1 ' .. project.write('l.txt', 'a\228b\r\nc\r\n'))
    t.eq('', call('buffer_diff', { bufnr = 0 }).diff)
    refused('buffer_diff', 'validation_error', 'exactly one', {})
  end)
end)

describe('buffer_close', function()
  it('closes what nobody looks at', function()
    vim.o.hidden = true
    vim.cmd.enew()
    t.eq(true, call('buffer_close', { path = 'a.txt' }).closed)
    t.eq({ false, false }, { api.nvim_buf_is_loaded(bufnr), vim.bo[bufnr].buflisted })
    t.eq(false, call('buffer_close', { path = 'a.txt' }).closed)
  end)

  it('leaves what is shown or not saved', function()
    refused('buffer_close', 'busy', 'shown in a window', { bufnr = bufnr })
    api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'mine' })
    vim.o.hidden = true
    vim.cmd.enew()
    refused('buffer_close', 'tool_error', 'unsaved changes', { bufnr = bufnr })
    t.eq(true, call('buffer_close', { bufnr = bufnr, discard = true }).closed)
    t.eq('one\ntwo\nthree', disk(path))
    refused('buffer_close', 'not_found', 'no buffer 999', { bufnr = 999 })
  end)
end)

describe('buffer_read', function()
  it('reads a symbol', function()
    local code =
      'local M = {}\nfunction M.a()\n  return 1\nend\nfunction M.b()\n  return 2\nend\nfunction M.sub.b()\nend\n'
    local file = project.write('m.lua', code)
    local value = call('buffer_read', { path = file, symbol = 'a' })
    t.eq({ 'm.lua', 2, 'function M.a()\n  return 1\nend' }, { value.path, value.start_line, value.text })
    refused('buffer_read', 'validation_error', '"b" means 2 symbols of m.lua: M.b %(line 5%), M.sub.b %(line 8%)', {
      path = file,
      symbol = 'b',
    })
    for name, line in pairs({ ['/M/b'] = 5, ['M:b'] = 5, ['sub/b'] = 8, ['M.sub.b'] = 8 }) do
      t.eq(line, call('buffer_read', { path = file, symbol = name }).start_line)
    end
    refused(
      'buffer_read',
      'not_found',
      'no "nothing" in m.lua; there is M.a %(line 2%)',
      { path = file, symbol = 'nothing' }
    )
  end)

  it('reads a symbol by its whole name path, and names the nearest when there is none', function()
    local code = 'local function ledger()\n  local function post()\n  end\nend\nlocal function post()\nend\n'
    local file = project.write('n.lua', code)
    local value = call('buffer_read', { path = file, symbol = 'ledger/post' })
    t.eq({ 2, 3 }, { value.start_line, value.end_line })
    t.eq(5, call('buffer_read', { path = file, symbol = '/post' }).start_line)
    refused('buffer_read', 'not_found', 'there is ledger %(line 1%)$', { path = file, symbol = 'legder' })
  end)

  it('says that there is more only when not all was given that was asked for', function()
    local file = project.write('m.lua', 'local M = {}\nfunction M.a()\n  return 1\nend\nreturn M\n')
    local function where(args)
      local value = call('buffer_read', vim.tbl_extend('force', { path = file }, args))
      return { value.end_line, value.next_line }
    end
    for _ = 1, 2 do
      t.eq({ 4, nil }, where({ symbol = 'a' }))
      t.eq({ 3, 4 }, where({ symbol = 'a', limit = 2 }))
      t.eq({ 3, nil }, where({ start_line = 2, end_line = 3 }))
      t.eq({ 2, 3 }, where({ start_line = 2, end_line = 3, limit = 1 }))
      t.eq({ 3, 4 }, where({ start_line = 2, limit = 2 }))
      vim.cmd.edit(file)
    end
  end)

  it('has what others wrote, and says so where it does not', function()
    project.write('a.txt', 'theirs\n')
    t.eq({ 'theirs', nil }, { call('buffer_read', { bufnr = 0 }).text, call('buffer_read', { bufnr = 0 }).disk })
    api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'mine' })
    project.write('a.txt', 'theirs again\n')
    local value = call('buffer_read', { bufnr = 0 })
    t.eq({ 'mine', 'changed by others' }, { value.text, value.disk })
    os.remove(path)
    t.eq('deleted', call('buffer_read', { bufnr = 0 }).disk)
  end)
end)

describe('a file in an error', function()
  --- The message of a call that is refused.
  local function message(name, args)
    return select(2, call(name, args)).message
  end

  it('is called by its path from the project, whichever tool says it', function()
    local missing, edits = project.root .. '/sub/none.txt', { { search = 'one', replace = 'x' } }
    t.eq('there is no file sub/none.txt', message('buffer_read', { path = missing }))
    t.eq('there is no file sub/none.txt', message('buffer_read', { path = missing, symbol = 'a' }))
    t.eq('there is no file sub/none.txt', message('buffer_edit', { path = missing, edits = edits }))
    vim.fn.mkdir(project.root .. '/sub')
    t.eq('sub is a directory, not a file', message('buffer_read', { path = project.root .. '/sub' }))
    local tick = api.nvim_buf_get_changedtick(bufnr)
    local stale = ('a.txt has changed since it was read (changedtick 1, now %d); read it again'):format(tick)
    t.eq(stale, message('buffer_write', { path = path, changedtick = 1 }))
    t.eq(stale, message('buffer_edit', { path = path, changedtick = 1, edits = edits }))
    api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'mine' })
    project.write('a.txt', 'theirs\n')
    t.matches('^a.txt changed on disk since', message('buffer_write', { path = path }))
    vim.bo[bufnr].readonly = true
    t.matches('^a.txt is not written: ', message('buffer_write', { path = path, overwrite = true }))
  end)
end)

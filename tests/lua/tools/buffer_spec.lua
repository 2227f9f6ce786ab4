-- every Neovim
local project = require('editor_project')
local t = require('helpers')

local api = vim.api

local call, refused, write, disk = project.call, project.refused, project.write, project.disk

describe('tools that read buffers', function()
  project.each({ 'buffer', 'file', 'test' })

  describe('file_read', function()
    it('returns the unsaved text of an open file, and reports that', function()
      local path = write('a.txt', 'one\ntwo\nthree\n')
      vim.cmd.edit(path)
      api.nvim_buf_set_lines(0, 1, 2, false, { 'TWO é' })
      local result = call('file_read', { path = path })
      t.eq({ 'one\nTWO é\nthree', true }, { result.text, result.modified })
      t.eq(api.nvim_buf_get_changedtick(0), result.changedtick)
      t.eq({ 3, 1, 3, nil }, { result.lines, result.start_line, result.end_line, result.next_line })
      t.eq(result, (call('file_read', { bufnr = api.nvim_get_current_buf() })))
      t.eq(result, (call('file_read', { bufnr = 0 })))
    end)

    it('returns the text of a closed file, without opening it', function()
      local path = write('b.txt', 'one\ntwo')
      local before = #api.nvim_list_bufs()
      local result = call('file_read', { path = path })
      t.eq({ 'one\ntwo', false, 2 }, { result.text, result.loaded, result.lines })
      t.eq(before, #api.nvim_list_bufs())
    end)

    it('returns a range and the next line', function()
      local path = write('c.txt', 'l1\nl2\nl3\nl4\nl5\n')
      vim.cmd.edit(path)
      for _, how in ipairs({ { path = path }, { bufnr = 0 } }) do
        local result = call('file_read', vim.tbl_extend('force', how, { start_line = 2, limit = 2 }))
        t.eq({ 'l2\nl3', 2, 3 }, { result.text, result.start_line, result.end_line })
        t.eq({ 4, 5 }, { result.next_line, result.lines })
        result = call('file_read', vim.tbl_extend('force', how, { start_line = 4, end_line = 99 }))
        t.eq({ 'l4\nl5', nil }, { result.text, result.next_line })
        local beyond = vim.tbl_extend('force', how, { start_line = 6 })
        refused('file_read', 'validation_error', 'start_line.*5 lines', beyond)
        beyond.start_line, beyond.end_line = 3, 2
        refused('file_read', 'validation_error', 'end_line', beyond)
      end
    end)

    it('truncates a long text at a line, and one line that is too long', function()
      local path = write('big.txt', (('x'):rep(1023) .. '\n'):rep(300))
      local result = call('file_read', { path = path })
      t.eq({ true, 256, 257, 300 }, { result.truncated, result.end_line, result.next_line, result.lines })
      t.eq(256 * 1024 - 1, #result.text)
      local rest = call('file_read', { path = path, start_line = result.next_line })
      t.eq({ 300, nil }, { rest.end_line, rest.truncated })
      result = call('file_read', { path = write('long.txt', ('x'):rep(300 * 1024)) })
      t.eq({ true, 256 * 1024 }, { result.truncated, #result.text })
    end)

    it('repairs bytes that are not UTF-8 and reports that', function()
      vim.o.fileencodings = 'utf-8'
      local path = write('bin.txt', 'a\255b\nok\n')
      local result = call('file_read', { path = path })
      vim.o.fileencodings = 'ucs-bom,utf-8,default,latin1'
      t.eq({ 'a\239\191\189b\nok', true }, { result.text, result.lossy })
    end)

    it('returns the text of a closed file as its buffer would have it', function()
      local filler = ('filler line\n'):rep(8000)
      local texts = {
        latin1 = 'Gr\252\223e\naus K\246ln\n',
        utf16 = '\255\254o\0n\0e\0\n\0\252\0\n\0',
        utf16be = '\254\255\0o\0n\0e\0\n\0\252\0\n',
        bom = '\239\187\191one\ntwo\n',
        dos = 'one\r\ntwo\r\n',
        dos_open = 'one\r\ntwo\r\nthree\r',
        mixed = 'one\r\ntwo\nthree\r\n',
        no_break = 'one\r',
        empty_line = '\none\r\n',
        long = filler .. 'ein \195\188\n',
        long_latin1 = filler .. 'ein \252\n',
      }
      for name, bytes in pairs(texts) do
        local path = write(name, bytes)
        local closed = call('file_read', { path = path, start_line = name:find('long') and 8000 or 1 })
        local on_disk = call('file_read', { path = path, start_line = closed.start_line })
        vim.cmd('silent edit ' .. path)
        local open = call('file_read', { path = path, start_line = closed.start_line })
        t.eq({ name, open.text, open.lines, nil }, { name, closed.text, closed.lines, closed.lossy })
        t.eq({ name, open.text, open.lines }, { name, on_disk.text, on_disk.lines })
        vim.cmd('silent bwipeout!')
      end
    end)

    it('reports the size of a file that is not text', function()
      local path = write('data.bin', ('\0\1\255'):rep(1000))
      refused('file_read', 'tool_error', '3000 bytes', { path = path })
      refused('file_read', 'tool_error', '3000 bytes', { path = path })
    end)

    it('reads an empty file and an empty buffer', function()
      t.eq('', call('file_read', { path = write('empty.txt', '') }).text)
      vim.cmd.enew()
      t.eq('', call('file_read', { bufnr = 0 }).text)
    end)

    it('reports errors', function()
      for _, case in ipairs({
        { 'validation_error', 'exactly one of path and bufnr', {} },
        { 'validation_error', 'exactly one', { path = 'x', bufnr = 1 } },
        { 'not_found', 'no file', { path = 'none.txt' } },
        { 'tool_error', 'is a directory', { path = project.root } },
        { 'not_found', 'no buffer 9999', { bufnr = 9999 } },
        { 'validation_error', 'bufnr', { bufnr = 'x' } },
      }) do
        refused('file_read', unpack(case))
      end
    end)

    it('does not read a terminal as the current file', function()
      vim.cmd.edit(write('d.txt', 'file'))
      t.terminal()
      t.eq('file', call('file_read', { bufnr = 0 }).text)
    end)
  end)

  describe('buffer_list', function()
    it('lists open, modified and visible buffers, without reading their signs', function()
      vim.cmd.edit(write('a.txt', 'a'))
      vim.cmd.edit(write('b.txt', 'b'))
      api.nvim_buf_set_lines(0, 0, 1, false, { 'changed' })
      local by_path = {}
      local asked = t.calls(vim.fn, 'getbufinfo', function()
        for _, buffer in ipairs(call('buffer_list', {}).buffers) do
          by_path[buffer.path or ''] = buffer
        end
      end)
      t.eq({ 0, false, nil }, { asked, by_path['a.txt'].modified, by_path['a.txt'].current })
      local b = by_path['b.txt']
      t.eq({ true, true, true, true, 1 }, { b.modified, b.current, b.visible, b.loaded, b.lines })
      local modified = call('buffer_list', { modified_only = true })
      t.eq({ 1, 'b.txt' }, { modified.total, modified.buffers[1].path })
      local text = project.text('buffer_list', { modified_only = true })
      t.matches('^1 buffer\n%d+: b.txt %(current, visible, modified%)$', text)
    end)

    it('returns names as UTF-8 without passwords, like test_sync_buffers', function()
      vim.cmd.edit(vim.fn.fnameescape(write('gr\252n.txt', 'x')))
      local bufnr = api.nvim_create_buf(true, false)
      api.nvim_buf_set_name(bufnr, 'https://someone:hidden@example.org/x')
      vim.fn.bufload(bufnr)
      for tool, field in pairs({ buffer_list = 'path', test_sync_buffers = 'name' }) do
        local names = vim.tbl_map(function(buffer) return buffer[field] end, call(tool, {}).buffers)
        local all = table.concat(names, '\n')
        t.matches({ 'gr\239\191\189n%.txt', 'example%.org' }, all)
        t.ok(not all:find('hidden', 1, true), all)
      end
      vim.cmd('silent! %bwipeout!')
    end)

    it('is paged', function()
      for i = 1, 5 do
        vim.cmd.edit(write(i .. '.txt', 'x'))
      end
      local seen, offset = 0, 0
      repeat
        local page = call('buffer_list', { limit = 2, offset = offset })
        seen, offset = seen + #page.buffers, page.next_offset
      until not offset
      t.eq(call('buffer_list', {}).total, seen)
    end)
  end)
end)

describe('tools that write, compare and close buffers', function()
  local path, bufnr
  project.each({ 'buffer', 'file' }, function()
    vim.cmd('filetype on')
    path = project.edit('a.txt', 'one\ntwo\nthree\n')
    bufnr = api.nvim_get_current_buf()
  end)

  describe('file_save', function()
    local function save(args)
      local value = t.ok(call('file_save', args))
      return value.files[1]
    end

    it('writes modified text, also of a hidden buffer', function()
      t.eq({ path = 'a.txt', written = false }, save({ path = 'a.txt' }))
      api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'ONE' })
      vim.o.hidden = true
      vim.cmd.enew()
      t.eq({ path = 'a.txt', written = true }, save({ paths = { 'a.txt' } }))
      t.eq({ 'ONE\ntwo\nthree\n', false }, { disk(path), vim.bo[bufnr].modified })
    end)

    it('writes what this client has edited when no file is named', function()
      t.eq({}, t.ok(call('file_save', {})).files)
      t.ok(call('file_edit', { path = 'a.txt', edits = { { old_text = 'two', new_text = 'TWO' } } }))
      vim.cmd('silent edit ' .. project.write('b.txt', 'b\n'))
      api.nvim_buf_set_lines(0, 0, 1, false, { 'mine' })
      t.eq({ { path = 'a.txt', written = true } }, t.ok(call('file_save', {})).files)
      t.eq({ 'one\nTWO\nthree\n', 'b\n' }, { disk(path), disk('b.txt') })
    end)

    it('also writes a file that another client has edited last', function()
      t.ok(call('file_edit', { path = 'a.txt', edits = { { old_text = 'two', new_text = 'TWO' } } }))
      local other = { kind = 'tool', host = 'mcp', client = { name = 'other' } }
      local edit = { path = 'a.txt', old_text = 'three', new_text = 'THREE' }
      local later = require('mcp-tools.core').get().executor:execute('file_edit', { edits = { edit } }, other)
      t.ended(later)
      local preview = require('mcp-tools.tools.file.save').preview
      t.matches('Reading', preview({}, function() end, { host = 'test', client = {} }))
      require('mcp-tools.privacy.read').once_read(function() end)
      t.wait(function() return (preview({}, nil, { host = 'test', client = {} }) or ''):find('%+THREE') ~= nil end)
      t.eq({ { path = 'a.txt', written = true } }, t.ok(call('file_save', {})).files)
    end)

    it('writes a new file', function()
      vim.cmd('silent edit ' .. project.root .. '/new.txt')
      t.eq(true, save({ paths = { 'new.txt' } }).written)
      t.ok(vim.uv.fs_stat(project.root .. '/new.txt'))
    end)

    it('does not overwrite what another process wrote', function()
      api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'mine' })
      project.write('a.txt', 'theirs\n')
      refused('file_save', 'tool_error', 'changed on disk', { paths = { 'a.txt' } })
      t.eq('theirs\n', disk(path))
    end)

    it('reports errors, and saves the other files', function()
      t.eq(false, save({ paths = { project.write('b.txt', 'x') } }).written)
      api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'mine' })
      vim.bo.readonly = true
      refused('file_save', 'tool_error', 'read%-only', { paths = 'a.txt' })
      vim.cmd('silent edit b.txt')
      api.nvim_buf_set_lines(0, 0, 1, false, { 'y' })
      local files = t.ok(call('file_save', { paths = { 'a.txt', 'b.txt' } })).files
      t.eq({ false, true }, { files[1].written, files[2].written })
      t.matches('read%-only', files[1].error)
    end)

    it('has a preview of the change on disk', function()
      api.nvim_buf_set_lines(bufnr, 1, 2, false, { 'TWO' })
      local shown = project.previewed(require('mcp-tools.tools.file.save'), { paths = { 'a.txt' } })
      t.eq('--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+TWO\n three\n', shown)
    end)

    it('compares only some large files for its preview, and no huge one', function()
      local paths, text = {}, ('some text in a line\n'):rep(7000)
      for i = 1, 40 do
        paths[i] = ('large%d.txt'):format(i)
        local large = vim.fn.bufadd(project.write(paths[i], i == 2 and text:rep(200) or text))
        vim.fn.bufload(large)
        api.nvim_buf_set_lines(large, 1, 2, false, { 'changed' })
      end
      local definition = require('mcp-tools.tools.file.save')
      local shown = project.previewed(definition, { paths = paths })
      t.matches(
        '%+%+%+ b/large1%.txt\n.*diff of large2%.txt cannot be shown: the files are too large.*%+%+%+ b/large3%.txt',
        shown
      )
      t.matches('diff of large40%.txt cannot be shown: the files are too large', shown)
      t.fast(definition.preview, { paths = paths }, function() end)
    end)
  end)

  describe('buffer_close', function()
    it('closes a hidden buffer', function()
      vim.o.hidden = true
      vim.cmd.enew()
      t.eq(true, call('buffer_close', { path = 'a.txt' }).closed)
      t.eq({ false, false }, { api.nvim_buf_is_loaded(bufnr), vim.bo[bufnr].buflisted })
      t.eq(false, call('buffer_close', { path = 'a.txt' }).closed)
    end)

    it('does not close a visible or modified buffer', function()
      refused('buffer_close', 'busy', 'shown in a window', { bufnr = bufnr })
      api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'mine' })
      vim.o.hidden = true
      vim.cmd.enew()
      refused('buffer_close', 'tool_error', 'unsaved changes', { bufnr = bufnr })
      t.eq(true, call('buffer_close', { bufnr = bufnr, discard = true }).closed)
      t.eq('one\ntwo\nthree\n', disk(path))
      refused('buffer_close', 'not_found', 'no buffer 999', { bufnr = 999 })
    end)
  end)

  describe('file_read', function()
    it('reads a symbol', function()
      local code =
        'local M = {}\nfunction M.a()\n  return 1\nend\nfunction M.b()\n  return 2\nend\nfunction M.sub.b()\nend\n'
      local file = project.write('m.lua', code)
      local value = call('file_read', { path = file, symbol = 'a' })
      t.eq({ 'm.lua', 2, 'function M.a()\n  return 1\nend' }, { value.path, value.start_line, value.text })
      local both = '"b" matches 2 symbols of m.lua: M.b %(line 5%), M.sub.b %(line 8%)'
      refused('file_read', 'validation_error', both, { path = file, symbol = 'b' })
      for name, line in pairs({ ['/M/b'] = 5, ['M:b'] = 5, ['sub/b'] = 8, ['M.sub.b'] = 8 }) do
        t.eq(line, call('file_read', { path = file, symbol = name }).start_line)
      end
      local none = 'no "nothing" in m.lua; there is M.a %(line 2%)'
      refused('file_read', 'not_found', none, { path = file, symbol = 'nothing' })
    end)

    it('says that there is more only when not all was given that was asked for', function()
      local file = project.write('m.lua', 'local M = {}\nfunction M.a()\n  return 1\nend\nreturn M\n')
      local function where(args)
        local value = call('file_read', vim.tbl_extend('force', { path = file }, args))
        return { value.end_line, value.next_line }
      end
      for _ = 1, 2 do
        t.eq({ { 4, nil }, { 3, 4 } }, { where({ symbol = 'a' }), (where({ symbol = 'a', limit = 2 })) })
        t.eq({ 3, nil }, where({ start_line = 2, end_line = 3 }))
        t.eq({ 2, 3 }, where({ start_line = 2, end_line = 3, limit = 1 }))
        t.eq({ 3, 4 }, where({ start_line = 2, limit = 2 }))
        vim.cmd.edit(file)
      end
    end)

    it('has what others wrote, and says so where it does not', function()
      project.write('a.txt', 'theirs\n')
      t.eq({ 'theirs', nil }, { call('file_read', { bufnr = 0 }).text, call('file_read', { bufnr = 0 }).disk })
      api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'mine' })
      project.write('a.txt', 'theirs again\n')
      local value = call('file_read', { bufnr = 0 })
      t.eq({ 'mine', 'changed by others' }, { value.text, value.disk })
      os.remove(path)
      t.eq('deleted', call('file_read', { bufnr = 0 }).disk)
    end)
  end)

  it('a file in an error is called by its path from the project, whichever tool says it', function()
    --- The message of a call that is refused.
    local function message(name, args) return select(2, call(name, args)).message end

    local missing, edits = project.root .. '/sub/none.txt', { { search = 'one', replace = 'x' } }
    t.eq('there is no file sub/none.txt', message('file_read', { path = missing }))
    t.eq('there is no file sub/none.txt', message('file_read', { path = missing, symbol = 'a' }))
    t.eq('there is no file sub/none.txt', message('file_edit', { path = missing, edits = edits }))
    vim.fn.mkdir(project.root .. '/sub')
    t.eq('sub is a directory, not a file', message('file_read', { path = project.root .. '/sub' }))
    api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'mine' })
    project.write('a.txt', 'theirs\n')
    t.matches('^a.txt changed on disk since', message('file_save', { paths = { path } }))
    vim.bo[bufnr].readonly = true
    t.matches('^a.txt is not written: ', message('file_save', { paths = { path } }))
  end)
end)

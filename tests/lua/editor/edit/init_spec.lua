-- every Neovim
local changes = require('mcp-tools.editor.edit.history')
local edit = require('mcp-tools.editor.edit')
local project = require('editor_project')
local t = require('helpers')

local api = vim.api

describe('edits', function()
  local function at(start_line, start_col, end_line, end_col, text)
    return { start_line = start_line, start_col = start_col, end_line = end_line, end_col = end_col, text = text }
  end

  local function text_of(bufnr) return table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), '\n') end

  local function open(name, lines)
    local path = project.edit(name, table.concat(lines, '\n') .. '\n')
    return api.nvim_get_current_buf(), path
  end

  local function apply_all(items, opts)
    local result
    edit.apply_all(items, opts, function(...) result = vim.F.pack_len(...) end)
    t.wait(function() return result end)
    return vim.F.unpack_len(result)
  end

  local function ctx()
    local Call, Ctx = require('mcp-tools.calls.call'), require('mcp-tools.calls.ctx')
    local call = Call.new({ id = 'c', name = 'some_tool', host = 'mcp', session = 's', client = { name = 'claude' } })
    return Ctx.new(call, function() end)
  end

  project.each()

  describe('an edit', function()
    it('is one undo block, also right after another edit and in the middle of typing', function()
      local bufnr = open('a.txt', { 'one', 'two', 'three' })
      api.nvim_buf_set_lines(bufnr, 0, 0, false, { 'zero' })
      t.ok(edit.apply(bufnr, { at(0, 0, 0, 4, 'ZERO'), at(3, 0, 3, 5, 'THREE') }))
      t.ok(edit.apply(bufnr, { at(1, 0, 1, 3, 'ONE') }))
      api.nvim_buf_set_lines(bufnr, -1, -1, false, { 'end' })
      local seen = {}
      for i = 1, 4 do
        vim.cmd('silent undo')
        seen[i] = text_of(bufnr)
      end
      t.eq({ 'ZERO\nONE\ntwo\nTHREE', 'ZERO\none\ntwo\nTHREE', 'zero\none\ntwo\nthree', 'one\ntwo\nthree' }, seen)
    end)

    it('keeps marks, extmarks, folds, cursors and views at their text', function()
      local bufnr = open('a.txt', t.lines(200, 'line %d'))
      vim.wo.foldmethod = 'manual'
      vim.cmd('120,130fold')
      api.nvim_buf_set_mark(bufnr, 'a', 100, 2, {})
      local ns = api.nvim_create_namespace('test')
      local mark = api.nvim_buf_set_extmark(bufnr, ns, 149, 2, { end_row = 149, end_col = 4 })
      vim.cmd.split()
      api.nvim_win_set_cursor(0, { 100, 3 })
      vim.cmd('normal! zt')
      vim.cmd.wincmd('w')
      api.nvim_win_set_cursor(0, { 60, 2 })
      vim.cmd('normal! zt')
      local before = {}
      for i, win in ipairs(api.nvim_list_wins()) do
        before[i] = api.nvim_win_call(win, vim.fn.winsaveview)
      end
      local new = t.lines(200, 'line %d')
      new[10] = 'LINE 10'
      table.insert(new, 20, 'a new one')
      table.insert(new, 20, 'and another')
      new[160] = 'changed'
      local result = t.ok(edit.apply(bufnr, { at(0, 0, 200, 0, table.concat(new, '\n') .. '\n') }))
      t.eq(table.concat(new, '\n'), text_of(bufnr))
      for i, win in ipairs(api.nvim_list_wins()) do
        local view = api.nvim_win_call(win, vim.fn.winsaveview)
        t.eq({ before[i].lnum + 2, before[i].topline + 2, before[i].col }, { view.lnum, view.topline, view.col })
      end
      t.eq({ 102, 2 }, api.nvim_buf_get_mark(bufnr, 'a'))
      t.eq({ 151, 2 }, api.nvim_buf_get_extmark_by_id(bufnr, ns, mark, {}))
      t.eq({ 122, 132 }, { vim.fn.foldclosed(125), vim.fn.foldclosedend(125) })
      t.eq({
        { line = 10, removed = 1, added = 1 },
        { line = 20, removed = 0, added = 2 },
        { line = 160, removed = 1, added = 1 },
      }, result.hunks)
    end)

    it('works in a modified buffer without a window, and does not write it', function()
      local bufnr, path = open('a.txt', { 'one', 'two' })
      api.nvim_buf_set_lines(bufnr, 0, 1, false, { 'mine' })
      vim.o.hidden = true
      vim.cmd.enew()
      local result = t.ok(edit.apply(bufnr, { at(1, 0, 1, 3, 'TWO') }))
      t.eq({ 'mine\nTWO', 'one\ntwo\n', true }, { text_of(bufnr), project.disk(path), vim.bo[bufnr].modified })
      t.eq(api.nvim_buf_get_changedtick(bufnr), result.changedtick)
    end)

    it('that changes nothing leaves no trace', function()
      local bufnr = open('a.txt', { 'one', 'two' })
      local tick, seq = api.nvim_buf_get_changedtick(bufnr), vim.fn.undotree().seq_cur
      local seen = project.events('McpToolsEdit')
      t.eq({}, t.ok(edit.apply(bufnr, { at(0, 0, 2, 0, 'one\ntwo\n') })).hunks)
      t.eq({ tick, seq, {} }, { api.nvim_buf_get_changedtick(bufnr), vim.fn.undotree().seq_cur, seen })
      t.eq(false, vim.bo[bufnr].modified)
    end)

    it('is refused with the reason, and nothing is changed', function()
      local bufnr = open('a.txt', { 'one', 'two' })
      local tick = api.nvim_buf_get_changedtick(bufnr)
      local function refused(code, text, opts, edits)
        t.fails(code, text, edit.apply(bufnr, edits or { at(0, 0, 0, 1, 'x') }, opts))
      end
      refused('stale', 'changedtick 1, now ' .. tick, { changedtick = 1 })
      refused('validation_error', 'overlaps', nil, { at(0, 0, 0, 2, 'x'), at(0, 1, 0, 3, 'y') })
      vim.bo.modifiable = false
      refused('tool_error', 'not modifiable')
      vim.bo.modifiable, vim.bo.readonly = true, true
      refused('tool_error', 'read%-only')
      vim.bo.readonly = false
      t.eq({ 'one\ntwo', tick }, { text_of(bufnr), api.nvim_buf_get_changedtick(bufnr) })
      vim.cmd('bwipeout!')
      refused('not_found', 'no loaded buffer')
    end)

    it('is all or nothing, also when it fails half way', function()
      local bufnr = open('a.txt', { 'one', 'two', 'three' })
      local view, seq = vim.fn.winsaveview(), vim.fn.undotree().seq_cur
      local count = 0
      local function on_lines()
        count = count + 1
        vim.bo[bufnr].modifiable = count ~= 1
        return count > 1
      end
      api.nvim_buf_attach(bufnr, false, { on_lines = on_lines })
      t.fails('busy', nil, edit.apply(bufnr, { at(0, 0, 0, 3, 'ONE'), at(2, 0, 2, 5, 'THREE') }))
      t.eq({ 'one\ntwo\nthree', false }, { text_of(bufnr), vim.bo[bufnr].modified })
      t.eq({ view, seq }, { vim.fn.winsaveview(), vim.fn.undotree().seq_cur })
    end)

    it('triggers an event, whose handlers may fail', function()
      local bufnr, path = open('a.txt', { 'one', 'two' })
      local seen = project.events('McpToolsEdit')
      t.ok(edit.apply(bufnr, { at(1, 0, 1, 0, 'new\n') }, { ctx = ctx() }))
      local change = changes.list()[1].id
      local hunk = { line = 2, removed = 0, added = 1 }
      t.has({ path = path, bufnr = bufnr, change = change, hunks = { hunk } }, seen[1])
      t.has({ tool = 'some_tool', host = 'mcp', client = { name = 'claude' } }, seen[1])
      t.eq(1, #seen)
      local id = api.nvim_create_autocmd('User', { pattern = 'McpToolsEdit', command = 'throw "no"' })
      t.ok(edit.apply(bufnr, { at(0, 0, 0, 0, 'x') }))
      api.nvim_del_autocmd(id)
    end)
  end)

  it('a preview is a unified diff and changes nothing', function()
    local bufnr = open('a.txt', t.lines(20, 'line %d'))
    local tick = api.nvim_buf_get_changedtick(bufnr)
    local text = edit.preview(bufnr, { at(9, 0, 9, 4, 'LINE') }, { root = project.root, context = 1 })
    t.eq('--- a/a.txt\n+++ b/a.txt\n@@ -9,3 +9,3 @@\n line 9\n-line 10\n+LINE 10\n line 11\n', text)
    t.eq({ tick, '' }, { api.nvim_buf_get_changedtick(bufnr), (edit.preview(bufnr, {})) })
    t.fails('stale', nil, edit.preview(bufnr, {}, { changedtick = 1 }))
  end)

  describe('edits of several files', function()
    local a, b, path_a, path_b

    local function item(path, text) return { path = path, edits = { at(0, 0, 0, 3, text or 'X') } } end

    --- Edits of both files, and of a third one at the end.
    local function both(text, third)
      local first, second = { at(0, 0, 0, 3, text) }, { at(1, 0, 1, 3, text) }
      return { { bufnr = a, edits = first }, { path = path_b, edits = second }, third and item(third) }
    end

    local function disks(...) return vim.tbl_map(project.disk, { ... }) end

    before_each(function()
      path_b = project.write('b.txt', 'one\ntwo\n')
      a, path_a = open('a.txt', { 'one', 'two' })
      b = nil
    end)

    it('leave open files unsaved and write closed ones', function()
      local seen = project.events('McpToolsEdit')
      local files = t.ok((apply_all(both('X'))))
      b = files[2].bufnr
      t.eq({ false, true }, { files[1].written, files[2].written })
      t.eq({ 'X\ntwo', 'one\ntwo\n', true }, { text_of(a), project.disk(path_a), vim.bo[a].modified })
      t.eq({ 'one\nX', 'one\nX\n', false }, { text_of(b), project.disk(path_b), vim.bo[b].modified })
      t.eq({ {}, false }, { vim.fn.win_findbuf(b), vim.bo[b].buflisted })
      t.eq({ path_a, path_b }, { seen[1].path, seen[2].path })
      t.eq(true, t.ok((apply_all({ { bufnr = a, edits = { at(0, 0, 0, 1, 'Y') } } }, { write = true })))[1].written)
      t.eq('Y\ntwo\n', project.disk(path_a))
    end)

    it('are reverted when one is invalid, and nothing stays changed or loaded', function()
      local buffers, view = #api.nvim_list_bufs(), vim.fn.winsaveview()
      for code, wrong in pairs({ validation_error = { at(1, 0, 1, 99, 'X') }, execution_error = { {} } }) do
        local seen, items = project.events('McpToolsEdit'), both('X')
        items[2].edits = wrong
        t.fails(code, nil, apply_all(items))
        t.eq({ {}, 'one\ntwo', false, view }, { seen, text_of(a), vim.bo[a].modified, vim.fn.winsaveview() })
        t.eq({ 'one\ntwo\n', buffers }, { project.disk(path_b), #api.nvim_list_bufs() })
      end
    end)

    it('are reverted when one file cannot be written, even in files that were written before', function()
      local blocked = project.write('sub/c.txt', 'one\n')
      project.once('BufWritePre', '*/c.txt', 'throw "no"')
      t.fails('tool_error', 'c.txt was not written: .*no', apply_all(both('X', blocked), { write = true }))
      t.eq({ 'one\ntwo\n', 'one\ntwo\n', 'one\n' }, disks(path_a, path_b, blocked))
      t.eq({ 'one\ntwo', false }, { text_of(a), vim.bo[a].modified })
    end)

    it('that fail or are cancelled half way are reverted, except where the user has typed', function()
      local one = ctx()
      for _, stop in ipairs({ function() error('no') end, function() one.call:cancel('test') end }) do
        local last = project.write('c.txt', 'one\n')
        project.once('BufWritePre', '*/b.txt', function()
          api.nvim_buf_set_lines(a, -1, -1, false, { 'typed' })
          stop()
        end)
        local value, err = apply_all(both('X', last), { ctx = one })
        t.fails(nil, 'the edit of a%.txt was not undone: it has changed since', value, err)
        t.eq({ 'X\ntwo\ntyped', 'one\ntwo\n', 'one\n' }, { text_of(a), unpack(disks(path_b, last)) })
        api.nvim_buf_call(a, function() vim.cmd('silent edit!') end)
      end
    end)

    it('that are cancelled between two files are reverted, even if nothing is written', function()
      local one = ctx()
      local function on_lines()
        vim.schedule(function() one.call:cancel('test') end)
        vim.uv.sleep(10) -- longer than a time slice, so a pause follows
        return true
      end
      api.nvim_buf_attach(a, false, { on_lines = on_lines })
      local _, err = apply_all(both('X'), { ctx = one, write = false })
      t.eq({ 'cancelled', 'one\ntwo', false }, { err and err.code, text_of(a), vim.bo[a].modified })
    end)

    it('that fail keep what the user has typed between the edit of a file and its write', function()
      local first, last = project.write('0.txt', 'one\n'), project.write('c.txt', 'one\n')
      project.once('BufWritePre', '*/0.txt', function() api.nvim_buf_set_lines(a, -1, -1, false, { 'typed' }) end)
      project.once('BufWritePre', '*/c.txt', 'throw "no"')
      local items = both('X', last)
      table.insert(items, 1, item(first))
      t.eq({ nil, 'X\ntwo\ntyped' }, { (apply_all(items, { write = true })), (text_of(a)) })
      t.eq({ 'X\ntwo\ntyped\n', 'one\n' }, { project.disk(path_a), project.disk(first) })
    end)

    it('are reverted although an autocommand writes files when their text changes', function()
      api.nvim_buf_set_lines(a, -1, -1, false, { 'mine' })
      for _, is_unsaved in ipairs({ true, false }) do
        local blocked = project.write('sub/c.txt', 'one\n')
        local before, tick = text_of(a), api.nvim_buf_get_changedtick(a)
        local function on_lines()
          vim.schedule(function() vim.cmd('silent wall') end)
          vim.uv.sleep(10) -- longer than a time slice, so a pause follows
          return true
        end
        api.nvim_buf_attach(a, false, { on_lines = on_lines })
        project.once('BufWritePre', '*/c.txt', 'throw "no"')
        local files, err = apply_all(both('X', blocked), { write = true })
        t.eq({ nil, nil }, { files, (err.message:match('not undone.*')) })
        t.eq(is_unsaved, tick < api.nvim_buf_get_changedtick(a) and before == 'one\ntwo\nmine')
        t.eq({ before, before .. '\n', false }, { text_of(a), project.disk(path_a), vim.bo[a].modified })
        t.eq('one\ntwo\n', project.disk(path_b))
        vim.cmd('silent! %bwipeout!')
        a, path_a = open('a.txt', { 'one', 'two' })
      end
    end)

    it('are reverted without what a command of the formatter has written after each write', function()
      local blocked = project.write('sub/c.txt', 'one\n')
      local formatter = api.nvim_create_autocmd('BufWritePost', {
        pattern = { '*/a.txt', '*/b.txt' },
        callback = function(args)
          project.write(api.nvim_buf_get_name(args.buf), 'formatted\n' .. project.disk(api.nvim_buf_get_name(args.buf)))
        end,
      })
      project.once('BufWritePre', '*/c.txt', 'throw "no"')
      local files, err = apply_all(both('X', blocked), { write = true })
      api.nvim_del_autocmd(formatter)
      t.eq({ nil, nil }, { files, (err.message:match('not undone.*')) })
      t.eq({ 'one\ntwo', 'one\ntwo\n', 'one\ntwo\n' }, { text_of(a), unpack(disks(path_a, path_b)) })
    end)

    it('that are cancelled leave a file loaded that another call uses', function()
      local one, other, last = ctx(), ctx(), project.write('c.txt', 'one\n')
      project.once('BufWritePre', '*/b.txt', function(args)
        b = args.buf
        require('mcp-tools.editor.buffer.open').use(b, other)
        one.call:cancel('test')
      end)
      t.eq(nil, (apply_all(both('X', last), { ctx = one })))
      t.eq({ true, 'one\ntwo\n' }, { api.nvim_buf_is_loaded(b), project.disk(path_b) })
      other.call:cancel('test')
    end)

    it('are reverted without the formatter that runs before each write', function()
      local blocked = project.write('sub/c.txt', 'one\n')
      local formatter = api.nvim_create_autocmd('BufWritePre', {
        pattern = '*/b.txt',
        callback = function(args) api.nvim_buf_set_lines(args.buf, 0, 0, false, { 'formatted' }) end,
      })
      project.once('BufWriteCmd', '*/c.txt', 'throw "no"')
      local before = project.disk(path_b)
      local files = apply_all({ item(path_b), item(blocked) })
      api.nvim_del_autocmd(formatter)
      t.eq({ nil, before }, { files, project.disk(path_b) })
    end)

    it('do not overwrite what other processes wrote, whether all files are written or one', function()
      api.nvim_buf_set_lines(a, 1, 2, false, { 'mine' })
      project.write('a.txt', 'others\ntwo\n')
      for _, one in ipairs({ true, false }) do
        local edit_a = { bufnr = a, edits = { at(0, 0, 0, 1, 'X') }, write = one or nil }
        t.fails('stale', nil, apply_all({ edit_a }, { write = not one or nil }))
      end
      t.eq({ 'one\nmine', 'others\ntwo\n' }, { text_of(a), project.disk(path_a) })
    end)

    for name, is_modified in pairs({ ['with unsaved changes'] = true, ['without them'] = false }) do
      it('are not undone where another process has written since, in a buffer ' .. name, function()
        for _, stop in ipairs({ 'fail', 'cancel' }) do
          local one, last = ctx(), project.write('c.txt', 'one\n')
          project.write('a.txt', 'one\ntwo\n')
          api.nvim_buf_call(a, function() vim.cmd('silent edit!') end)
          if is_modified then
            api.nvim_buf_set_lines(a, -1, -1, false, { 'mine' })
          end
          project.once('BufWritePre', '*/c.txt', function()
            project.write('a.txt', project.disk('a.txt') .. 'others\n')
            if stop == 'fail' then
              error('no')
            end
            one.call:cancel('test')
          end)
          local value, err = apply_all(both('X', last), { ctx = one, write = true })
          local code = stop == 'fail' and 'tool_error' or 'cancelled'
          t.fails(code, 'the edit of a%.txt was not undone: it has changed since$', value, err)
          local text = is_modified and 'X\ntwo\nmine\nothers' or 'X\ntwo\nothers'
          t.eq({ text, text .. '\n', false }, { text_of(a), project.disk('a.txt'), vim.bo[a].modified })
          t.eq({ 'one\ntwo\n', 'one\n' }, disks('b.txt', 'c.txt'))
        end
      end)
    end

    it('are stale when a file has changed on disk', function()
      project.write('a.txt', 'others\ntwo\n')
      t.fails('stale', nil, apply_all(both('X')))
      t.eq({ 'others\ntwo', 'one\ntwo\n' }, { text_of(a), project.disk(path_b) })
      local tick = api.nvim_buf_get_changedtick(a)
      project.write('a.txt', 'others again\ntwo\n')
      local items = both('X')
      items[1].changedtick = tick
      t.fails('stale', nil, apply_all(items))
    end)

    it('go through all buffers only a few times, even for many files', function()
      local items = {}
      for i = 1, 100 do
        items[i] = item(project.write(('many/%d.txt'):format(i), 'one\n'))
        vim.fn.bufload(vim.fn.bufadd(items[i].path))
      end
      local function apply() t.eq(100, #t.ok((apply_all(items, { write = false })))) end
      local names = t.calls(api, 'nvim_buf_get_name', apply)
      t.ok(names < 2000, ('%d names'):format(names))
    end)

    it('are reverted when another process writes one of the files in the meantime', function()
      local last = project.write('z.txt', 'one\n')
      project.once('BufReadPost', '*/z.txt', function() project.write('b.txt', 'written by another process\n') end)
      t.fails('stale', nil, apply_all(both('X', last), { write = true }))
      t.eq({ 'one\ntwo\n', 'written by another process\n', 'one\n' }, disks(path_a, path_b, last))
      t.eq({ 'one\ntwo', false }, { text_of(a), vim.bo[a].modified })
    end)

    it('are reverted when one of the files was made read-only after it was read', function()
      vim.uv.fs_chmod(path_a, tonumber('444', 8))
      t.fails('tool_error', nil, apply_all(both('X'), { write = true }))
      t.eq({ 'one\ntwo\n', 'one\ntwo\n', 'one\ntwo' }, { project.disk(path_a), project.disk(path_b), text_of(a) })
    end)

    it('are refused when a file occurs twice or does not exist, or the call has ended', function()
      local items = both('X')
      items[3] = { path = path_a, edits = {} }
      t.fails('validation_error', nil, apply_all(items))
      items[3].path = project.root .. '/none.txt'
      t.fails('not_found', nil, apply_all(items))
      local over = ctx()
      over.call:cancel('test')
      t.fails('cancelled', nil, apply_all(both('X'), { ctx = over }))
      t.eq({ 'one\ntwo', 'one\ntwo\n' }, { text_of(a), project.disk(path_b) })
    end)
  end)
end)

describe('a change by an agent', function()
  local function edit_buffer(args)
    local outcome = project.run('tool', 'file_edit', args)
    t.eq(nil, outcome.error)
    return changes.list()[1]
  end

  local function back(change)
    local done
    edit.revert(change, function(...) done = { ... } end)
    t.wait(function() return done end)
    return done[1], done[2]
  end

  local function lines() return api.nvim_buf_get_lines(0, 0, -1, false) end

  --- Opens a file with this text and edits it.
  local function edited(text, edits)
    local path = project.edit('a.txt', text)
    return edit_buffer({ path = path, edits = edits }), path
  end

  project.each({ 'buffer', 'file' })

  it('is recorded with its tool, time and lines', function()
    local change, path = edited('a\nb\nc\n', { { search = 'b\n', replace = 'B\nB2\n' } })
    t.eq({ 'file_edit', path, false }, { change.tool, change.path, change.is_new })
    t.ok(math.abs(os.time() - change.at) < 60)
    t.eq({ { start = 2, count = 1, old = { 'b' }, new = { 'B', 'B2' } } }, change.hunks)
    t.eq({ { 'a', 'B', 'B2', 'c' }, change }, { changes.after(change), (changes.find(change.id)) })
  end)

  it('is dropped when the newer ones fill the memory limit', function()
    local text = { ('x'):rep(10 * 1024 * 1024) }
    for i = 1, 4 do
      local made = { path = '/' .. i, before = {}, after = text, hunks = { { line = 1, removed = 0, added = 1 } } }
      changes.note({ call = { name = 'file_write' } }, made)
    end
    t.eq({ '/4', '/3', '/2' }, vim.iter(changes.list()):map(function(change) return change.path end):totable())
  end)

  it('can be reverted although the text around it has changed', function()
    local change = edited('a\nb\nc\nd\ne\n', {
      { search = 'b\n', replace = 'B\nB2\n' },
      { search = 'd\n', replace = '' },
      { search = 'e', replace = 'E' },
    })
    api.nvim_buf_set_lines(0, 0, 1, false, { 'mine', 'a!' })
    t.eq({ hunks = 2, left = 0, unsaved = true }, (back(change)))
    t.eq({ 'mine', 'a!', 'b', 'c', 'd', 'e' }, lines())
    t.ok(change.reverted)
  end)

  it('is reverted as far as it is still in the text', function()
    local change = edited('a\nb\nc\n', { { search = 'a', replace = 'A' }, { search = 'c', replace = 'C' } })
    api.nvim_buf_set_lines(0, 2, 3, false, { 'mine' })
    t.eq({ { hunks = 1, left = 1, unsaved = true }, { 'a', 'b', 'mine' } }, { (back(change)), (lines()) })
    t.fails('stale', nil, back(change))
  end)

  it('that was saved is reverted on disk, unless the buffer has other unsaved changes', function()
    local path = project.edit('a.txt', 'a\nb\n')
    local change = edit_buffer({ path = path, edits = { { search = 'a', replace = 'A' } }, save = true })
    t.eq({ 'A\nb\n', { hunks = 1, left = 0 } }, { project.disk(path), (back(change)) })
    t.eq({ 'a\nb\n', false }, { project.disk(path), vim.bo.modified })
    change = edit_buffer({ path = path, edits = { { search = 'a', replace = 'A' } }, save = true })
    api.nvim_buf_set_lines(0, 1, 2, false, { 'mine' })
    t.eq({ hunks = 1, left = 0, unsaved = true }, (back(change)))
    t.eq({ 'A\nb\n', { 'a', 'mine' } }, { project.disk(path), lines() })
  end)

  it('is reverted on disk when the file is not open', function()
    local path = project.write('a.txt', 'a\nb\n')
    local change = edit_buffer({ path = path, edits = { { search = 'a', replace = 'A' } } })
    t.eq({ 'A', 'b' }, vim.fn.readfile(path))
    t.ok((back(change)))
    t.eq({ 'a', 'b' }, vim.fn.readfile(path))
  end)

  it('includes what a formatter changes at the write, and is reverted with it', function()
    local path, seen = project.write('fmt.txt', 'a\nb\nc\n'), nil
    project.once('BufWritePre', '*/fmt.txt', function()
      api.nvim_buf_set_lines(0, 1, 2, false, { 'b = 1' })
      api.nvim_buf_set_lines(0, 0, 0, false, { '-- header' })
    end)
    project.once('User', 'McpToolsEdit', function(args) seen = args.data.hunks end)
    local outcome = project.run('tool', 'file_edit', { path = path, edits = { { search = 'b', replace = 'b=1' } } })
    t.eq('-- header\na\nb = 1\nc\n', table.concat(vim.fn.readfile(path), '\n') .. '\n')
    local hunks = { { line = 1, removed = 0, added = 1 }, { line = 3, removed = 1, added = 1 } }
    t.eq({ hunks, hunks }, { seen, outcome.value.files[1].hunks })
    local change = changes.list()[1]
    t.eq({ '-- header', 'a', 'b = 1', 'c' }, changes.after(change))
    t.eq({ { hunks = 2, left = 0 }, { 'a', 'b', 'c' } }, { (back(change)), (vim.fn.readfile(path)) })
  end)

  it('that created a file deletes it when it is reverted, unless the file has changed since', function()
    local path = project.root .. '/new.txt'
    local function made()
      t.eq(nil, project.run('tool', 'file_write', { path = path, text = 'one\n\ntwo\n' }).error)
      return changes.list()[1]
    end
    local change = made()
    t.eq({ true, { 'one', '', 'two' } }, { change.is_new, changes.after(change) })
    project.write('new.txt', 'one\n\nTWO\n')
    t.fails('stale', nil, back(change))
    t.eq({ 'one', '', 'TWO' }, vim.fn.readfile(path))
    project.write('new.txt', 'one\n\ntwo\n')
    vim.cmd('silent edit ' .. path)
    api.nvim_buf_set_lines(0, 0, 0, false, { 'mine' })
    t.fails(nil, 'changed after it was created', back(change))
    vim.cmd('silent undo')
    t.eq({ hunks = 1, left = 0 }, (back(change)))
    t.eq({ nil, true, { 'one', '', 'two' } }, { vim.uv.fs_stat(path), vim.bo.modified, lines() })
    vim.cmd('silent bwipeout!')
    t.ok((back(made())))
    t.eq({ nil, -1 }, { vim.uv.fs_stat(path), vim.fn.bufnr(path) })
    t.fails('not_found', nil, back(change))
  end)
end)

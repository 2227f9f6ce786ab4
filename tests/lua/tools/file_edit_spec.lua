-- slow, every Neovim
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local project = require('editor_project')
local t = require('helpers')

local api = vim.api

--- Calls the tool and returns its result for the first file.
local function run(args)
  local value, err = project.call('file_edit', args)
  return value and value.files[1], err
end

local function refused(code, pattern, args) project.refused('file_edit', code, pattern, args) end

local disk = project.disk

local function read(path) t.ok((project.call('file_read', { path = path or 'a.lua' }))) end

local function text() return table.concat(api.nvim_buf_get_lines(0, 0, -1, false), '\n') end

local path
local TEXT = 'local a = 1\nlocal b = 2\n\nreturn a + b\n'
project.each({ 'file', 'change' }, function() path = project.edit('a.lua', TEXT) end)

describe('file_edit', function()
  it('replaces unique text, several edits in one undo step', function()
    local value = t.ok(run({
      path = 'a.lua',
      edits = {
        { old_text = 'return a + b', new_text = 'return a * b' },
        { old_text = 'local a = 1\nlocal b = 2', new_text = 'local a, b = 1, 2' },
      },
    }))
    t.eq('local a, b = 1, 2\n\nreturn a * b', text())
    t.eq({ 'a.lua', 0 + api.nvim_buf_get_changedtick(0), false }, { value.path, value.changedtick, value.written })
    t.eq({ { line = 1, removed = 2, added = 1 }, { line = 3, removed = 1, added = 1 } }, value.hunks)
    t.matches('return a %+ b', disk(path))
    vim.cmd('silent undo')
    t.eq('local a = 1\nlocal b = 2\n\nreturn a + b', text())
  end)

  it('does not create a deleted file again from a hidden buffer', function()
    local hidden = project.write('hidden.lua', 'one\ntwo\n')
    t.ok(run({ path = 'hidden.lua', edits = { { old_text = 'one', new_text = 'ONE' } } }))
    t.ok(vim.uv.fs_unlink(hidden))
    refused('not_found', '^hidden.lua was deleted$', {
      path = 'hidden.lua',
      edits = { { old_text = 'two', new_text = 'TWO' } },
    })
    t.eq(nil, vim.uv.fs_stat(hidden))
    t.ok(vim.uv.fs_unlink(path)) -- its buffer is shown
    local value = t.ok(run({ path = 'a.lua', edits = { { old_text = 'local a', new_text = 'local A' } } }))
    t.eq({ 'deleted', false }, { value.disk, value.written })
  end)

  it('replaces, inserts and deletes lines of the text that was read', function()
    refused('stale', 'read it with file_read', { bufnr = 0, edits = { { start_line = 1, new_text = '' } } })
    read()
    t.ok(run({
      bufnr = 0,
      edits = {
        { start_line = 1, end_line = 0, new_text = '-- head' },
        { start_line = 2, new_text = 'local b = 3\n' },
        { start_line = 3, end_line = 3, new_text = '' },
        { start_line = 5, end_line = 4, new_text = '-- tail' },
      },
    }))
    t.eq('-- head\nlocal a = 1\nlocal b = 3\nreturn a + b\n-- tail', text())
    t.ok(run({ bufnr = 0, edits = { { start_line = 1, new_text = '-- top' } } })) -- its own edits count as read
    api.nvim_buf_set_lines(0, 0, 1, false, { '-- mine' })
    refused('stale', 'has changed since you read it', { bufnr = 0, edits = { { start_line = 1, new_text = '' } } })
  end)

  it('leaves no empty line when it inserts into an empty text', function()
    for _, line in ipairs({ 1, 2 }) do
      local empty = project.write(line .. '.txt', '')
      read(empty)
      local edits = { { start_line = line, end_line = line - 1, new_text = 'one\ntwo' } }
      t.ok(run({ path = empty, edits = edits }))
      t.eq({ 'one', 'two' }, vim.fn.readfile(empty))
    end
    local both = project.write('both.txt', '')
    read(both)
    local function insert(new_text) return { start_line = 1, end_line = 0, new_text = new_text } end
    t.ok(run({ path = both, edits = { insert('one'), insert('two') } }))
    t.eq({ 'one', 'two', '' }, vim.fn.readfile(both))
  end)

  it('writes a file that is not open, and an open file with `save`', function()
    local other = project.write('sub/b.lua', 'return 1\n')
    local value = t.ok(run({ path = other, edits = { { old_text = '1', new_text = '2' } } }))
    t.eq({ true, 'sub/b.lua', 'return 2\n' }, { value.written, value.path, disk(other) })
    t.eq(true, t.ok(run({ path = path, save = true, edits = { { old_text = '1', new_text = '9' } } })).written)
    t.matches('local a = 9', disk(path))
  end)

  it('reports the nearest similar lines when the text is not found', function()
    refused('not_found', 'edits%[0%]: old_text: .*lines 4%-4 %(%d+ %% similar%):\nreturn a %+ b', {
      bufnr = 0,
      edits = { { old_text = 'return a + c', new_text = '' } },
    })
    refused('not_found', 'lines 1%-2 %(only white space differs%)', {
      bufnr = 0,
      edits = { { old_text = '  local a = 1\n  local b=2', new_text = '' } },
    })
    refused('not_found', 'nothing similar', { bufnr = 0, edits = { { old_text = 'zzzzzzzzzz', new_text = '' } } })
  end)

  it('changes nothing when one edit is invalid', function()
    read()
    local tick = api.nvim_buf_get_changedtick(0)
    local fine, fine_b = { old_text = 'return', new_text = 'give' }, { old_text = 'a + b', new_text = 'e' }
    for pattern, edits in pairs({
      ['edits%[1%]: .* in lines 1, 2'] = { fine, { old_text = 'local ', new_text = '' } },
      ['edits%[1%]: it overlaps'] = { fine_b, { old_text = 'b', new_text = 'd', replace_all = true } },
      ['overlaps'] = { fine, { old_text = 'return a', new_text = '' } },
      ['either old_text'] = { fine, { new_text = '' } },
      ['new_text: is missing'] = { fine, { old_text = 'a' } },
      ['give either'] = { fine, { old_text = 'a', start_line = 1, new_text = '' } },
      ['lines 9%-9 are not in the text'] = { fine, { start_line = 9, new_text = '' } },
      ['start_line %- 1'] = { fine, { start_line = 3, end_line = 1, new_text = '' } },
    }) do
      refused('validation_error', pattern, { bufnr = 0, edits = edits })
    end
    refused('validation_error', 'edits', { bufnr = 0, edits = {} })
    refused('validation_error', 'edits%[0%]: path', { edits = { fine } })
    refused('not_found', 'no file', { path = 'none.lua', edits = { fine } })
    vim.bo.modifiable = false
    refused('tool_error', 'not modifiable', { bufnr = 0, edits = { fine } })
    t.eq(tick, api.nvim_buf_get_changedtick(0))
  end)

  it('detects that other processes changed the file', function()
    project.write('a.lua', 'theirs\n')
    refused('not_found', 'old_text', { bufnr = 0, edits = { { old_text = 'local a', new_text = '' } } })
    t.ok(run({ bufnr = 0, edits = { { old_text = 'theirs', new_text = 'mine' } } }))
    project.write('a.lua', 'theirs again\n')
    t.eq('changed by others', t.ok(run({ bufnr = 0, edits = { { old_text = 'mine', new_text = 'x' } } })).disk)
    refused('stale', 'changed on disk', { bufnr = 0, save = true, edits = { { old_text = 'x', new_text = 'y' } } })
    t.eq({ 'x', 'theirs again\n' }, { text(), disk(path) })
  end)

  it('edits several files in one call, all or none', function()
    local b = project.write('b.lua', 'return 1\n')
    local edit_a = { path = 'a.lua', old_text = 'a + b', new_text = 'a' }
    local value =
      t.ok((project.call('file_edit', { edits = { edit_a, { path = 'b.lua', old_text = '1', new_text = '2' } } })))
    t.has({ path = 'a.lua', written = false }, value.files[1])
    t.has({ path = 'b.lua', written = true }, value.files[2])
    t.eq('return 2\n', disk(b))
    t.matches('return a$', text())
    local fine = { path = 'b.lua', old_text = '2', new_text = '3' }
    local missing = { path = 'a.lua', old_text = 'no', new_text = '' }
    refused('not_found', 'edits%[1%]: old_text', { edits = { fine, missing } })
    t.eq('return 2\n', disk(b))
    local new = { path = 'sub/new.lua', new_text = 'x = 1\n' }
    refused('not_found', 'edits%[1%]', { edits = { new, missing } })
    t.eq(nil, vim.uv.fs_stat(project.root .. '/sub'))
    t.ok((project.call('file_edit', { edits = { new, fine } })))
    t.eq({ 'return 3\n', 'x = 1\n' }, { disk(b), disk('sub/new.lua') })
    refused('validation_error', 'the file exists', { edits = { new } })
  end)

  it('accepts the argument names of other agents', function()
    t.ok(run({ file_path = 'a.lua', old_string = 'a + b', new_string = 'b' }))
    t.matches('return b$', text())
    t.ok(run({ path = 'a.lua', edits = { { old_text = 'local', new_text = 'var', replace_all = true } } }))
    t.eq('var a = 1\nvar b = 2\n\nreturn b', text())
    t.ok(run({ path = 'a.lua', edits = '[{"old_text": "= 1", "new_text": "= 5"}]' }))
    t.matches('^var a = 5\n', text())
  end)

  it('applies unified diffs and apply_patch text', function()
    local b = project.write('b.lua', 'one\ntwo\nthree\nfour\nfive\nsix\n')
    t.ok((project.call('file_edit', {
      patch = '--- a/a.lua\n+++ b/a.lua\n@@ -3,2 +3,3 @@\n \n-return a + b\n+local c = 3\n+return c\n'
        .. 'diff --git a/b.lua b/b.lua\n--- a/b.lua\n+++ b/b.lua\n@@ -9,2 +9,1 @@\n two\n-three\n'
        .. '@@ -12 +11,2 @@\n six\n+seven\n'
        .. '--- /dev/null\n+++ b/c.lua\n@@ -0,0 +1 @@\n+return 3\n',
    })))
    t.eq('local a = 1\nlocal b = 2\n\nlocal c = 3\nreturn c', text())
    t.eq({ 'one\ntwo\nfour\nfive\nsix\nseven\n', 'return 3\n' }, { disk(b), disk('c.lua') })
    t.ok((project.call('file_edit', {
      patch = '*** Begin Patch\n*** Update File: b.lua\n@@ four\n-five\n+5\n six\n*** Add File: d.lua\n+return 4\n'
        .. '*** Update File: a.lua\n-local b = 2  \n+local b = 3\n\n local c = 3\n*** End Patch\n',
    })))
    t.eq({ 'one\ntwo\nfour\n5\nsix\nseven\n', 'return 4\n' }, { disk(b), disk('d.lua') })
    t.matches('\nlocal b = 3\n\nlocal c', text())
    refused('validation_error', 'patch: neither', { patch = 'hello' })
    local deletes = '--- a/b.lua\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n'
    refused('validation_error', 'patch: line 2: .*deleted', { patch = deletes })
    refused('validation_error', 'fewer rows', { patch = '--- a/b.lua\n+++ b/b.lua\n@@ -1,3 +1,3 @@\n x\n' })
    refused('not_found', 'patch: hunk 1: .*\nnothing', { patch = '*** Update File: b.lua\n-nothing\n+x\n' })
    refused('validation_error', 'edits or patch', {})
    local definition = core.get().registry.entries.tools.file_edit
    t.matches('edits or patch', select(2, t.try(definition.preview, { path = 'a.lua' })).message) -- so nobody is asked
    local both = { patch = '--- a', edits = { { path = 'b.lua', new_text = '' } } }
    refused('validation_error', 'cannot be combined', both)
    project.write('.env', 'x\n')
    refused('access_denied', 'sensitive', { patch = '--- .env\n+++ .env\n@@ -1 +1 @@\n-x\n+y\n' })
  end)

  it('applies a hunk at its line, and refuses a patch that it would apply only in part', function()
    local many = project.write('many.txt', ('x\n'):rep(5000))
    t.ok((project.call('file_edit', { patch = '--- a/many.txt\n+++ b/many.txt\n@@ -4000 +4000 @@\n-x\n+y\n' })))
    t.eq('y', vim.fn.readfile(many)[4000])
    local head = '--- a/a.lua\n+++ b/a.lua\n@@ -1 +1 @@\n-local a = 1\n+local a = 3\n'
    for rest, pattern in pairs({
      ['-local b = 2\n'] = 'not part of a hunk',
      ['@@\n-local b = 2\n'] = 'not part of a hunk',
      ['diff --git a/x b/y\nrename from x\nrename to y\n'] = 'not renamed',
      ['--- a/b.lua\n+++ b/b.lua\n'] = 'no hunks for b.lua',
    }) do
      refused('validation_error', pattern, { patch = head .. rest })
    end
    local codex = '*** Update File: a.lua\n-local a = 1\n+local a = 3\n***  Update File: b.lua\n-x\n+y\n'
    refused('validation_error', 'patch: line 4', { patch = codex })
    t.matches('^local a = 1\n', text())
    project.write('empty.txt', '')
    t.ok((project.call('file_edit', { patch = '--- a/empty.txt\n+++ b/empty.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n' })))
    t.eq('a\nb\n', disk('empty.txt'))
    t.ok(run({ patch = vim.NIL, edits = { { path = 'a.lua', old_text = 'a + b', new_text = 'a' } } }))
    t.fast(refused, 'validation_error', 'patch', { patch = '@@ -' .. ('1'):rep(400000) })
    t.fast(refused, 'too_large', 'patch', { patch = ('\n'):rep(4000000) })
  end)

  it('converts line breaks to those of the file', function()
    local dos = project.write('dos.txt', 'one\r\ntwo\r\n')
    t.ok(run({ path = dos, edits = { { old_text = 'one\r\ntwo', new_text = '1\n2' } } }))
    t.eq({ '1\r', '2\r', '' }, vim.fn.readfile(dos, 'b'))
  end)

  it('adds no CR to a file without CR', function()
    t.ok(run({ bufnr = 0, edits = { { old_text = 'local a = 1\r\nlocal b', new_text = 'local a\r\nlocal b' } } }))
    t.eq('local a\nlocal b = 2\n\nreturn a + b', text())
    read()
    t.ok(run({ bufnr = 0, edits = { { start_line = 3, new_text = 'x\r\ny' } } }))
    t.eq('local a\nlocal b = 2\nx\ny\nreturn a + b', text())
    local mixed = project.write('mixed.txt', 'one\r\ntwo\nthree\n')
    t.ok(run({ path = mixed, edits = { { old_text = 'two', new_text = '2\r\n2b' } } }))
    t.eq({ 'one\r', '2\r', '2b', 'three', '' }, vim.fn.readfile(mixed, 'b'))
  end)

  it('applies many edits to a large text in a few seconds', function()
    local lines, edits = t.lines(100000, 'local value_%d = compute(%d)'), {}
    local large = project.write('large.lua', table.concat(lines, '\n') .. '\n')
    for i = 1, 200 do
      edits[i] = { old_text = table.concat(lines, '\n', i * 450, i * 450 + 3):sub(3), new_text = 'x\nlocal y' }
    end
    local begun = vim.uv.hrtime()
    t.eq(200, #t.ok(run({ path = large, edits = edits })).hunks)
    t.ok(vim.uv.hrtime() - begun < 4e9)
  end)

  it('keeps the missing line break at the end of a closed file', function()
    local open_end = project.write('end.txt', 'one\ntwo')
    t.eq(true, t.ok(run({ path = open_end, edits = { { old_text = 'one', new_text = '1' } } })).written)
    t.eq(true, t.ok(run({ path = open_end, edits = { { old_text = 'two', new_text = '2' } } })).written)
    t.eq({ '1', '2' }, vim.fn.readfile(open_end, 'b'))
  end)

  it('keeps the cursor and loads no buffer for a failed edit', function()
    api.nvim_win_set_cursor(0, { 4, 3 })
    local buffers = #api.nvim_list_bufs()
    local other = project.write('b.lua', 'return 1\n')
    refused('not_found', 'old_text', { path = other, edits = { { old_text = 'nothing', new_text = '' } } })
    t.eq(buffers, #api.nvim_list_bufs())
    t.ok(run({ path = 'a.lua', edits = { { old_text = 'local b = 2\n', new_text = 'x\ny\n' } } }))
    t.eq({ 5, 3 }, api.nvim_win_get_cursor(0))
  end)

  it('shows the difference in the question', function()
    local function preview(args) return project.previewed(require('mcp-tools.tools.file.edit'), args) end
    local edits = { { old_text = 'return a + b', new_text = 'return a' } }
    local expected = '--- a/a.lua\n+++ b/a.lua\n@@ -3,2 +3,2 @@\n \n-return a + b\n+return a\n'
    t.eq(expected, preview({ bufnr = 0, edits = edits }))
    vim.cmd('silent bwipeout!')
    t.eq(expected, preview({ path = path, edits = edits }))
    local value, err = preview({ path = path, edits = { { old_text = 'no', new_text = '' } } })
    t.fails('not_found', '^edits%[0%]: old_text: ', value, err)
    t.fails('not_found', '^there is no file none.lua$', preview({ path = 'none.lua', edits = edits }))
  end)

  it('shows the difference that it makes, with any line breaks and encoding of a closed file', function()
    local tool = require('mcp-tools.tools.file.edit')
    local texts = {
      mixed = 'one\r\ntwo\nthree\r\n',
      dos = 'one\r\ntwo\r\n',
      latin1 = 'one \252\ntwo\n',
      utf16 = '\255\254o\0n\0e\0\n\0t\0w\0o\0\n\0',
    }
    for name, bytes in pairs(texts) do
      for _, search in ipairs({ 'one\ntwo', 'one\r\ntwo', 'one ü', 'two' }) do
        local args = { path = project.write(name, bytes), edits = { { old_text = search, new_text = 'X' } } }
        local shown = project.previewed(tool, args) ~= nil
        local made = run(args) ~= nil
        t.eq({ name, search, made }, { name, search, shown })
        vim.cmd('silent! %bwipeout!')
      end
    end
  end)

  it('of a closed file asks with the difference, and not at all when the edit fails', function()
    vim.cmd('silent bwipeout!')
    config.reset()
    config.setup({ tools = { 'file' } })
    local gateway, asked = core.get().gateway, {}
    local ask = gateway.ask
    gateway.ask = function(one) table.insert(asked, (one.call.definition.preview(one.args))) end
    local failing = project.start('file_edit', { path = path, edits = { { old_text = 'no', new_text = '' } } })
    t.eq(false, failing:ended()) -- the file is being read
    t.ended(failing)
    t.eq({ 'not_found', 'preview', {} }, { failing.outcome.error.code, failing.decision.by, asked })
    local fine = { old_text = 'return a + b', new_text = 'return a' }
    local call = project.start('file_edit', { path = path, edits = { fine } })
    t.wait(function() return asked[1] end)
    t.matches('%+return a\n', asked[1])
    call:cancel('test')
    vim.fn.writefile({ 'return a + b', 'more' }, path)
    call = project.start('file_edit', { path = path, edits = { fine } })
    call:cancel('test') -- while it is being read
    local passed
    require('mcp-tools.privacy.read').once_read(function() passed = true end)
    t.wait(function() return passed end)
    t.eq(1, #asked)
    gateway.ask = ask
  end)

  it('does not block the main thread while it looks for similar text', function()
    local lines = t.lines(50000, 'local value_%d = compute(%d, "some text")')
    api.nvim_buf_set_lines(0, 0, -1, false, lines)
    local check_turns = t.watch_turns()
    local args = { old_text = 'local value_49999 = compute(49999, "same text")', new_text = '' }
    refused('not_found', 'lines 49999%-49999', { bufnr = 0, edits = { args } })
    check_turns()
  end)

  it('waits for no diagnostics if they are switched off', function()
    local args = { path = 'a.lua', old_text = 'a = 1', new_text = 'a = 2', diagnostics = false, save = vim.NIL }
    local definition = require('mcp-tools.tools.file.edit')
    t.eq({ false, nil }, { definition.prepare(args).diagnostics, args.save })
  end)

  it('by line number is refused after a formatter has changed the text', function()
    vim.cmd('silent bwipeout!')
    local function first_line(new_text) return { path = 'a.lua', edits = { { start_line = 1, new_text = new_text } } } end
    read()
    t.ok(run(first_line('-- first')) and run(first_line('-- still known')))
    local format = api.nvim_create_autocmd('BufWritePre', {
      callback = function(event) api.nvim_buf_set_lines(event.buf, 0, 0, false, { '-- formatted' }) end,
    })
    t.ok(run(first_line('-- again')))
    api.nvim_del_autocmd(format)
    refused('stale', 'read it with file_read', first_line('-- wrong line'))
    t.eq('-- formatted', vim.fn.readfile(path)[1])
  end)

  it('by line number works after the file was saved', function()
    read()
    t.ok(run({ bufnr = 0, edits = { { start_line = 1, new_text = '-- first' } } }))
    t.ok((project.call('file_save', { path = 'a.lua' })))
    t.ok(run({ bufnr = 0, edits = { { start_line = 1, new_text = '-- second' } } }))
    vim.cmd('silent write')
    t.ok(run({ bufnr = 0, edits = { { start_line = 1, new_text = '-- third' } } }))
  end)

  describe('creates a file and fails for another', function()
    --- A call that creates `text` in new/deep/b.txt, then edits a.lua, which cannot be written.
    local function both(new_text)
      return {
        save = true,
        edits = {
          { path = 'new/deep/b.txt', new_text = new_text },
          { path = 'a.lua', old_text = 'local a = 1', new_text = 'local a = 5' },
        },
      }
    end

    local function fail_writes()
      project.once('BufWriteCmd', '*/a.lua', function() error('no space') end)
    end

    it('so that no file, no directory and nothing to revert is left', function()
      local before = #require('mcp-tools.editor.edit.history').list()
      for _, new_text in ipairs({ 'one\n', '\239\187\191one\r\ntwo\r\n', '' }) do
        fail_writes()
        refused('tool_error', 'no space', both(new_text))
        t.eq(nil, vim.uv.fs_stat(project.root .. '/new'))
        t.matches('local a = 1', text())
      end
      t.eq(before, #require('mcp-tools.editor.edit.history').list())
    end)

    it('and can be reverted as a whole after it succeeded', function()
      t.ok(project.call('file_edit', both('\239\187\191one\n')))
      t.eq('\239\187\191one\n', disk(project.root .. '/new/deep/b.txt'))
      t.ok((project.call('change_revert', vim.empty_dict())))
      t.eq(nil, vim.uv.fs_stat(project.root .. '/new/deep/b.txt'))
      t.matches('local a = 1', text())
    end)

    it('so that nothing is left if it is cancelled while the file is created', function()
      for rounds = 0, 12 do
        local call = project.start('file_edit', both('text'))
        for _ = 1, rounds do
          vim.wait(1)
        end
        call:cancel('test')
        t.wait(function() return call:ended() and not require('mcp-tools.privacy.read').is_reading() end)
        vim.wait(30)
        local is_made
        t.wait(function()
          is_made = vim.uv.fs_stat(project.root .. '/new') ~= nil
          return is_made == (text():match('a = 5') ~= nil)
        end)
        if is_made then
          break
        end
      end
    end)
  end)

  it('shows the differences of many closed files in one question', function()
    vim.cmd('silent bwipeout!')
    local edits = {}
    for i = 1, 30 do
      project.write(i .. '.txt', 'old\n')
      edits[i] = { path = i .. '.txt', old_text = 'old', new_text = 'new ' .. i }
    end
    local shown = t.ok(project.previewed(require('mcp-tools.tools.file.edit'), { edits = edits }))
    t.matches('%+new 1\n.*%+new 30\n', shown)
  end)

  it('changes one very long line in many places without a long block', function()
    local word = 'x' .. ('y'):rep(10000)
    local edits, words = {}, {}
    for i = 1, 400 do
      words[i] = i .. word
      edits[i] = { old_text = ('1000%dx'):format(i), new_text = i .. 'z' }
    end
    api.nvim_buf_set_lines(0, 0, -1, false, { '1000' .. table.concat(words, ' 1000') })
    local check_turns = t.watch_turns()
    t.ok(run({ bufnr = 0, edits = edits }))
    check_turns()
    t.matches('^1zy+ 2zy+ .* 400zy+$', text())
  end)

  it('names the file whose patch does not apply', function()
    project.write('b.lua', 'one\n')
    local hunk = '@@\n-%s\n+new\n'
    local patch = '*** Begin Patch\n*** Update File: a.lua\n' .. hunk:format('local a = 1')
    patch = patch .. '*** Update File: b.lua\n' .. hunk:format('two')
    refused('not_found', '^b.lua: patch: hunk 1', { patch = patch })
    t.ok(run({ patch = '', path = 'a.lua', old_text = 'local a = 1', new_text = 'local a = 2' }))
  end)

  describe('the question before an edit', function()
    local definition = require('mcp-tools.tools.file.edit')

    it('shows the text that will be edited if the file has changed since it was read', function()
      project.write('a.lua', 'first\nlocal a = 1\nlocal b = 2\n')
      local args = { edits = { { path = 'a.lua', old_text = 'local a = 1', new_text = 'local a = 9' } } }
      t.matches('@@ %-1,3 %+1,3 @@\n first\n%-local a', t.ok(project.previewed(definition, args)))
    end)

    it('shows unsaved changes of the user that would be written as well', function()
      api.nvim_buf_set_lines(0, -1, -1, false, { '-- of the user' })
      local edit = { path = 'a.lua', old_text = 'local a = 1', new_text = 'local a = 9' }
      t.matches('%+%-%- of the user', t.ok(project.previewed(definition, { save = true, edits = { edit } })))
      t.eq(nil, (t.ok(project.previewed(definition, { edits = { edit } })):find('of the user', 1, true)))
    end)

    it('shows no diff of a text that takes long to compare', function()
      api.nvim_buf_set_lines(0, 0, -1, false, t.lines(25000, 'line %d'))
      local args = { edits = { { path = 'a.lua', old_text = 'line 24999', new_text = 'x' } } }
      t.matches('cannot be shown: it has 25000 lines', t.ok(project.previewed(definition, args)))
    end)
  end)

  it('restores the file and the unsaved changes of the user when an edit of another file fails', function()
    api.nvim_buf_set_lines(0, -1, -1, false, { '-- of the user' })
    vim.cmd('silent edit ' .. project.write('b.lua', 'one\n'))
    project.once('BufWritePre', '*/b.lua', function() error('refused') end)
    refused('tool_error', 'refused', {
      save = true,
      edits = {
        { path = 'a.lua', old_text = 'local a = 1', new_text = 'local a = 9' },
        { path = 'b.lua', old_text = 'one', new_text = 'two' },
      },
    })
    t.eq('local a = 1\nlocal b = 2\n\nreturn a + b\n', disk(path))
    vim.cmd('silent buffer ' .. path)
    t.eq({ 'local a = 1\nlocal b = 2\n\nreturn a + b\n-- of the user', true }, { text(), vim.bo.modified })
    t.ok((project.call('file_save', { path = 'a.lua' })))
    t.matches('of the user', disk(path))
  end)

  it('applies all edits of one file that are sent at once', function()
    for _, is_open in ipairs({ true, false }) do
      local other = project.write('c.txt', table.concat(t.lines(12, 'x%d;'), '\n') .. '\n')
      vim.cmd(('silent %s %s'):format(is_open and 'edit' or 'bwipeout!', other))
      local calls = {}
      for i = 1, 12 do
        local one = { old_text = ('x%d;'):format(i), new_text = ('y%d;'):format(i) }
        calls[i] = project.start('file_edit', { path = other, save = true, edits = { one } })
      end
      for _, call in ipairs(calls) do
        t.eq(nil, t.ended(call, 20000).error)
      end
      t.eq(t.lines(12, 'y%d;'), vim.fn.readfile(other))
    end
  end)

  it('uses the path of a patch without prefixes unchanged', function()
    project.write('foo.txt', 'one\n')
    project.write('b/foo.txt', 'one\n')
    t.ok(run({ patch = '--- b/foo.txt\n+++ b/foo.txt\n@@ -1 +1 @@\n-one\n+two\n' }))
    t.eq({ 'one\n', 'two\n' }, { disk('foo.txt'), disk('b/foo.txt') })
  end)
end)

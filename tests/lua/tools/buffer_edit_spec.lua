-- slow, every Neovim
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local project = require('editor_project')
local t = require('helpers')

local api = vim.api

local function run(args)
  return project.call('buffer_edit', args)
end

local function refused(code, pattern, args)
  project.refused('buffer_edit', code, pattern, args)
end

local disk = project.disk

local function text()
  return table.concat(api.nvim_buf_get_lines(0, 0, -1, false), '\n')
end

local path
before_each(function()
  project.open()
  project.offer({ 'buffer' })
  path = project.write('a.lua', 'local a = 1\nlocal b = 2\n\nreturn a + b\n')
  vim.cmd('silent edit ' .. path)
end)
after_each(project.close)

describe('buffer_edit', function()
  it('replaces text that is there once, several at a time, in one undo step', function()
    local value = t.ok(run({
      path = 'a.lua',
      edits = {
        { search = 'return a + b', replace = 'return a * b' },
        { search = 'local a = 1\nlocal b = 2', replace = 'local a, b = 1, 2' },
      },
    }))
    t.eq('local a, b = 1, 2\n\nreturn a * b', text())
    t.eq({ 'a.lua', 0 + api.nvim_buf_get_changedtick(0), false }, { value.path, value.changedtick, value.written })
    t.eq({ { line = 1, removed = 2, added = 1 }, { line = 3, removed = 1, added = 1 } }, value.applied)
    t.matches('return a %+ b', disk(path))
    vim.cmd('silent undo')
    t.eq('local a = 1\nlocal b = 2\n\nreturn a + b', text())
  end)

  it('replaces, inserts and deletes lines of the text that was read', function()
    local tick = api.nvim_buf_get_changedtick(0)
    t.ok(run({
      bufnr = 0,
      changedtick = tick,
      edits = {
        { start_line = 1, end_line = 0, replace = '-- head' },
        { start_line = 2, replace = 'local b = 3\n' },
        { start_line = 3, end_line = 3, replace = '' },
        { start_line = 5, end_line = 4, replace = '-- tail' },
      },
    }))
    t.eq('-- head\nlocal a = 1\nlocal b = 3\nreturn a + b\n-- tail', text())
    refused('stale', 'read it again', { bufnr = 0, changedtick = tick, edits = { { start_line = 1, replace = '' } } })
    refused('validation_error', 'changedtick: needed', { bufnr = 0, edits = { { start_line = 1, replace = '' } } })
  end)

  it('leaves no line behind what is put into an empty text', function()
    for _, line in ipairs({ 1, 2 }) do
      local empty = project.write(line .. '.txt', '')
      local edits = { { start_line = line, end_line = line - 1, replace = 'one\ntwo' } }
      t.ok(run({ path = empty, edits = edits }))
      t.eq({ 'one', 'two' }, vim.fn.readfile(empty))
    end
    local both = project.write('both.txt', '')
    local one, two =
      { start_line = 1, end_line = 0, replace = 'one' }, { start_line = 1, end_line = 0, replace = 'two' }
    t.ok(run({ path = both, edits = { one, two } }))
    t.eq({ 'one', 'two', '' }, vim.fn.readfile(both))
  end)

  it('writes what is not open, and an open file when it is told to', function()
    local other = project.write('sub/b.lua', 'return 1\n')
    local value = t.ok(run({ path = other, edits = { { search = '1', replace = '2' } } }))
    t.eq({ true, 'sub/b.lua', 'return 2\n' }, { value.written, value.path, disk(other) })
    t.eq(true, t.ok(run({ path = path, write = true, edits = { { search = '1', replace = '9' } } })).written)
    t.matches('local a = 9', disk(path))
  end)

  it('names the nearest places of text that is not there', function()
    refused('not_found', 'edits%[0%]: search: .*lines 4%-4 %(%d+ %% similar%):\nreturn a %+ b', {
      bufnr = 0,
      edits = { { search = 'return a + c', replace = '' } },
    })
    refused('not_found', 'lines 1%-2 %(only white space differs%)', {
      bufnr = 0,
      edits = { { search = '  local a = 1\n  local b=2', replace = '' } },
    })
    refused('not_found', 'nothing similar', {
      bufnr = 0,
      edits = { { search = 'zzzzzzzzzz', replace = '' } },
    })
  end)

  it('names the lines of text that is there more than once', function()
    refused('validation_error', 'edits%[1%]: .* in lines 1, 2', {
      bufnr = 0,
      edits = { { search = 'return', replace = 'give' }, { search = 'local ', replace = '' } },
    })
    t.matches('^local a = 1', text())
  end)

  it('changes nothing when one edit does not fit', function()
    local tick = api.nvim_buf_get_changedtick(0)
    local fine = { search = 'return', replace = 'give' }
    for pattern, edits in pairs({
      ['overlaps'] = { fine, { search = 'return a', replace = '' } },
      ['either search'] = { fine, { replace = '' } },
      ['give either'] = { fine, { search = 'a', start_line = 1, replace = '' } },
      ['lines 9%-9 are not in the text'] = { fine, { start_line = 9, replace = '' } },
      ['start_line %- 1'] = { fine, { start_line = 3, end_line = 1, replace = '' } },
    }) do
      refused('validation_error', pattern, { bufnr = 0, changedtick = tick, edits = edits })
    end
    refused('validation_error', 'edits', { bufnr = 0, edits = {} })
    refused('validation_error', 'exactly one of path', { edits = { fine } })
    refused('not_found', 'no file', { path = 'none.lua', edits = { fine } })
    vim.bo.modifiable = false
    refused('tool_error', 'not modifiable', { bufnr = 0, edits = { fine } })
    t.eq(tick, api.nvim_buf_get_changedtick(0))
  end)

  it('knows what others wrote', function()
    project.write('a.lua', 'theirs\n')
    refused('not_found', 'search', { bufnr = 0, edits = { { search = 'local a', replace = '' } } })
    t.ok(run({ bufnr = 0, edits = { { search = 'theirs', replace = 'mine' } } }))
    project.write('a.lua', 'theirs again\n')
    t.eq('changed by others', t.ok(run({ bufnr = 0, edits = { { search = 'mine', replace = 'x' } } })).disk)
    refused('stale', 'changed on disk', { bufnr = 0, write = true, edits = { { search = 'x', replace = 'y' } } })
    t.eq({ 'x', 'theirs again\n' }, { text(), disk(path) })
  end)

  it('is made by two at a time, each for the text that the other has left', function()
    local function edit(search, replace, changedtick)
      local edits = { { search = search, replace = replace } }
      return project.start('buffer_edit', { path = 'a.lua', edits = edits, changedtick = changedtick })
    end
    local calls = { edit('local a = 1', 'local a = 10'), edit('local b = 2', 'local b = 20'), edit('a + b', 'a * b') }
    local bound = edit('local a', 'x', api.nvim_buf_get_changedtick(0))
    for _, call in ipairs({ bound, unpack(calls) }) do
      t.wait(function()
        return call:ended()
      end)
    end
    for _, call in ipairs(calls) do
      t.eq('done', call.state, vim.inspect(call.outcome))
    end
    t.eq('stale', bound.outcome.error.code)
    t.eq('local a = 10\nlocal b = 20\n\nreturn a * b', text())
  end)

  it('takes line breaks as those of the file', function()
    local dos = project.write('dos.txt', 'one\r\ntwo\r\n')
    t.ok(run({ path = dos, edits = { { search = 'one\r\ntwo', replace = '1\n2' } } }))
    t.eq({ '1\r', '2\r', '' }, vim.fn.readfile(dos, 'b'))
  end)

  it('puts no CR into a file that has none', function()
    t.ok(run({ bufnr = 0, edits = { { search = 'local a = 1\r\nlocal b', replace = 'local a\r\nlocal b' } } }))
    t.eq('local a\nlocal b = 2\n\nreturn a + b', text())
    local tick = api.nvim_buf_get_changedtick(0)
    t.ok(run({ bufnr = 0, changedtick = tick, edits = { { start_line = 3, replace = 'x\r\ny' } } }))
    t.eq('local a\nlocal b = 2\nx\ny\nreturn a + b', text())
    local mixed = project.write('mixed.txt', 'one\r\ntwo\nthree\n')
    t.ok(run({ path = mixed, edits = { { search = 'two', replace = '2\r\n2b' } } }))
    t.eq({ 'one\r', '2\r', '2b', 'three', '' }, vim.fn.readfile(mixed, 'b'))
  end)

  it('of a large text takes no longer than a moment for each edit', function()
    local lines, edits = {}, {}
    for i = 1, 100000 do
      lines[i] = ('local value_%d = compute(%d)'):format(i, i)
    end
    local large = project.write('large.lua', table.concat(lines, '\n') .. '\n')
    for i = 1, 200 do
      edits[i] = { search = table.concat(lines, '\n', i * 450, i * 450 + 3):sub(3), replace = 'x\nlocal y' }
    end
    local begun = vim.uv.hrtime()
    t.eq(200, #t.ok(run({ path = large, edits = edits })).applied)
    t.ok(vim.uv.hrtime() - begun < 4e9)
  end)

  it('keeps the end of a file that is not open, and writes it also the second time', function()
    local open_end = project.write('end.txt', 'one\ntwo')
    t.eq(true, t.ok(run({ path = open_end, edits = { { search = 'one', replace = '1' } } })).written)
    t.eq(true, t.ok(run({ path = open_end, edits = { { search = 'two', replace = '2' } } })).written)
    t.eq({ '1', '2' }, vim.fn.readfile(open_end, 'b'))
  end)

  it('leaves what the person sees, and loads nothing for nothing', function()
    api.nvim_win_set_cursor(0, { 4, 3 })
    local buffers = #api.nvim_list_bufs()
    local other = project.write('b.lua', 'return 1\n')
    refused('not_found', 'search', { path = other, edits = { { search = 'nothing', replace = '' } } })
    t.eq(buffers, #api.nvim_list_bufs())
    t.ok(run({ path = 'a.lua', edits = { { search = 'local b = 2\n', replace = 'x\ny\n' } } }))
    t.eq({ 5, 3 }, api.nvim_win_get_cursor(0))
  end)

  it('shows the difference to whoever is asked', function()
    local function preview(args)
      return project.previewed(require('mcp-tools.tools.buffer.edit'), args)
    end
    local edits = { { search = 'return a + b', replace = 'return a' } }
    local expected = '--- a/a.lua\n+++ b/a.lua\n@@ -3,2 +3,2 @@\n \n-return a + b\n+return a\n'
    t.eq(expected, preview({ bufnr = 0, edits = edits }))
    vim.cmd('silent bwipeout!')
    t.eq(expected, preview({ path = path, edits = edits }))
    local _, err = preview({ path = path, edits = { { search = 'no', replace = '' } } })
    t.eq('not_found', err.code)
    t.matches('^edits%[0%]: search: ', err.message)
    _, err = preview({ path = 'none.lua', edits = edits })
    t.eq({ 'not_found', 'there is no file none.lua' }, { err.code, err.message })
  end)

  it('shows the difference that is made, whatever line breaks and encoding a closed file has', function()
    local tool = require('mcp-tools.tools.buffer.edit')
    local texts = {
      mixed = 'one\r\ntwo\nthree\r\n',
      dos = 'one\r\ntwo\r\n',
      latin1 = 'one \252\ntwo\n',
      utf16 = '\255\254o\0n\0e\0\n\0t\0w\0o\0\n\0',
    }
    for name, bytes in pairs(texts) do
      for _, search in ipairs({ 'one\ntwo', 'one\r\ntwo', 'one ü', 'two' }) do
        local args = { path = project.write(name, bytes), edits = { { search = search, replace = 'X' } } }
        local shown = project.previewed(tool, args) ~= nil
        local made = run(args) ~= nil
        t.eq({ name, search, made }, { name, search, shown })
        vim.cmd('silent! %bwipeout!')
      end
    end
  end)

  it('of a file that is not open is asked about with its difference, not when it comes to nothing', function()
    vim.cmd('silent bwipeout!')
    config.reset()
    config.setup({ tools = { 'buffer' } })
    local gateway, asked = core.get().gateway, {}
    local ask = gateway.ask
    gateway.ask = function(one)
      table.insert(asked, (one.call.definition.preview(one.args)))
    end
    local vain = project.start('buffer_edit', { path = path, edits = { { search = 'no', replace = '' } } })
    t.eq(false, vain:ended()) -- the file is being read
    t.wait(function()
      return vain:ended()
    end)
    t.eq({ 'not_found', 'preview', {} }, { vain.outcome.error.code, vain.decision.by, asked })
    local search = { search = 'return a + b', replace = 'return a' }
    local call = project.start('buffer_edit', { path = path, edits = { search } })
    t.wait(function()
      return asked[1]
    end)
    t.matches('%+return a\n', asked[1])
    call:cancel('test')
    vim.fn.writefile({ 'return a + b', 'more' }, path)
    call = project.start('buffer_edit', { path = path, edits = { search } })
    call:cancel('test') -- while it is being read
    local passed
    require('mcp-tools.privacy.read').once_read(function()
      passed = true
    end)
    t.wait(function()
      return passed
    end)
    t.eq(1, #asked)
    gateway.ask = ask
  end)

  it('lets the editor have its turns while it looks for near text in a long one', function()
    local lines = {}
    for i = 1, 50000 do
      lines[i] = ('local value_%d = compute(%d, "some text")'):format(i, i)
    end
    api.nvim_buf_set_lines(0, 0, -1, false, lines)
    local check_turns = t.watch_turns()
    refused('not_found', 'lines 49999%-49999', {
      bufnr = 0,
      edits = { { search = 'local value_49999 = compute(49999, "same text")', replace = '' } },
    })
    check_turns()
  end)
end)

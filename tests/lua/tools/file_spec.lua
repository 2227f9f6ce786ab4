local project = require('editor_project')
local t = require('helpers')

local api = vim.api

local call, refused, disk = project.call, project.refused, project.disk

project.each({ 'buffer', 'file' })

it('file_read refuses sensitive files', function()
  project.write('.env', 'SECRET=1')
  for _, name in ipairs({ 'file_read', 'file_checksum', 'file_json' }) do
    refused(name, 'access_denied', 'sensitive', { path = '.env' })
  end
end)

it('file_checksum matches sha256', function()
  local bytes = ('x\0é\n'):rep(30000)
  project.write('a.bin', bytes)
  project.write('b.txt', 'text\n')
  project.write('empty', '')
  local function theirs(name)
    return vim.system({ 'sha256sum', name }, { cwd = project.root }):wait().stdout:match('^%x+')
  end
  for name, size in pairs({ ['a.bin'] = #bytes, ['b.txt'] = 5, empty = 0 }) do
    local value = call('file_checksum', { path = name })
    t.eq({ theirs(name), size }, { value.sha256, value.bytes })
  end
  for length = 54, 66 do
    local sum = require('mcp-tools.util.sha256').new()
    sum:add(('a'):rep(length))
    t.eq(vim.fn.sha256(('a'):rep(length)), sum:finish())
  end
  t.eq(theirs('b.txt') .. '  b.txt (5 bytes)', (project.text('file_checksum', { path = 'b.txt' })))
  refused('file_checksum', 'not_found', 'no file', { path = 'none' })
end)

describe('file_write', function()
  it('creates a file and its directories', function()
    local events = project.events('McpToolsEdit')
    local value = call('file_write', { path = 'new/deep/a.txt', text = 'one\ntwo' })
    t.eq({ 'new/deep/a.txt', true }, { value.files[1].path, value.files[1].created })
    t.eq('one\ntwo', disk('new/deep/a.txt'))
    local actual = { events[1].path, events[1].tool, events[1].hunks[1].added }
    t.eq({ project.root .. '/new/deep/a.txt', 'file_write', 2 }, actual)
    project.write('b.txt', 'one\n')
    refused('file_read', 'validation_error', 'beyond the end', { path = 'b.txt', start_line = 9 })
    refused('file_write', 'stale', 'read it first with file_read', { path = 'b.txt', text = '' })
  end)

  it('writes and deletes nothing elsewhere when a directory is replaced by a link', function()
    local uv, directory, elsewhere = vim.uv, project.root .. '/dir', project.base .. '/elsewhere'
    project.write('dir/keep', 'x')
    vim.fn.mkdir(elsewhere, 'p')
    local open, write = uv.fs_open, uv.fs_write
    local function to_link()
      assert(uv.fs_rename(directory, directory .. '-real'))
      assert(uv.fs_symlink(elsewhere, directory))
    end
    local function back()
      assert(uv.fs_unlink(directory))
      assert(uv.fs_rename(directory .. '-real', directory))
    end
    uv.fs_open = function(path, flags, mode, cb)
      if flags ~= 'wx' then
        return open(path, flags, mode, cb)
      end
      to_link()
      open(path, flags, mode, function(...)
        back()
        cb(...)
      end)
    end
    refused('file_write', 'tool_error', 'replaced after', { path = 'dir/a.txt', text = 'secret' })
    uv.fs_open = open
    t.eq({ nil, nil }, { (uv.fs_stat(elsewhere .. '/a.txt')), (uv.fs_stat(directory .. '/a.txt')) })

    vim.fn.writefile({ 'of others' }, elsewhere .. '/a.txt')
    uv.fs_write = function(fd, data, ...)
      if data == 'secret' then
        to_link()
      end
      return write(fd, data, ...)
    end
    refused('file_write', 'tool_error', 'replaced after', { path = 'dir/a.txt', text = 'secret' })
    uv.fs_write = write
    t.eq({ 'of others\n', nil }, { disk(elsewhere .. '/a.txt'), (uv.fs_stat(directory .. '-real/a.txt')) })
    vim.fn.delete(elsewhere, 'rf')
  end)

  it('creates directories inside of the project only, and leaves none behind', function()
    refused('file_write', 'not_found', 'inside the project', { path = project.base .. '/elsewhere/a.txt', text = '' })
    project.write('file', 'x')
    refused('file_write', 'tool_error', 'cannot be created', { path = 'new/' .. ('x'):rep(300), text = '' })
    t.eq(nil, vim.uv.fs_stat(project.root .. '/new'))
    refused('file_write', 'tool_error', 'is a directory', { path = project.root, text = '' })
    assert(vim.uv.fs_symlink(project.base .. '/nowhere', project.root .. '/link'))
    call('file_write', { path = 'link', text = 'x' })
    t.eq('link', vim.uv.fs_lstat(project.root .. '/link').type)
  end)

  it('replaces a file that the client has read, in one undo step of its buffer', function()
    local path = project.write('a.txt', 'one\ntwo\n')
    call('file_read', { path = path, limit = 1 })
    local file = call('file_write', { path = path, text = 'one\n2\nthree\n' }).files[1]
    t.eq({ nil, true, 'one\n2\nthree\n' }, { file.created, file.written, disk(path) })
    t.eq({ { line = 2, removed = 1, added = 2 } }, file.hunks)
    api.nvim_buf_call(file.bufnr, function() vim.cmd('silent undo') end)
    t.eq({ 'one', 'two' }, api.nvim_buf_get_lines(file.bufnr, 0, -1, false))
    refused('file_write', 'stale', 'has changed since you read it', { path = path, text = 'x' })
  end)

  it('replaces what the client has written itself', function()
    call('file_write', { path = 'a.txt', text = 'one\n' })
    call('file_write', { path = 'a.txt', text = 'two\n' })
    call('file_edit', { path = 'a.txt', old_text = 'two', new_text = '2' })
    call('file_write', { path = 'a.txt', text = 'three\n' })
    t.eq('three\n', disk('a.txt'))
    project.write('a.txt', 'written by others\n')
    refused('file_write', 'stale', 'has changed since you read it', { path = 'a.txt', text = 'x' })
  end)

  it('does not overwrite what a command run by the write has appended', function()
    call('file_write', { path = 'a.txt', text = 'one\n' })
    project.once('BufWritePost', 'a.txt', function() vim.cmd("silent !sh -c 'echo appended >> a.txt'") end)
    call('file_edit', { save = true, edits = { { path = 'a.txt', old_text = 'one', new_text = 'two' } } })
    vim.cmd('silent! bwipeout! a.txt')
    refused('file_write', 'stale', 'has changed since you read it', { path = 'a.txt', text = 'x' })
    t.eq('two\nappended\n', project.disk('a.txt'))
  end)

  it('does not follow a link that replaces the file', function()
    local path = project.write('a.txt', 'one\n')
    local victim = project.base .. '/victim.txt'
    vim.fn.writefile({ 'her' }, victim)
    call('file_read', { path = path })
    api.nvim_create_autocmd('BufWritePre', { -- runs while the file is written
      callback = function()
        vim.uv.fs_unlink(path)
        assert(vim.uv.fs_symlink(victim, path))
      end,
      once = true,
    })
    refused('file_write', 'access_denied', 'replaced', { path = path, text = 'two\n' })
    t.eq({ 'her' }, vim.fn.readfile(victim))
  end)

  it('does not lose unsaved changes', function()
    local path = project.edit('a.txt', 'one\n')
    call('file_read', { path = path })
    api.nvim_buf_set_lines(0, 0, 1, false, { 'mine' })
    refused('file_write', 'stale', 'has changed since', { path = path, text = 'x' })
    t.eq({ 'mine', 'one\n' }, { api.nvim_get_current_line(), disk(path) })
    call('file_read', { path = path })
    t.eq({ true, 'x\n' }, { call('file_write', { path = path, text = 'x\n' }).files[1].written, (disk(path)) })
  end)

  it('writes exactly the text that was sent, or reports what the file keeps', function()
    local function over(before, text)
      project.write('a.txt', before)
      call('file_read', { path = 'a.txt' })
      local file = call('file_write', { path = 'a.txt', text = text }).files[1]
      local after = disk('a.txt')
      vim.cmd('silent! %bwipeout!')
      return after, file.written, file.note
    end
    for _, case in ipairs({
      { 'one\ntwo\n', 'one\ntwo' },
      { 'one\ntwo', 'one\ntwo\n' },
      { 'one', 'two' },
      { 'one\ntwo\n', 'one\r\ntwo\r\n' },
      { 'one\ntwo\n', 'one\r\ntwo' },
      { 'one\r\ntwo\r\n', 'one\r\ntwo\nthree\r\n' },
      { 'one\r\ntwo\r\n', 'one\r\n2\r\n' },
      { 'one\ntwo\n', 'one\r\ntwo\n' },
      { 'one\r\n', '' },
      { 'one\n', '\n' },
    }) do
      t.eq({ case, case[2], true, nil }, { case, over(case[1], case[2]) })
    end
    local after, written, note = over('one\r\ntwo\r\n', 'one\n2\n')
    t.eq({ 'one\r\n2\r\n', true }, { after, written })
    t.matches('CRLF', note)
    t.matches('latin1', select(3, over('\252\n', 'ä\n')))
    call('file_write', { path = 'new.txt', text = 'a\r\nb\r\n' })
    t.eq('a\r\nb\r\n', disk('new.txt'))
  end)

  it('changes the line breaks of an open buffer only with its text', function()
    local path = project.edit('a.txt', 'one\n')
    call('file_read', { path = path })
    api.nvim_create_autocmd('BufWritePre', { pattern = '*/a.txt', command = 'throw "no"', once = true })
    local args = { path = path, text = 'one\r\ntwo' }
    refused('file_write', 'tool_error', 'not written', args)
    t.eq({ 'unix', true, false, 'one\n' }, { vim.bo.fileformat, vim.bo.endofline, vim.bo.modified, disk(path) })
    call('file_read', { path = path })
    t.eq(true, call('file_write', args).files[1].written)
    t.eq({ 'dos', false, 'one\r\ntwo' }, { vim.bo.fileformat, vim.bo.endofline, disk(path) })
  end)

  it('keeps one byte order mark, whether or not the text has it', function()
    for _, text in ipairs({ '\239\187\191a\nB\n', 'a\nC\n' }) do
      local path = project.write('bom.txt', '\239\187\191a\nb\n')
      call('file_read', { path = path })
      call('file_write', { path = 'bom.txt', text = text })
      t.eq('\239\187\191' .. text:gsub('^\239\187\191', ''), disk(path))
    end
  end)

  it('has a preview of the difference', function()
    local function preview(args) return project.previewed(require('mcp-tools.tools.file.write'), args) end
    t.eq('--- /dev/null\n+++ b/new.txt\n@@ -0,0 +1,2 @@\n+a\n+b\n', preview({ path = 'new.txt', text = 'a\nb\n' }))
    project.write('a.txt', 'one\n')
    t.eq('--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n', preview({ path = 'a.txt', text = 'two\n' }))
    t.matches('Line breaks become CRLF', preview({ path = 'a.txt', text = 'one\r\n' }))
    t.matches('the line break at the end', preview({ path = 'a.txt', text = 'two' }):lower())
    vim.cmd('silent edit a.txt')
    vim.api.nvim_buf_set_lines(0, 1, 1, false, { 'typed' })
    local text = preview({ path = 'a.txt', text = 'one\nnew\n' })
    t.matches({ '^%-%-%- a/a.txt  %(with your unsaved changes%)\n', '\n%-typed\n%+new\n' }, text)
  end)

  it('reads a file with one empty line that has grown on disk', function()
    vim.cmd('silent edit ' .. project.write('a.txt', '\n'))
    project.write('a.txt', '\noutside\n')
    t.eq('\noutside', (call('file_read', { path = 'a.txt' })).text)
    t.eq({ '', 'outside' }, vim.api.nvim_buf_get_lines(0, 0, -1, false))
  end)
end)

--- Calls a tool and cancels it immediately; it must not have ended before.
local function cancelled(name, args)
  local running = project.start(name, args)
  t.eq(false, running:ended())
  running:cancel('test')
  t.eq('cancelled', running.outcome.error.code)
  return running
end

it('a call that is cancelled changes and writes nothing', function()
  local path = project.write('a.txt', 'one\n')
  call('file_read', { path = path })
  vim.cmd('silent edit ' .. path)
  api.nvim_buf_set_lines(0, 0, 1, false, { 'mine' })
  local tick = api.nvim_buf_get_changedtick(0)
  cancelled('file_save', { paths = { path } })
  cancelled('file_edit', { bufnr = 0, save = true, edits = { { search = 'mine', replace = 'x' } } })
  cancelled('file_write', { path = path, text = 'x' })
  cancelled('file_write', { path = 'new/a.txt', text = 'x' })
  cancelled('file_list', { ignored = true })
  cancelled('file_json', { path = path })
  t.settle()
  t.eq({ 'mine', tick, 'one\n' }, { api.nvim_get_current_line(), api.nvim_buf_get_changedtick(0), disk(path) })
  t.eq(nil, vim.uv.fs_stat(project.root .. '/new'))
end)

describe('file_list', function()
  local function tree()
    for _, name in ipairs({ 'b.lua', 'a.txt', 'src/x.lua', 'src/deep/y.lua', 'out/z.lua', '.hidden' }) do
      project.write(name, 'x')
    end
    project.write('.gitignore', 'out/\n')
  end

  it('lists files that git does not ignore', function()
    project.init()
    tree()
    project.git('add', 'b.lua', 'src/x.lua', 'a.txt')
    os.remove(project.root .. '/a.txt')
    local value = call('file_list', {})
    t.eq('git', value.source)
    t.eq({ '.gitignore', '.hidden', 'b.lua', 'src/deep/y.lua', 'src/x.lua' }, value.files)
    t.eq({ 'src/deep/y.lua' }, call('file_list', { path = 'src/deep' }).files)
    value = call('file_list', { glob = '*.lua', ignored = true })
    t.eq({ 'walk', { 'b.lua', 'out/z.lua', 'src/deep/y.lua', 'src/x.lua' } }, { value.source, value.files })
  end)

  it('lists files without git, by pattern and in pages', function()
    tree()
    local all = call('file_list', { ignored = true })
    t.eq({ 7, nil }, { all.total, all.next_offset })
    t.eq({ 'src/x.lua' }, call('file_list', { glob = 'src/*.lua' }).files)
    t.eq({ 'src/deep/y.lua', 'src/x.lua' }, call('file_list', { glob = 'src/**/*.lua' }).files)
    local page = call('file_list', { ignored = true, limit = 2, offset = 2 })
    t.eq({ { 'a.txt', 'b.lua' }, 4 }, { page.files, page.next_offset })
    t.eq({ ['./'] = 4, ['src/'] = 2, ['out/'] = 1 }, page.folders)
  end)

  it('reports errors', function()
    project.write('a.txt', '')
    refused('file_list', 'not_found', 'is a file', { path = 'a.txt' })
    refused('file_list', 'not_found', 'there is no file none', { path = 'none' })
    refused('file_list', 'validation_error', 'limit', { limit = 0 })
  end)
end)

describe('file_json', function()
  it('reads a file with a byte order mark', function()
    project.write('bom.json', '\239\187\191{"a": [1, 2]}')
    t.eq(2, call('file_json', { path = 'bom.json', query = 'a[1]' }).value)
  end)

  it('returns exact values by their path', function()
    project.write('a.json', '{"a":{"b":[1,2.5,{"c":null}],"":0,"x.y":true},"n":3.141592653589793,"e":[],"o":{}}')
    for query, expected in pairs({
      ['a.b[1]'] = { 'number', 2.5 },
      ['a.b.0'] = { 'number', 1 },
      ['a.b[2].c'] = { 'null', nil },
      ['a["x.y"]'] = { 'boolean', true },
      n = { 'number', 3.141592653589793 },
      e = { 'array', {} },
      o = { 'object', {} },
    }) do
      local value = call('file_json', { path = 'a.json', query = query })
      t.eq({ query, expected[1], expected[2] }, { query, value.type, value.value })
    end
    t.matches('"b":%[1,2.5,{"c":null}%]', (project.text('file_json', { path = 'a.json', query = 'a' })))
    t.eq('null', (project.text('file_json', { path = 'a.json', query = 'a.b[2].c' })))
    t.eq('3.141592653589793', (project.text('file_json', { path = 'a.json', query = 'n' })))
    t.eq('object', call('file_json', { path = 'a.json' }).type)
  end)

  it('reports what exists instead, and errors', function()
    project.write('a.json', '{"a":{"b":[1]},"c":2}')
    refused('file_json', 'not_found', 'no x; a is an object with b', { path = 'a.json', query = 'a.x' })
    refused('file_json', 'not_found', 'no 5; a.b is an array of 1', { path = 'a.json', query = 'a.b[5]' })
    refused('file_json', 'not_found', 'no x; c is a number', { path = 'a.json', query = 'c.x' })
    refused('file_json', 'validation_error', 'from character 2 on', { path = 'a.json', query = 'a..b' })
    project.write('b.json', '{"a":')
    refused('file_json', 'tool_error', 'not JSON', { path = 'b.json' })
    vim.cmd('silent edit ' .. project.root .. '/b.json')
    api.nvim_buf_set_lines(0, 0, 1, false, { '{"a":7}' })
    t.eq(7, call('file_json', { bufnr = 0, query = 'a' }).value)
  end)

  it('returns the structure of a deeply nested value', function()
    local function nested(levels)
      project.write('a.json', '{"a":' .. ('['):rep(levels) .. '7' .. (']'):rep(levels) .. '}')
      return call('file_json', { path = 'a.json', query = 'a' })
    end
    for _, levels in ipairs({ 31, 32, 33, 100, 900 }) do
      local value = nested(levels)
      t.eq({ 'array', 1, nil }, { value.type, value.total, value.value })
      t.matches('nested too deep', value.narrowed)
    end
    t.eq(7, call('file_json', { path = 'a.json', query = 'a' .. ('[0]'):rep(900) }).value)
    t.eq(7, vim.iter(nested(30).value):flatten(math.huge):totable()[1])
    project.write('a.json', ('['):rep(2000) .. (']'):rep(2000))
    refused('file_json', 'tool_error', 'cannot be read: .*nested', { path = 'a.json' })
  end)

  it('returns the structure of a large value', function()
    local items = {}
    for i = 1, 5000 do
      items['key' .. i] = { i, 'some text' }
    end
    project.write('a.json', vim.json.encode({ items = items, list = vim.tbl_values(items), text = ('x'):rep(99999) }))
    local value = call('file_json', { path = 'a.json', query = 'items' })
    t.eq({ 'object', 200, 5000, nil }, { value.type, #value.keys, value.total, value.value })
    t.matches('too large', value.narrowed)
    local actual = (project.text('file_json', { path = 'a.json', query = 'items' }))
    t.matches('^object of 5000 items; .*max_bytes\nkey', actual)
    t.eq({ 5000, nil }, { call('file_json', { path = 'a.json', query = 'list' }).total, value.value })
    t.eq({ 16384, 99999 }, {
      #call('file_json', { path = 'a.json', query = 'text' }).value,
      call('file_json', { path = 'a.json', query = 'text' }).cut,
    })
  end)
end)

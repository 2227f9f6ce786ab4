-- every Neovim
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local t = require('helpers')

local dir = vim.uv.fs_realpath(vim.fn.tempname():match('^(.*)/')) .. '/buffer-tools'

local function write(name, text)
  vim.fn.mkdir(dir, 'p')
  local file = assert(io.open(dir .. '/' .. name, 'wb'))
  file:write(text)
  file:close()
  return dir .. '/' .. name
end

--- Runs a tool on the way of every host and waits for its end.
local function call(name, args)
  local result, err, ended
  require('mcp-tools').call(name, args, function(...)
    result, err = ...
    ended = true
  end)
  t.wait(function()
    return ended
  end)
  return result, err
end

before_each(function()
  config.setup({ tools = { 'buffer', 'file', 'test' } })
  config.setup({
    approval = {
      rule = function()
        return 'allow'
      end,
    },
  })
  core.get()
end)

after_each(function()
  vim.cmd('silent! %bwipeout!')
  config.reset()
  core.get()
  vim.fn.delete(dir, 'rf')
end)

describe('buffer_read', function()
  it('gives the unsaved text of an open file, and says so', function()
    local path = write('a.txt', 'one\ntwo\nthree\n')
    vim.cmd.edit(path)
    vim.api.nvim_buf_set_lines(0, 1, 2, false, { 'TWO é' })
    local result = call('buffer_read', { path = path })
    t.eq('one\nTWO é\nthree', result.text)
    t.eq(true, result.modified)
    t.eq(vim.api.nvim_buf_get_changedtick(0), result.changedtick)
    t.eq({ 3, 1, 3, nil }, { result.lines, result.start_line, result.end_line, result.next_line })
    t.eq(result, (call('buffer_read', { bufnr = vim.api.nvim_get_current_buf() })))
    t.eq(result, (call('buffer_read', { bufnr = 0 })))
  end)

  it('gives the file when it is not open, without opening it', function()
    local path = write('b.txt', 'one\ntwo')
    local before = #vim.api.nvim_list_bufs()
    local result = call('buffer_read', { path = path })
    t.eq({ 'one\ntwo', false, 2 }, { result.text, result.loaded, result.lines })
    t.eq(before, #vim.api.nvim_list_bufs())
  end)

  it('cuts out ranges and says where it goes on', function()
    local path = write('c.txt', 'l1\nl2\nl3\nl4\nl5\n')
    vim.cmd.edit(path)
    for _, how in ipairs({ { path = path }, { bufnr = 0 } }) do
      local result = call('buffer_read', vim.tbl_extend('force', how, { start_line = 2, limit = 2 }))
      t.eq(
        { 'l2\nl3', 2, 3, 4, 5 },
        { result.text, result.start_line, result.end_line, result.next_line, result.lines }
      )
      result = call('buffer_read', vim.tbl_extend('force', how, { start_line = 4, end_line = 99 }))
      t.eq({ 'l4\nl5', nil }, { result.text, result.next_line })
      local _, err = call('buffer_read', vim.tbl_extend('force', how, { start_line = 6 }))
      t.eq('validation_error', err.code)
      t.matches('start_line.*5 lines', err.message)
      _, err = call('buffer_read', vim.tbl_extend('force', how, { start_line = 3, end_line = 2 }))
      t.matches('end_line', err.message)
    end
  end)

  it('cuts what is too much at a line', function()
    local path = write('big.txt', (('x'):rep(1023) .. '\n'):rep(300))
    local result = call('buffer_read', { path = path })
    t.eq({ true, 256, 257, 300 }, { result.truncated, result.end_line, result.next_line, result.lines })
    t.eq(256 * 1024 - 1, #result.text)
    local rest = call('buffer_read', { path = path, start_line = result.next_line })
    t.eq({ 300, nil }, { rest.end_line, rest.truncated })
  end)

  it('cuts one line that is too long', function()
    local result = call('buffer_read', { path = write('long.txt', ('x'):rep(300 * 1024)) })
    t.eq({ true, 256 * 1024 }, { result.truncated, #result.text })
  end)

  it('repairs bytes that are not UTF-8 and says so', function()
    vim.o.fileencodings = 'utf-8'
    local path = write('bin.txt', 'a\255b\nok\n')
    local result = call('buffer_read', { path = path })
    vim.o.fileencodings = 'ucs-bom,utf-8,default,latin1'
    t.eq({ 'a\239\191\189b\nok', true }, { result.text, result.lossy })
  end)

  it('gives of a closed file the text that its buffer would have', function()
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
      local closed = call('buffer_read', { path = path, start_line = name:find('long') and 8000 or 1 })
      local disk = call('file_read', { path = path, start_line = closed.start_line })
      vim.cmd('silent edit ' .. path)
      local open = call('buffer_read', { path = path, start_line = closed.start_line })
      t.eq({ name, open.text, open.lines, nil }, { name, closed.text, closed.lines, closed.lossy })
      t.eq({ name, open.text, open.lines }, { name, disk.text, disk.lines })
      vim.cmd('silent bwipeout!')
    end
  end)

  it('reports the size of a file that is not text', function()
    local path = write('data.bin', ('\0\1\255'):rep(1000))
    for _, name in ipairs({ 'buffer_read', 'file_read' }) do
      local result, err = call(name, { path = path })
      t.eq({ nil, 'tool_error' }, { result, err and err.code })
      t.matches('3000 bytes', err.message)
    end
  end)

  it('reads an empty file and an empty buffer', function()
    t.eq('', call('buffer_read', { path = write('empty.txt', '') }).text)
    vim.cmd.enew()
    t.eq('', call('buffer_read', { bufnr = 0 }).text)
  end)

  it('says what is wrong', function()
    local cases = {
      { {}, 'validation_error', 'exactly one of path and bufnr' },
      { { path = dir .. '/x', bufnr = 1 }, 'validation_error', 'exactly one' },
      { { path = dir .. '/none.txt' }, 'not_found', 'no file' },
      { { path = vim.fs.dirname(dir) }, 'tool_error', 'is a directory' },
      { { bufnr = 9999 }, 'not_found', 'no buffer 9999' },
      { { bufnr = 'x' }, 'validation_error', 'bufnr' },
    }
    for _, case in ipairs(cases) do
      local result, err = call('buffer_read', case[1])
      t.eq(nil, result)
      t.eq(case[2], err.code)
      t.matches(case[3], err.message)
    end
  end)

  it('never takes a terminal for the current file', function()
    vim.cmd.edit(write('d.txt', 'file'))
    t.terminal()
    t.eq('file', call('buffer_read', { bufnr = 0 }).text)
  end)
end)

describe('buffer_list', function()
  it('makes no list of the signs of its buffers', function()
    vim.cmd.edit(write('a.txt', 'a'))
    local result
    local asked = t.calls(vim.fn, 'getbufinfo', function()
      result = call('buffer_list', {})
    end)
    t.eq(0, asked)
    t.eq({ 1, 1, true, true }, {
      #result.buffers,
      result.buffers[1].lines,
      result.buffers[1].loaded,
      result.buffers[1].visible,
    })
  end)

  it('names what is open, changed and shown', function()
    local a, b = write('a.txt', 'a'), write('b.txt', 'b')
    vim.cmd.edit(a)
    vim.cmd.edit(b)
    vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'changed' })
    local result = call('buffer_list', {})
    local by_path = {}
    for _, buffer in ipairs(result.buffers) do
      by_path[buffer.path or ''] = buffer
    end
    t.eq({ false, nil }, { by_path[a].modified, by_path[a].current })
    t.eq({ true, true, true }, { by_path[b].modified, by_path[b].current, by_path[b].visible })
    local modified = call('buffer_list', { modified_only = true })
    t.eq({ 1, b }, { modified.total, modified.buffers[1].path })
  end)

  it('gives names that are UTF-8 and hold no password, and so does test_sync_buffers', function()
    vim.cmd.edit(vim.fn.fnameescape(write('gr\252n.txt', 'x')))
    local bufnr = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_name(bufnr, 'https://someone:hidden@example.org/x')
    vim.fn.bufload(bufnr)
    for tool, field in pairs({ buffer_list = 'path', test_sync_buffers = 'name' }) do
      local names = vim.tbl_map(function(buffer)
        return buffer[field]
      end, call(tool, {}).buffers)
      local all = table.concat(names, '\n')
      t.matches('gr\239\191\189n%.txt', all)
      t.matches('example%.org', all)
      t.ok(not all:find('hidden', 1, true), all)
    end
    vim.cmd('silent! %bwipeout!')
  end)

  it('comes in pages', function()
    for i = 1, 5 do
      vim.cmd.edit(write(i .. '.txt', 'x'))
    end
    local seen, offset = {}, 0
    repeat
      local page = call('buffer_list', { limit = 2, offset = offset })
      for _, buffer in ipairs(page.buffers) do
        table.insert(seen, buffer.bufnr)
      end
      offset = page.next_offset
    until not offset
    t.eq(call('buffer_list', {}).total, #seen)
  end)
end)

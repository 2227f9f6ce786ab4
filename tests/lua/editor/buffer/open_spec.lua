-- every Neovim
-- Buffers that calls load: loading, sharing, unloading, cancelled calls.

local open = require('mcp-tools.editor.buffer.open')
local project = require('editor_project')
local t = require('helpers')

describe('a file that is loaded', function()
  local function load(path)
    local result
    open.load(path, function(...) result = vim.F.pack_len(...) end)
    t.eq(nil, result)
    t.wait(function() return result end)
    return vim.F.unpack_len(result)
  end

  project.each()

  it('is unlisted and in no window, and the user sees nothing', function()
    local path = project.write('a.lua', 'return 1\n')
    local win, buf, mode = vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf(), vim.fn.mode()
    vim.cmd('messages clear')
    vim.cmd('filetype on')
    local bufnr, err, new = load(path)
    vim.cmd('filetype off')
    t.eq({ nil, true, { 'return 1' } }, { err, new, (vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)) })
    t.eq({ win, buf, mode }, { vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf(), vim.fn.mode() })
    t.eq({ {}, false, 'lua' }, { vim.fn.win_findbuf(bufnr), vim.bo[bufnr].buflisted, vim.bo[bufnr].filetype })
    t.eq({ '', { bufnr, nil, nil } }, { vim.fn.execute('messages'), { load(path) } })
  end)

  it('is unmodified although a modeline sets how it is written', function()
    vim.go.modeline = true
    local bufnr = load(project.write('a.lua', '-- vim: set ff=mac fenc=latin1 bomb :\nreturn 1\n'))
    t.eq({ 'mac', false }, { vim.bo[bufnr].fileformat, vim.bo[bufnr].modified })
  end)

  it('runs no command to unpack it', function()
    vim.cmd('runtime! plugin/gzip.vim plugin/tarPlugin.vim plugin/zipPlugin.vim')
    local path = vim.env.PATH
    local marker = project.base .. '/ran'
    for _, program in ipairs({ 'gzip', 'tar', 'unzip', 'xz' }) do
      local file = project.write('bin/' .. program, ('#!/bin/sh\necho "$0" >> "%s"\n'):format(marker))
      vim.uv.fs_chmod(file, 493)
      vim.env.PATH = vim.fs.dirname(file) .. ':' .. path
    end
    for _, name in ipairs({ 'a.gz', 'a.tar', 'a.tgz', 'a.zip', 'a.xz', 'zipfile:b' }) do
      local bufnr, err = load(project.write(name, 'PK\3\4'))
      t.eq({ nil, 'tool_error' }, { bufnr, err.code })
      t.ok(err.message:find('compressed file', 1, true))
      t.eq(-1, vim.fn.bufnr(name))
    end
    t.eq(nil, vim.uv.fs_stat(marker))
    t.ok(load(project.write('zip.txt', 'text\n')))
    vim.env.PATH = path
  end)

  it('is refused if it is in a virtual file system, where a file may have no end', function()
    local path = vim.fn.has('linux') == 1 and '/proc/self/environ' or '/dev/zero'
    t.fails('tool_error', nil, load(vim.uv.fs_realpath(path)))
    t.ok(load(project.write('empty.txt', '')))
  end)

  it('asks nothing about missing spell files', function()
    local asked = false
    vim.go.modeline = true
    local function ask() asked = true end
    local id = vim.api.nvim_create_autocmd('SpellFileMissing', { callback = ask })
    local bufnr = load(project.write('a.txt', 'text\n# vim: set spell spelllang=xy:\n'))
    t.eq({ false, '', 2 }, { asked, vim.o.eventignore, vim.api.nvim_buf_line_count(bufnr) })
    vim.api.nvim_del_autocmd(id)
  end)

  it('asks nothing about a swap file of another editor, and has its own once it is visible', function()
    local path = project.write('a.txt', 'text\n')
    vim.o.updatecount = 200
    vim.o.directory = project.base
    vim.go.swapfile = true
    vim.cmd('silent edit ' .. path)
    local swap = vim.fn.swapname('%')
    t.ok(swap ~= '')
    vim.cmd.preserve()
    local bytes = vim.fn.readblob(swap)
    vim.cmd('bwipeout!')
    vim.fn.writefile(bytes, swap)
    local asked = false
    vim.api.nvim_create_autocmd('SwapExists', {
      callback = function()
        asked = true
        vim.v.swapchoice = 'e'
      end,
    })
    local bufnr = load(path)
    t.eq({ false, '' }, { asked, vim.fn.swapname(bufnr) })
    vim.fn.delete(swap)
    vim.cmd('silent buffer ' .. bufnr)
    t.ok(vim.fn.swapname(bufnr) ~= '')
    vim.o.updatecount, vim.go.swapfile = 0, false
  end)

  it('is loaded even if an autocommand fails', function()
    local path = project.write('a.txt', 'text\n')
    vim.api.nvim_create_autocmd('BufReadPost', { command = 'throw "no"', once = true })
    t.eq({ 'text' }, vim.api.nvim_buf_get_lines(t.ok((load(path))), 0, -1, false))
  end)

  it('is a regular file of that name, and not too large', function()
    local before = #vim.api.nvim_list_bufs()
    local path = project.write('a.txt', 'text\n')
    assert(vim.uv.fs_symlink(path, project.root .. '/link.txt'))
    local large = assert(io.open(project.root .. '/large.txt', 'wb'))
    large:seek('set', open.MAX_BYTES)
    large:write('x')
    large:close()
    for name, code in pairs({
      ['none.txt'] = 'not_found',
      ['.git'] = 'tool_error',
      ['link.txt'] = 'access_denied',
      ['large.txt'] = 'too_large',
    }) do
      t.fails(code, nil, load(project.root .. '/' .. name))
    end
    t.eq(before, #vim.api.nvim_list_bufs())
  end)
end)

describe('a buffer that was loaded for a call', function()
  local api = vim.api

  local grace, grace_edited = open.GRACE, open.GRACE_EDITED

  local function is_loaded(path) return vim.fn.bufloaded(path) == 1 end

  local function is_gone(path)
    t.wait(function() return not is_loaded(path) end, 5000, 'the end of the buffer')
  end

  local function edit(path, search)
    local value = project.call('file_edit', { path = path, edits = { { search = search, replace = search:upper() } } })
    t.eq(true, t.ok(value).files[1].written)
    return value.files[1]
  end

  local path
  after_each(function()
    open.GRACE, open.GRACE_EDITED = grace, grace_edited
  end)
  project.each({ 'buffer', 'file', 'symbol' }, function()
    vim.cmd('filetype on')
    open.GRACE, open.GRACE_EDITED = 50, 50
    path = project.write('a.lua', 'local function f()\n  return 1\nend\nreturn f\n')
  end)

  it('is unloaded some time after the call', function()
    t.ok((project.call('file_read', { path = path, symbol = 'f' })))
    is_gone(path)
    edit(path, 'return f')
    is_gone(path)
    t.eq(-1, vim.fn.bufnr(path))
  end)

  it('stays for a while after an edit, and is written by the next one', function()
    open.GRACE_EDITED = 60000
    local bufnr = edit(path, 'return f').bufnr
    t.eq(bufnr, edit(path, 'return 1').bufnr)
    api.nvim_buf_call(bufnr, function() vim.cmd('silent undo | silent undo | silent write') end)
    t.eq({ 'local function f()', '  return 1', 'end', 'return f' }, vim.fn.readfile(path))
    vim.wait(200)
    t.ok(is_loaded(path))
  end)

  it('can still be opened from a quickfix list of the user', function()
    edit(path, 'return f')
    vim.fn.setqflist({}, ' ', { items = { { filename = path, lnum = 2 } } })
    is_gone(path)
    vim.cmd('silent cc 1')
    t.eq(path, api.nvim_buf_get_name(0))
    vim.fn.setqflist({}, 'f')
  end)

  it('stays as long as a call uses it', function()
    local Call, Ctx = require('mcp-tools.calls.call'), require('mcp-tools.calls.ctx')
    local call = Call.new({ id = 'c', name = 'tool', host = 'test' })
    local bufnr = edit(path, 'return f').bufnr
    open.use(bufnr, Ctx.new(call, function() end))
    vim.wait(200)
    t.ok(is_loaded(path))
    open.drop(bufnr)
    call:cancel('test')
    is_gone(path)
  end)

  it('stays when the user has seen, listed or changed it', function()
    local seen, listed = project.write('seen.lua', 'x\n'), project.write('listed.lua', 'x\n')
    vim.o.hidden = true
    api.nvim_buf_set_lines(edit(path, 'return f').bufnr, 0, 0, false, { 'mine' })
    vim.bo[edit(listed, 'x').bufnr].buflisted = true
    edit(seen, 'x')
    vim.cmd('silent edit ' .. seen)
    vim.cmd('enew')
    vim.wait(200)
    t.eq({ true, true, true }, { is_loaded(path), is_loaded(seen), is_loaded(listed) })
    api.nvim_buf_call(vim.fn.bufnr(path), function() vim.cmd('silent write') end)
    is_gone(path)
  end)

  it('stays in the buffer list if the user has added it', function()
    vim.cmd('silent badd ' .. path)
    edit(path, 'return f')
    is_gone(path)
    t.eq({ 1, 1 }, { vim.fn.buflisted(path), vim.fn.bufexists(path) })
  end)
end)

describe('a file that is loaded for a call', function()
  local CALLS = {
    file_edit = { path = 'a.lua', edits = { { search = 'one', replace = 'two' } } },
    change_list = { path = 'a.lua', unsaved = true },
    file_replace = { query = 'one', replacement = 'two', expected_count = 1 },
    editor_open = { path = 'a.lua' },
  }

  project.each(nil, function()
    project.write('a.lua', 'local function f()\n  return "one"\nend\nreturn f\n')
    project.offer('all')
  end)

  it('is unloaded when the call is cancelled at any time', function()
    local before = #vim.api.nvim_list_bufs()
    for name, args in pairs(CALLS) do
      for turns = 0, 6 do
        local call = project.start(name, vim.deepcopy(args))
        local passed = 0
        t.wait(function()
          passed = passed + 1
          return passed > turns or call:ended()
        end, 5000, 'turns')
        if call:cancel('test') then
          t.settle()
          t.eq({ name, turns, before }, { name, turns, #vim.api.nvim_list_bufs() })
          t.eq('local function f()\n  return "one"\nend\nreturn f\n', project.disk('a.lua'))
        else
          vim.cmd('silent! %bwipeout!')
          project.write('a.lua', 'local function f()\n  return "one"\nend\nreturn f\n')
          before = #vim.api.nvim_list_bufs()
        end
      end
    end
  end)
end)

-- every Neovim
local open = require('mcp-tools.editor.buffer.open')
local project = require('editor_project')
local t = require('helpers')

local function load(path)
  local result
  open.load(path, function(...)
    result = vim.F.pack_len(...)
  end)
  t.eq(nil, result)
  t.wait(function()
    return result
  end)
  return vim.F.unpack_len(result)
end

before_each(project.open)
after_each(project.close)

describe('a file that is loaded', function()
  it('is in no window and in no list, and the person sees nothing', function()
    local path = project.write('a.lua', 'return 1\n')
    local win, buf, mode = vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf(), vim.fn.mode()
    vim.cmd('messages clear')
    vim.cmd('filetype on')
    local bufnr, err, new = load(path)
    vim.cmd('filetype off')
    t.eq({ nil, true }, { err, new })
    t.eq({ 'return 1' }, vim.api.nvim_buf_get_lines(bufnr, 0, -1, false))
    t.eq({ win, buf, mode }, { vim.api.nvim_get_current_win(), vim.api.nvim_get_current_buf(), vim.fn.mode() })
    t.eq({ {}, false, 'lua' }, { vim.fn.win_findbuf(bufnr), vim.bo[bufnr].buflisted, vim.bo[bufnr].filetype })
    t.eq('', vim.fn.execute('messages'))
    t.eq({ bufnr, nil, nil }, { load(path) })
  end)

  it('runs no program that unpacks it', function()
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

  it('is none that the system makes while it is read: such may have no end', function()
    local path = vim.fn.has('linux') == 1 and '/proc/self/environ' or '/dev/zero'
    local bufnr, err = load(vim.uv.fs_realpath(path))
    t.eq({ nil, 'tool_error' }, { bufnr, err.code })
    t.ok(load(project.write('empty.txt', '')))
  end)

  it('asks nothing about words to spell that are missing', function()
    local asked = false
    vim.go.modeline = true
    local id = vim.api.nvim_create_autocmd('SpellFileMissing', {
      callback = function()
        asked = true
      end,
    })
    local bufnr = load(project.write('a.txt', 'text\n# vim: set spell spelllang=xy:\n'))
    t.eq({ false, '', 2 }, { asked, vim.o.eventignore, vim.api.nvim_buf_line_count(bufnr) })
    vim.api.nvim_del_autocmd(id)
  end)

  it('asks nothing about the swap file of another editor, and has its own once it is seen', function()
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

  it('is loaded whatever an autocommand says', function()
    local path = project.write('a.txt', 'text\n')
    vim.api.nvim_create_autocmd('BufReadPost', { command = 'throw "no"', once = true })
    t.eq({ 'text' }, vim.api.nvim_buf_get_lines(t.ok((load(path))), 0, -1, false))
  end)

  it('is the one that was meant, a plain one, and not too large', function()
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
      local bufnr, err = load(project.root .. '/' .. name)
      t.eq({ nil, code }, { bufnr, err.code })
    end
    t.eq(before, #vim.api.nvim_list_bufs())
  end)
end)

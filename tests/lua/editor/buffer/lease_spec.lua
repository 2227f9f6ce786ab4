-- every Neovim
-- Buffers that are loaded for calls, and when they are unloaded.

local open = require('mcp-tools.editor.buffer.open')
local project = require('editor_project')
local t = require('helpers')

local api = vim.api

local grace, grace_edited = open.GRACE, open.GRACE_EDITED

local function is_loaded(path)
  return vim.fn.bufloaded(path) == 1
end

local function is_gone(path)
  t.wait(function()
    return not is_loaded(path)
  end, 5000, 'the end of the buffer')
end

local function edit(path, search)
  local value = project.call('buffer_edit', { path = path, edits = { { search = search, replace = search:upper() } } })
  t.eq(true, t.ok(value).written)
  return value
end

local path
before_each(function()
  project.open()
  project.offer({ 'buffer', 'file', 'symbol' })
  vim.cmd('filetype on')
  open.GRACE, open.GRACE_EDITED = 50, 50
  path = project.write('a.lua', 'local function f()\n  return 1\nend\nreturn f\n')
end)
after_each(function()
  open.GRACE, open.GRACE_EDITED = grace, grace_edited
  project.close()
end)

describe('a buffer that was loaded for a call', function()
  it('is unloaded some time after the call', function()
    t.ok((project.call('buffer_read', { path = path, symbol = 'f' })))
    is_gone(path)
    edit(path, 'return f')
    is_gone(path)
    t.eq(-1, vim.fn.bufnr(path))
  end)

  it('stays for a while after an edit, and is written by the next one', function()
    open.GRACE_EDITED = 60000
    local bufnr = edit(path, 'return f').bufnr
    t.eq(bufnr, edit(path, 'return 1').bufnr)
    api.nvim_buf_call(bufnr, function()
      vim.cmd('silent undo | silent undo | silent write')
    end)
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

  it('stays when the user has seen it, lists it or changes it', function()
    local seen, listed = project.write('seen.lua', 'x\n'), project.write('listed.lua', 'x\n')
    edit(path, 'return f')
    edit(seen, 'x')
    edit(listed, 'x')
    vim.cmd('silent edit ' .. seen)
    vim.bo[vim.fn.bufnr(listed)].buflisted = true
    api.nvim_buf_set_lines(vim.fn.bufnr(path), 0, 0, false, { 'mine' })
    vim.o.hidden = true
    vim.cmd('enew')
    vim.wait(200)
    t.eq({ true, true, true }, { is_loaded(path), is_loaded(seen), is_loaded(listed) })
    api.nvim_buf_call(vim.fn.bufnr(path), function()
      vim.cmd('silent write')
    end)
    is_gone(path)
  end)

  it('stays in the list of the user that named it', function()
    vim.cmd('silent badd ' .. path)
    edit(path, 'return f')
    is_gone(path)
    t.eq({ 1, 1 }, { vim.fn.buflisted(path), vim.fn.bufexists(path) })
  end)
end)

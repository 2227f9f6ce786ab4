-- every Neovim
-- Which buffer or file a call's arguments name, and whether the call may use it.

local Call = require('mcp-tools.calls.call')
local Ctx = require('mcp-tools.calls.ctx')
local editor = require('editor_project')
local t = require('helpers')
local target = require('mcp-tools.editor.buffer.target')

local api = vim.api

--- The ctx of a call that was decided on some targets.
local function ctx_of(targets)
  local call = Call.new({ id = 'x', name = 'buffer_read', host = 'test' })
  call.root, call.targets = editor.root, targets or {}
  return Ctx.new(call, function() end)
end

local function find(args, opts, targets)
  local answer
  target.find(ctx_of(targets), args, opts or {}, function(...)
    answer = { ... }
  end)
  t.wait(function()
    return answer
  end)
  return answer[1], answer[2]
end

--- A file that somebody has open by the name of a link.
local function open_by_link(name)
  local path = editor.write('plain.txt', 'text')
  assert(vim.uv.fs_symlink(path, editor.root .. '/' .. name))
  vim.cmd.edit(editor.root .. '/' .. name)
  return path
end

before_each(editor.open)
after_each(editor.close)

describe('a target', function()
  it('is the current file where neither path nor bufnr is given, if that is said', function()
    vim.cmd.edit(editor.write('a.txt', 'text'))
    t.eq('a.txt', find({}, { current = true }).shown)
    t.eq('validation_error', select(2, find({})).code)
    t.eq('validation_error', select(2, find({ path = 'a.txt', bufnr = 0 }, { current = true })).code)
  end)

  it('is loaded where nobody sees it, and dropped again', function()
    local path = editor.write('a.txt', 'text')
    t.eq({ path = path, shown = 'a.txt' }, find({ path = 'a.txt' }))
    local found = find({ path = 'a.txt' }, { load = true })
    t.eq({ true, path }, { found.new, found.path })
    target.drop(found)
    t.ok(not api.nvim_buf_is_valid(found.bufnr))
  end)

  it('is none when its file is open by a sensitive name, or marked in any buffer', function()
    local path = open_by_link('.env')
    local err, why = target.path_refusal(ctx_of(), path)
    t.eq({ 'access_denied', 'sensitive' }, { err and err.code, why })
    vim.cmd('silent! %bwipeout!')
    t.eq(nil, (target.path_refusal(ctx_of(), path)))
    open_by_link('other.txt')
    vim.b.sensitive = true
    vim.cmd.enew()
    t.eq('sensitive', select(2, target.path_refusal(ctx_of({ { given = path, path = path } }), path)))
    t.eq('access_denied', select(2, find({ path = path }, { load = true })).code)
  end)

  it('outside the project is one when the call was decided on it', function()
    local path = editor.write(editor.base .. '/outside.txt', 'text')
    t.matches('is outside the project', select(2, find({ path = path })).message)
    t.eq(path, find({ path = path }, nil, { { given = path, path = path } }).path)
  end)

  it('that is sensitive once it is loaded is unloaded', function()
    local path = editor.write('a.txt', 'text')
    local hook = api.nvim_create_autocmd('BufReadPost', {
      callback = function(event)
        vim.b[event.buf].sensitive = true
      end,
    })
    local found, err = find({ path = path }, { load = true })
    api.nvim_del_autocmd(hook)
    t.eq({ nil, 'access_denied' }, { found, err and err.code })
    t.eq(-1, vim.fn.bufnr(path))
  end)

  it('that has no file and is not loaded is none', function()
    local bufnr = api.nvim_create_buf(true, false)
    vim.cmd.bunload(bufnr)
    local _, err = find({ bufnr = bufnr }, { load = true })
    t.eq(('buffer %d is not loaded and has no file'):format(bufnr), err and err.message)
  end)
end)

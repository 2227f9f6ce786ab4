-- slow, every Neovim
local disk_writes = require('mcp-tools.editor.agents.disk_writes')
local project = require('editor_project')
local review = require('mcp-tools.editor.review')
local screen = require('review_screen')
local t = require('helpers')

local api = vim.api

local function lines() return api.nvim_buf_get_lines(0, 0, -1, false) end

--- Waits until the buffer in the window has these lines.
local function become(wanted)
  t.wait(function() return vim.deep_equal(wanted, lines()) end)
end

local path

after_each(function()
  screen.end_unseen()
  disk_writes.stop()
  vim.o.autoread = true
end)
project.each(nil, function()
  screen.unseen()
  path = project.edit('a.txt', 'a\nb\nc\nd\n')
  disk_writes.start()
end)

describe('a file that an agent writes on disk', function()
  it('is reloaded if nothing is unsaved', function()
    project.write('a.txt', 'a\nB\nc\nd\n')
    become({ 'a', 'B', 'c', 'd' })
    t.eq({ false, 0 }, { vim.bo.modified, review.count() })
  end)

  it('is reloaded when another file replaces it', function()
    local other = project.write('b.txt', 'other\n')
    assert(vim.uv.fs_rename(other, path))
    become({ 'other' })
  end)

  it('is reloaded after its directory was deleted, renamed and created again', function()
    local sub = project.root .. '/deep/sub'
    vim.cmd('silent edit ' .. project.write('deep/sub/c.txt', 'one\n'))
    vim.wait(50) -- its directory is watched a moment later
    vim.fn.delete(project.root .. '/deep', 'rf')
    project.write('deep/sub/c.txt', 'two\n')
    become({ 'two' })
    assert(vim.uv.fs_rename(sub, sub .. '2'))
    vim.wait(50)
    project.write('deep/sub/c.txt', 'three\n')
    become({ 'three' })
    vim.wait(300)
    project.write('deep/sub/c.txt', 'four\n')
    become({ 'four' })
  end)

  --- `:w` fails without a user who could answer its question.
  local function writes(wanted)
    vim.cmd('silent write')
    t.eq({ wanted, false }, { vim.fn.readfile(path), vim.bo.modified })
  end

  it('is offered for review if something is unsaved, without the unsaved lines of the user', function()
    api.nvim_buf_set_lines(0, 3, 4, false, { 'mine', 'mine too' })
    project.write('a.txt', 'A\nb\nc\nd\n')
    local open = t.wait(review.current)
    t.eq({ 'the disk', 1 }, { open.client.name, open:undecided() })
    t.eq({ 'a', 'b', 'c', 'mine', 'mine too' }, lines())
    open:decide_rest('accepted')
    become({ 'A', 'b', 'c', 'mine', 'mine too' })
    t.eq(true, vim.bo.modified)
    vim.cmd('silent undo')
    vim.cmd('silent redo')
    writes({ 'A', 'b', 'c', 'mine', 'mine too' })
  end)

  it('is not offered again when it was rejected, and the text of the user is written', function()
    api.nvim_buf_set_lines(0, 3, 4, false, { 'mine' })
    project.write('a.txt', 'A\nb\nc\nd\n')
    t.wait(review.current):decide_rest('rejected')
    t.eq({ 'a', 'b', 'c', 'mine' }, lines())
    writes({ 'a', 'b', 'c', 'mine' })
  end)

  it('is not offered as an empty text after it was deleted', function()
    api.nvim_buf_set_lines(0, 3, 4, false, { 'mine' })
    project.write('a.txt', 'A\nb\nc\nd\n')
    local open = t.wait(review.current)
    vim.fn.delete(path)
    open:decide_rest('accepted')
    vim.wait(300)
    t.eq({ 0, { 'A', 'b', 'c', 'mine' } }, { review.count(), lines() })
    writes({ 'A', 'b', 'c', 'mine' })
  end)

  it('is compared with the last write or read', function()
    api.nvim_buf_set_lines(0, 1, 2, false, { 'saved' })
    vim.cmd('silent write')
    project.write('a.txt', 'a\nsaved\nc\nread again\n')
    become({ 'a', 'saved', 'c', 'read again' })
    api.nvim_buf_set_lines(0, 0, 1, false, { 'mine' })
    project.write('a.txt', 'a\nsaved\nC\nread again\n')
    local open = t.wait(review.current)
    t.eq(1, open:undecided())
    open:decide_rest('accepted')
    become({ 'mine', 'saved', 'C', 'read again' })
    writes({ 'mine', 'saved', 'C', 'read again' })
  end)

  it('cannot be accepted if the user has changed its lines', function()
    api.nvim_buf_set_lines(0, 0, 1, false, { 'mine' })
    project.write('a.txt', 'A\nb\nc\nD\n')
    local open = t.wait(review.current)
    t.eq(false, (open:accept(1, 1)))
    open:decide_rest('accepted')
    become({ 'mine', 'b', 'c', 'D' })
  end)

  it('is loaded unmodified when the user has no other lines left', function()
    api.nvim_buf_set_lines(0, 0, 1, false, { 'A' })
    project.write('a.txt', 'A\nb\nc\nd\n')
    t.wait(function() return not vim.bo.modified end)
    t.eq({ 0, { 'A', 'b', 'c', 'd' } }, { review.count(), lines() })
  end)

  it('is not reviewed any more after the user has reloaded it', function()
    api.nvim_buf_set_lines(0, 3, 4, false, { 'mine' })
    project.write('a.txt', 'A\nb\nc\nd\n')
    t.wait(review.current)
    vim.cmd('silent edit!')
    t.wait(function() return review.count() == 0 end)
    t.eq({ 'A', 'b', 'c', 'd' }, lines())
  end)

  it("is left to Neovim if 'autoread' is off", function()
    vim.bo.autoread = false
    local other = project.write('c.txt', 'c\n')
    vim.cmd('silent split ' .. other)
    vim.bo.autoread = true
    local turned = false
    vim.schedule(function() -- behind what the new buffer has scheduled
      turned = true
    end)
    t.wait(function() return turned end)
    project.write('a.txt', 'A\n')
    project.write('c.txt', 'C\n')
    become({ 'C' })
    t.eq({ 'a', 'b', 'c', 'd' }, api.nvim_buf_get_lines(vim.fn.bufnr(path), 0, -1, false))
  end)
end)

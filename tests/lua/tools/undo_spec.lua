-- every Neovim
local project = require('editor_project')
local t = require('helpers')

local api = vim.api

local call, refused = project.call, project.refused

local bufnr, path
local function text()
  return table.concat(api.nvim_buf_get_lines(bufnr, 0, -1, false), ' ')
end

--- A change of its own in the tree.
local function change(first, last, lines)
  api.nvim_buf_set_lines(bufnr, first, last, false, lines)
  vim.bo[bufnr].undolevels = vim.bo[bufnr].undolevels
end

before_each(function()
  project.open()
  project.offer({ 'undo' })
  path = project.write('a.txt', 'one\ntwo\nthree\n')
  vim.cmd('silent edit ' .. path)
  bufnr = api.nvim_get_current_buf()
  change(0, 1, { 'ONE' }) -- 1
  vim.cmd('silent write')
  change(1, 2, { 'TWO' }) -- 2
  vim.cmd('silent undo')
  change(2, 3, { 'THREE' }) -- 3, beside 2
end)
after_each(project.close)

--- What the person would notice.
local function seen()
  return {
    api.nvim_get_current_buf(),
    api.nvim_get_current_win(),
    #api.nvim_list_bufs(),
    vim.fn.winsaveview(),
    text(),
    api.nvim_buf_get_changedtick(bufnr),
    vim.fn.undotree(bufnr).seq_cur,
    vim.bo[bufnr].modified,
    vim.fn.getreg('/'),
    vim.fn.bufnr('#'),
  }
end

describe('undo_tree', function()
  it('is what undotree() gives, without a switch of the buffer', function()
    local before, tree = seen(), vim.fn.undotree(bufnr)
    for _, args in ipairs({ {}, { bufnr = 0 }, { bufnr = bufnr }, { path = 'a.txt' } }) do
      local value = call('undo_tree', args)
      t.eq({ 3, 3, 1, 1 }, { value.seq_cur, value.seq_last, value.save_cur, value.save_last })
      t.eq({ tree.entries, 3, nil }, { value.entries, value.total, value.truncated })
    end
    t.eq(before, seen())
    vim.o.hidden = true
    vim.cmd.enew()
    t.eq(3, call('undo_tree', { bufnr = bufnr }).seq_cur)
  end)

  it('gives the newest where there are many, and says what is wrong', function()
    local value = call('undo_tree', { bufnr = 0, limit = 1 })
    t.eq({ 1, 3, 3, true }, { #value.entries, value.entries[1].seq, value.total, value.truncated })
    refused('undo_tree', 'not_found', 'not open', { path = project.write('b.txt', '') })
    refused('undo_tree', 'not_found', 'no buffer 999', { bufnr = 999 })
  end)
end)

describe('undo_diff', function()
  it('compares two states, and the person sees nothing of it', function()
    local before = seen()
    local value = call('undo_diff', { bufnr = 0, from = 0, to = 2 })
    t.eq({ 2, 2, 0, 2, 3 }, { value.added, value.removed, value.from, value.to, value.seq_cur })
    t.matches('%-one\n%-two\n%+ONE\n%+TWO\n three', value.diff)
    value = call('undo_diff', { path = 'a.txt' })
    t.eq({ 1, 3 }, { value.from, value.to })
    t.matches('%-three\n%+THREE\n', value.diff)
    t.eq('', call('undo_diff', { bufnr = 0, from = 3 }).diff)
    t.eq(before, seen())
  end)

  it('says which states there are', function()
    refused('undo_diff', 'not_found', 'no undo state 9; undo_tree lists .*0 to 3', { bufnr = 0, from = 9 })
    refused('undo_diff', 'validation_error', 'exactly one', {})
    refused('undo_diff', 'not_found', 'not open', { path = project.write('b.txt', '') })
    vim.cmd('silent edit ' .. project.write('fresh.txt', 'x\n'))
    t.eq('', call('undo_diff', { bufnr = 0 }).diff)
  end)

  it('leaves nothing behind when it is cancelled', function()
    local lines = {}
    for i = 1, 200000 do
      lines[i] = 'line ' .. i
    end
    change(0, -1, lines)
    local before = #api.nvim_list_bufs()
    local running = project.start('undo_diff', { bufnr = 0, from = 0 })
    t.wait(function()
      return #api.nvim_list_bufs() > before
    end, 5000, 'its copy')
    running:cancel('user')
    t.eq({ before, true }, { #api.nvim_list_bufs(), running:ended() })
  end)

  it('gives nothing of a file that may not be read', function()
    vim.cmd('silent edit ' .. project.write('.env', 'SECRET=1\n'))
    api.nvim_buf_set_lines(0, 0, 1, false, { 'SECRET=2' })
    refused('undo_diff', 'access_denied', 'sensitive', { bufnr = 0 })
    refused('undo_restore', 'access_denied', 'sensitive', { bufnr = 0, seq = 0 })
  end)
end)

describe('undo_restore', function()
  it('goes to any state and back', function()
    for _, case in ipairs({ { 2, 'ONE TWO three' }, { 0, 'one two three' }, { 3, 'ONE two THREE' } }) do
      local from = vim.fn.undotree(bufnr).seq_cur
      local value = call('undo_restore', { bufnr = 0, seq = case[1] })
      t.eq({ case[2], case[1], from }, { text(), value.seq_cur, value.from })
      t.eq(api.nvim_buf_get_changedtick(bufnr), value.changedtick)
    end
    t.eq({ { line = 3, removed = 1, added = 1 } }, call('undo_restore', { bufnr = 0, seq = 1 }).hunks)
  end)

  it('leaves the cursor where its text is', function()
    local lines = {}
    for i = 1, 100 do
      lines[i] = 'line ' .. i
    end
    change(-1, -1, lines) -- 4
    change(0, 0, { 'a', 'b', 'c' }) -- 5
    api.nvim_win_set_cursor(0, { 56, 3 })
    vim.cmd('normal! zt')
    local view, line = vim.fn.winsaveview(), api.nvim_get_current_line()
    call('undo_restore', { bufnr = 0, seq = 4 })
    t.eq({ line, 53, 3 }, { api.nvim_get_current_line(), unpack(api.nvim_win_get_cursor(0)) })
    t.eq(view.topline - 3, vim.fn.winsaveview().topline)
  end)

  it('is refused where it cannot be, and shows what it would do', function()
    local before = seen()
    refused('undo_restore', 'not_found', 'no undo state 9', { bufnr = 0, seq = 9 })
    refused('undo_restore', 'stale', 'changedtick', { bufnr = 0, seq = 0, changedtick = 1 })
    vim.bo.modifiable = false
    refused('undo_restore', 'tool_error', 'not modifiable', { bufnr = 0, seq = 0 })
    vim.bo.modifiable = true
    local preview = require('mcp-tools.tools.undo.restore').preview
    t.matches('%-ONE\n two\n%-THREE\n%+three', (preview({ bufnr = 0, seq = 0 }):gsub('%+one\n', '')))
    t.eq('not_found', select(2, preview({ bufnr = 0, seq = 9 })).code)
    t.eq(before, seen())
  end)
end)

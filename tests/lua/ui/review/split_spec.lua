-- every Neovim
local command = require('mcp-tools.command')
local project = require('editor_project')
local screen = require('review_screen')
local t = require('helpers')

local api = vim.api
local open, press, says = screen.open, screen.press, screen.says

local function lines(bufnr) return api.nvim_buf_get_lines(bufnr or 0, 0, -1, false) end

local path

--- Opens a review of a.lua and enters it.
local function enter(text, fields)
  local one = open({ vim.tbl_extend('error', { path = path, text = text or 'a\nB\nc\nd\ne\n' }, fields or {}) })
  command.run({ args = 'review' })
  return one
end

before_each(function()
  screen.reset()
  require('mcp-tools').setup({ review = { layout = 'split' } })
  path = project.edit('a.lua', 'a\nb\nc\nd\ne\n')
  vim.bo.filetype = 'lua'
end)

after_each(screen.close)

describe('a side-by-side review', function()
  it('has the file on the left and the proposal on the right, and is closed at its end', function()
    open({ { path = path, text = 'a\nB\nc\nd\ne\nf\n' } })
    t.eq(1, #api.nvim_list_tabpages())
    command.run({ args = 'review' })
    t.eq({ 2, { 'a', 'B', 'c', 'd', 'e', 'f' } }, { #api.nvim_list_tabpages(), (lines()) })
    t.eq({ 'lua', true, 2 }, { vim.bo.filetype, vim.wo.diff, api.nvim_win_get_cursor(0)[1] })
    press('y')
    t.eq(6, api.nvim_win_get_cursor(0)[1])
    press('<C-w>h')
    t.eq({ path, true }, { api.nvim_buf_get_name(0), vim.wo.diff })
    press('D')
    t.eq({ [path] = 'a\nB\nc\nd\ne\n' }, screen.ends[1].files)
    t.eq({ 1, false, {} }, { #api.nvim_list_tabpages(), vim.wo.diff, (api.nvim_buf_get_keymap(0, 'n')) })
  end)

  it('follows the file while the user types on the right', function()
    local one = enter('a\nB\nc\nd\ne\n')
    local right = api.nvim_get_current_buf()
    api.nvim_buf_set_lines(right, 1, 2, false, { 'mine' })
    api.nvim_buf_set_lines(vim.fn.bufnr(path), 4, 5, false, { 'later' }) -- before the text on the right is read
    t.wait(function() return vim.deep_equal({ 'a', 'mine', 'c', 'd', 'later' }, lines(right)) end)
    t.eq(1, #one.files[1].hunks)
    command.run({ args = 'review all' })
    t.eq({ [path] = 'a\nmine\nc\nd\nlater\n' }, screen.ends[1].files)
  end)

  it('accepts the text on the right, or that of a new file, by `:w`', function()
    enter('a\nB\nc\nd\nE\n')
    api.nvim_buf_set_lines(0, 1, 2, false, { 'mine' })
    vim.cmd('write')
    t.wait(function() return screen.ends[1] end)
    t.eq({ [path] = 'a\nmine\nc\nd\nE\n' }, screen.ends[1].files)
    vim.wait(500) -- an answer at once may be meant for the first review
    local new = project.root .. '/new.lua'
    local one = open({ { path = new, text = 'x\n' }, { path = path, text = 'A\n' } })
    command.run({ args = 'review' })
    local proposed, copy = api.nvim_get_current_buf(), vim.fn.tempname()
    api.nvim_buf_set_lines(0, 0, -1, false, { 'y' })
    vim.cmd('write ' .. copy)
    vim.cmd('new | wall')
    vim.wait(20)
    t.eq({ 2, { 'y' } }, { one:undecided(), vim.fn.readfile(copy) })
    vim.cmd('bwipeout')
    api.nvim_set_current_win(vim.fn.bufwinid(proposed))
    vim.cmd('write')
    t.wait(function() return one:undecided() == 1 end)
    command.run({ args = 'review none' })
    t.eq({ [new] = 'y\n' }, screen.ends[2].files)
  end)

  it('leaves typed text in its buffer if it ends before the text was read', function()
    local one = enter('a\nB\nc\nd\ne\n')
    local right = api.nvim_get_current_buf()
    api.nvim_buf_set_lines(right, 1, 2, false, { 'mine' })
    one:close('cancelled')
    t.eq({ true, 'mine' }, { vim.bo[right].buflisted, lines(right)[2] })
    api.nvim_buf_delete(right, { force = true })
  end)

  it('accepts text typed on the right, and follows text typed on the left', function()
    local one = enter('a\nB\nc\nd\nE\n')
    local right = api.nvim_get_current_buf()
    api.nvim_buf_set_lines(right, 1, 2, false, { 'my', 'b' })
    api.nvim_buf_set_lines(vim.fn.bufnr(path), 0, 0, false, { 'left' })
    t.wait(function() return vim.deep_equal({ 'left', 'a', 'my', 'b', 'c', 'd', 'E' }, lines(right)) end)
    t.eq(2, one:undecided())
    command.run({ args = 'review all' })
    t.eq({ [path] = 'left\na\nmy\nb\nc\nd\nE\n' }, screen.ends[1].files)
    t.ok(screen.ends[1].edited)
  end)

  it('does not end while the user types, even when all changes are undone', function()
    local one = enter()
    api.nvim_buf_set_lines(0, 1, 2, false, { 'b' })
    t.wait(function() return one:undecided() == 0 end)
    t.eq(nil, one.ended)
    command.run({ args = 'review all' })
    t.eq({ [path] = 'a\nb\nc\nd\ne\n' }, screen.ends[1].files)
  end)

  it('has no mappings on the right for keys that edit text', function()
    local one = enter()
    press('A and more<Esc>')
    t.eq('B and more', api.nvim_get_current_line())
    press('u')
    t.eq({ 'B', 1, nil }, { api.nvim_get_current_line(), one:undecided(), one.ended })
    says('edit the text here')
    press('<C-w>h')
    says('A accept all')
    press('A')
    t.eq({ [path] = 'a\nB\nc\nd\ne\n' }, screen.ends[1].files)
  end)

  it('is not modifiable if the agent accepts only yes or no', function()
    enter(nil, { editable = false })
    t.eq(false, vim.bo.modifiable)
  end)

  it('shows a file with very many hunks in its buffer, because Neovim would block', function()
    local old, new = t.lines(2002, 'line %d'), {}
    for i, line in ipairs(old) do
      new[i] = i % 2 == 0 and 'new ' .. line or line
    end
    project.write('a.lua', table.concat(old, '\n') .. '\n')
    vim.cmd('silent edit!')
    local one = enter(table.concat(new, '\n') .. '\n')
    t.eq({ 1001, 1, path }, { one:undecided(), #api.nvim_list_tabpages(), api.nvim_buf_get_name(0) })
    press(']c')
    t.eq({ 4, 1 }, { api.nvim_win_get_cursor(0)[1], #api.nvim_list_tabpages() })
    t.wait(function() return select(2, vim.fn.execute('messages'):gsub('1001 hunks are shown', '')) == 1 end)
  end)

  it('continues after the user has closed the right window', function()
    local one = enter('a\nB\nc\nd\nE\n')
    vim.cmd('close')
    api.nvim_win_set_cursor(0, { 2, 0 })
    command.run({ args = 'review reject' })
    says('1 of 2 hunks left')
    t.eq(1, one:undecided())
    command.run({ args = 'review' })
    t.eq({ 'a', 'b', 'c', 'd', 'E' }, lines())
  end)

  it("opens its own tab page with any 'switchbuf', and keeps the user's windows", function()
    local switchbuf = vim.o.switchbuf
    vim.o.switchbuf = 'useopen,usetab'
    vim.cmd('tabnew')
    vim.cmd('tabprevious')
    local window, tabs = api.nvim_get_current_win(), api.nvim_list_tabpages()
    local one = enter()
    t.eq({ 3, false }, { #api.nvim_list_tabpages(), vim.wo[window].diff })
    one:close('the test is over')
    t.eq(tabs, api.nvim_list_tabpages())
    t.ok(api.nvim_win_is_valid(window))
    vim.o.switchbuf = switchbuf
    vim.cmd('tabonly')
  end)

  it('reverts with undo what was typed over a hunk on the left, wherever the cursor is', function()
    local one = enter()
    press('<C-w>h2Gccmine<Esc>')
    t.wait(function()
      one.files[1]:sync()
      return one.files[1].hunks[1].changed
    end)
    press('<C-w>l2G')
    local right = lines()
    command.run({ args = 'review undo' })
    t.eq({ right, { 'a', 'b', 'c', 'd', 'e' } }, { lines(), lines(vim.fn.bufnr(path)) })
    t.eq({ false, 1 }, { one.files[1].hunks[1].changed or false, one:undecided() })
  end)

  it('keeps the proposal at u, as a file keeps its text; typed text is undone', function()
    local new, made = project.root .. '/new.lua', { 'return 1' }
    open({ { path = path, text = 'a\nB\nc\nd\ne\n' }, { path = new, text = 'return 1\n' } })
    command.run({ args = 'review' })
    press('uu')
    t.eq({ 'a', 'B', 'c', 'd', 'e' }, lines())
    press('2Gccmine<Esc>uu')
    t.eq({ 'a', 'B', 'c', 'd', 'e' }, lines())
    press('y', 'uu')
    t.eq({ made, true }, { lines(), vim.bo.modifiable })
    require('mcp-tools.ui.review.hunk_editor').open(made, 'lua', function() end, function() end)
    press('uu')
    t.eq(made, lines())
    vim.cmd('quit!')
  end)

  it('leaves no window in diff mode, whichever way it ends', function()
    local function options()
      local list = { api.nvim_buf_get_name(0), vim.o.scrollopt }
      local names =
        { 'diff', 'scrollbind', 'cursorbind', 'foldmethod', 'foldenable', 'foldcolumn', 'foldlevel', 'wrap' }
      for _, name in ipairs(names) do
        table.insert(list, vim.wo[name])
      end
      return list
    end
    local before = options()
    -- By the end of the review; the tabonly keeps its tab page.
    for _, way in ipairs({ '', 'silent tabclose', 'silent tabonly', 'wincmd h | enew' }) do
      vim.cmd.enew()
      local one = enter('a\nB\nc\nd\ne\nf\n')
      t.eq(true, vim.wo.diff)
      vim.cmd(way)
      one:close('it is over')
      for _, look in ipairs({ 'silent edit ', 'split ', 'tabedit ' }) do
        vim.cmd(look .. path)
        t.eq({ way, look, before }, { way, look, options() })
      end
      vim.cmd('silent tabonly | silent only')
    end
  end)
end)

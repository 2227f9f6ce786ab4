-- every Neovim
local command = require('mcp-tools.command')
local project = require('editor_project')
local screen = require('review_screen')
local t = require('helpers')

local api = vim.api
local open, press, says = screen.open, screen.press, screen.says

local function lines(bufnr) return api.nvim_buf_get_lines(bufnr or 0, 0, -1, false) end

local path

before_each(function()
  screen.reset()
  require('mcp-tools').setup({ review = { layout = 'split' } })
  path = project.write('a.lua', 'a\nb\nc\nd\ne\n')
  vim.cmd('silent edit ' .. path)
  vim.bo.filetype = 'lua'
end)

after_each(screen.close)

describe('a review side by side', function()
  it('has the file on the left and what is proposed on the right, and is gone at its end', function()
    open({ { path = path, text = 'a\nB\nc\nd\ne\nf\n' } })
    t.eq(1, #api.nvim_list_tabpages())
    command.run({ args = 'review' })
    t.eq(2, #api.nvim_list_tabpages())
    t.eq({ 'a', 'B', 'c', 'd', 'e', 'f' }, lines())
    t.eq({ 'lua', true, 2 }, { vim.bo.filetype, vim.wo.diff, api.nvim_win_get_cursor(0)[1] })
    press('y')
    t.eq(6, api.nvim_win_get_cursor(0)[1])
    press('<C-w>h')
    t.eq({ path, true }, { api.nvim_buf_get_name(0), vim.wo.diff })
    press('D')
    t.eq({ [path] = 'a\nB\nc\nd\ne\n' }, screen.ends[1].files)
    t.eq({ 1, false }, { #api.nvim_list_tabpages(), vim.wo.diff })
    t.eq({}, api.nvim_buf_get_keymap(0, 'n'))
  end)

  it('counts what is typed on the right, and follows what is typed on the left', function()
    local one = open({ { path = path, text = 'a\nB\nc\nd\nE\n' } })
    command.run({ args = 'review' })
    local right = api.nvim_get_current_buf()
    api.nvim_buf_set_lines(right, 1, 2, false, { 'my', 'b' })
    api.nvim_buf_set_lines(vim.fn.bufnr(path), 0, 0, false, { 'left' })
    t.wait(function() return vim.deep_equal({ 'left', 'a', 'my', 'b', 'c', 'd', 'E' }, lines(right)) end)
    t.eq(2, one:undecided())
    command.run({ args = 'review all' })
    t.eq({ [path] = 'left\na\nmy\nb\nc\nd\nE\n' }, screen.ends[1].files)
    t.ok(screen.ends[1].edited)
  end)

  it('is not over while the person types, though they have undone all of it', function()
    local one = open({ { path = path, text = 'a\nB\nc\nd\ne\n' } })
    command.run({ args = 'review' })
    api.nvim_buf_set_lines(0, 1, 2, false, { 'b' })
    t.wait(function() return one:undecided() == 0 end)
    t.eq(nil, one.ended)
    command.run({ args = 'review all' })
    t.eq({ [path] = 'a\nb\nc\nd\ne\n' }, screen.ends[1].files)
  end)

  it('leaves the keys that change a text to who types on the right', function()
    local one = open({ { path = path, text = 'a\nB\nc\nd\ne\n' } })
    command.run({ args = 'review' })
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

  it('cannot be typed into where the agent takes only yes or no', function()
    open({ { path = path, text = 'a\nB\nc\nd\ne\n', editable = false } })
    command.run({ args = 'review' })
    t.eq(false, vim.bo.modifiable)
  end)

  it('goes on where the person has closed the right window', function()
    local one = open({ { path = path, text = 'a\nB\nc\nd\nE\n' } })
    command.run({ args = 'review' })
    vim.cmd('close')
    api.nvim_win_set_cursor(0, { 2, 0 })
    command.run({ args = 'review reject' })
    says('1 of 2 hunks left')
    t.eq(1, one:undecided())
    command.run({ args = 'review' })
    t.eq({ 'a', 'b', 'c', 'd', 'E' }, lines())
  end)

  it('has a tab page of its own whatever switchbuf says, and the windows of the person stay', function()
    local switchbuf = vim.o.switchbuf
    vim.o.switchbuf = 'useopen,usetab'
    vim.cmd('tabnew')
    vim.cmd('tabprevious')
    local window, tabs = api.nvim_get_current_win(), api.nvim_list_tabpages()
    local one = open({ { path = path, text = 'a\nB\nc\nd\ne\n' } })
    command.run({ args = 'review' })
    t.eq({ 3, false }, { #api.nvim_list_tabpages(), vim.wo[window].diff })
    one:close('the test is over')
    t.eq(tabs, api.nvim_list_tabpages())
    t.ok(api.nvim_win_is_valid(window))
    vim.o.switchbuf = switchbuf
    vim.cmd('tabonly')
  end)

  it('takes back on the left what was typed over a hunk, wherever the cursor is', function()
    local one = open({ { path = path, text = 'a\nB\nc\nd\ne\n' } })
    command.run({ args = 'review' })
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

  it('keeps what is proposed at u, as a file keeps its text; what was typed is taken back', function()
    local new, made = project.root .. '/new.lua', { 'return 1' }
    open({ { path = path, text = 'a\nB\nc\nd\ne\n' }, { path = new, text = 'return 1\n' } })
    command.run({ args = 'review' })
    press('uu')
    t.eq({ 'a', 'B', 'c', 'd', 'e' }, lines())
    press('2Gccmine<Esc>uu')
    t.eq({ 'a', 'B', 'c', 'd', 'e' }, lines())
    press('y')
    press('uu')
    t.eq({ made, true }, { lines(), vim.bo.modifiable })
    require('mcp-tools.ui.review.hunk_editor').open(made, 'lua', function() end, function() end)
    press('uu')
    t.eq(made, lines())
    vim.cmd('quit!')
  end)

  it('leaves no window in diff mode, neither those of the person nor those that they open later', function()
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
    local ways = {
      '', -- by the end of the review
      'silent tabclose',
      'silent tabonly', -- it cannot be closed
      'wincmd h | enew',
    }
    for _, way in ipairs(ways) do
      vim.cmd.enew()
      local one = open({ { path = path, text = 'a\nB\nc\nd\ne\nf\n' } })
      command.run({ args = 'review' })
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

-- every Neovim
local command = require('mcp-tools.command')
local inline = require('mcp-tools.ui.review.inline')
local project = require('editor_project')
local review = require('mcp-tools.editor.review')
local screen = require('review_screen')
local legend = require('mcp-tools.ui.review.legend')
local t = require('helpers')

local api = vim.api
local enter, open, press, says = screen.enter, screen.open, screen.press, screen.says

local function run(text) command.run({ args = 'review ' .. text }) end

local edit = project.edit

--- Opens a file and proposes another text for it.
local function propose(old, new, more)
  local path = edit('a.txt', old)
  return path, open({ { path = path, text = new } }, more)
end

--- Waits for a message to the user.
local function is_notified(text)
  t.wait(function() return vim.fn.execute('messages'):find(text, 1, true) end, 2000, text)
end

--- The virtual lines and highlighted lines of a review.
local function drawn(bufnr)
  local list = {}
  for _, mark in ipairs(api.nvim_buf_get_extmarks(bufnr or 0, inline.SPACE, 0, -1, { details = true })) do
    local row, details = mark[2] + 1, mark[4]
    for _, line in ipairs(details.virt_lines or {}) do
      local text = table.concat(vim.tbl_map(function(chunk) return chunk[1] end, line))
      table.insert(list, ('%d+%s'):format(row, vim.trim(text)))
    end
    for line = row, details.line_hl_group and details.end_row + 1 or 0 do
      table.insert(list, ('%d %s'):format(line, details.line_hl_group))
    end
  end
  table.sort(list)
  return list
end

--- The keys in the border of the legend.
local function footer()
  local window = screen.legend()
  return window
    and table.concat(vim.tbl_map(function(chunk) return chunk[1] end, api.nvim_win_get_config(window).footer))
end

before_each(screen.reset)
after_each(screen.close)

describe('a review on the screen', function()
  it('is drawn in the buffer without changing its text, the cursor or mappings', function()
    edit('a.txt', 'a\nb\nc\n')
    local window, tick = api.nvim_get_current_win(), vim.b.changedtick
    open({ { path = api.nvim_buf_get_name(0), text = 'a\nB\nc\nd\n' } })
    t.eq({ '2 McpToolsRemoved', '2+B', '3+d' }, drawn())
    t.matches('claude: a title\n▸ a.txt  2 of 2 hunks left', says('2 of 2'))
    t.eq({ window, tick, { 1, 0 } }, { api.nvim_get_current_win(), vim.b.changedtick, api.nvim_win_get_cursor(0) })
    t.eq({}, api.nvim_buf_get_keymap(0, 'n'))
  end)

  it('keeps the name of a file with a long path, and what is left of it', function()
    vim.o.columns = 80
    local directory = vim.fs.dirname(edit('a.txt', 'a\n'))
    open({ { path = directory .. '/' .. ('directory/'):rep(12) .. 'name.txt', text = 'a\n' } })
    t.matches('▸ d.*….*/name.txt  1 of 1 hunk left, a new file', says('name.txt'))
  end)

  it('escapes characters that hide or reorder text', function()
    propose('a\n', 'a\0b\226\128\174c\27[2J\n')
    t.eq({ '1 McpToolsRemoved', '1+a<U+0000>b<U+202E>c<U+001B>[2J' }, drawn())
  end)

  it('is truncated when it is long', function()
    propose('a\n', ('line\n'):rep(5000))
    local list = drawn()
    t.ok(#list < 1100, #list)
    t.ok(vim.iter(list):any(function(line) return line:find('4000 more lines', 1, true) ~= nil end))
  end)

  it('uses few extmarks for a hunk that removes many lines', function()
    propose(('line\n'):rep(5000) .. 'last\n', 'last\n')
    t.eq({ 5000, '1 McpToolsRemoved' }, { #drawn(), drawn()[1] })
    t.ok(#api.nvim_buf_get_extmarks(0, inline.SPACE, 0, -1, {}) < 10)
  end)

  it('is removed from the screen when it ends', function()
    local _, one = propose('a\n', 'b\n')
    one:close()
    t.eq({}, drawn())
    t.wait(function() return #api.nvim_list_wins() == 1 end)
  end)

  it("has mappings once the user enters it, and restores the user's own ones", function()
    local path = edit('a.txt', 'a\nb\nc\nd\ne\n')
    vim.keymap.set('n', 'y', 'ix<Esc>', { buffer = 0 })
    open({ { path = path, text = 'A\nb\nC\nd\nE\n' } })
    enter(']c')
    t.eq(3, api.nvim_win_get_cursor(0)[1])
    press('y')
    t.eq(5, api.nvim_win_get_cursor(0)[1])
    press('n')
    t.eq(1, api.nvim_win_get_cursor(0)[1])
    press('n')
    t.eq({ [path] = 'a\nb\nC\nd\ne\n' }, screen.ends[1].files)
    is_notified('review finished: 1 accepted, 2 rejected')
    press('y')
    t.eq({ 'xa', 1 }, { api.nvim_get_current_line(), (#api.nvim_buf_get_keymap(0, 'n')) })
  end)

  it('notifies the user who is in it of its end', function()
    propose('a\n', 'b\n')
    enter()
    review.current():close()
    is_notified('review ended before every hunk was decided')
  end)

  it('undoes the last decisions step by step with u', function()
    local _, one = propose('a\nb\nc\nd\ne\n', 'A\nb\nC\nd\nE\n')
    enter('y', 'n')
    t.eq({ 1, 5 }, { one:undecided(), api.nvim_win_get_cursor(0)[1] })
    press('u')
    t.eq({ 2, 3 }, { one:undecided(), api.nvim_win_get_cursor(0)[1] })
    press('u')
    t.eq({ 3, 1 }, { one:undecided(), api.nvim_win_get_cursor(0)[1] })
    press('u')
    t.eq(3, one:undecided())
  end)

  it('returns to the window from which it was entered', function()
    propose('a\n', 'A\n')
    vim.cmd('vnew')
    local before = api.nvim_get_current_win()
    enter()
    t.ok(before ~= api.nvim_get_current_win())
    press('y')
    t.eq(before, api.nvim_get_current_win())
  end)

  it('lists all its keys within 80 columns, and only those that apply', function()
    vim.o.columns = 80
    local path = propose('a\n', 'A\n')
    enter()
    says(']c next  [c previous  A accept all  D reject all')
    t.eq(' y accept  n reject  N reject, why  e edit  u undo  q later  ? keys ', footer())
    press('n')
    open({ { path = path, text = 'A\n' } }, { applied = true })
    enter()
    says('A keep all  D revert all')
    t.eq(' y keep  n revert  u undo  q later  ? keys ', footer())
    local described = {}
    for _, map in ipairs(api.nvim_buf_get_keymap(0, 'n')) do
      described[map.lhs] = map.desc
    end
    t.eq({ 'review: revert this hunk', 'review: keep all remaining hunks' }, { described.n, described.A })
  end)

  it('names the mapped keys that decide on it before it is entered', function()
    vim.keymap.set('n', '<F7>', '<Plug>(mcp-tools-approve)')
    vim.keymap.set('n', '<F8>', '<Plug>(mcp-tools-deny)')
    propose('a\n', 'A\n')
    says('1 of 1 hunk left')
    local shown = footer()
    vim.keymap.del('n', '<F7>')
    vim.keymap.del('n', '<F8>')
    t.eq(' :McpTools review to start  <F7> accept visible hunks  <F8> reject all ', shown)
  end)

  it('of a new file returns to the previous buffer when it is postponed', function()
    local path = edit('a.txt', 'a\n')
    open({ { path = project.root .. '/new.txt', text = 'x\n' } })
    enter()
    t.eq('x', api.nvim_get_current_line())
    press('q')
    t.eq({ path, 1 }, { api.nvim_buf_get_name(0), (review.count()) })
  end)

  it('of a new file restores the file and the windows of before when it ends', function()
    local path = edit('a.txt', 'a\n')
    vim.cmd.new()
    vim.cmd.wincmd('p')
    local layout = vim.fn.winlayout()
    open({ { path = project.root .. '/new.txt', text = 'x\n' } })
    enter('y')
    t.eq('accepted', screen.ends[1].state)
    t.eq({ path, layout }, { api.nvim_buf_get_name(0), vim.fn.winlayout() })
  end)

  it('takes no reason that the agent would not get, and no key of it changes the text', function()
    propose('a\n', 'A\n', { no_reason = true })
    enter()
    says(']c next')
    t.eq(nil, footer():find('why', 1, true))
    run('reason')
    command.run({ args = 'deny because' })
    t.eq({}, screen.ends)
    press('N')
    t.wait(function()
      local title = api.nvim_win_get_config((screen.legend())).title
      return title[1][1]:find('cannot receive a reason', 1, true)
    end)
    command.run({ args = 'deny' })
    t.eq('rejected', screen.ends[1].state)
  end)

  it('has one decision when the agent accepts only all or nothing', function()
    vim.o.columns = 80
    local path = edit('a.txt', 'a\nb\nc\n')
    open({ { path = path, text = 'A\nb\nC\n', editable = false } }, { whole = true })
    enter()
    says(']c next  [c previous')
    t.eq(' y accept all  n reject all  q later  ? keys ', footer())
    local tick = api.nvim_buf_get_changedtick(0)
    for _, key in ipairs({ 'N', 'e', 'u' }) do
      press(key)
    end
    t.eq({ 'n', tick, {} }, { vim.fn.mode(), api.nvim_buf_get_changedtick(0), screen.ends })
    press('A')
    t.eq({ [path] = 'A\nb\nC\n' }, screen.ends[1].files)
    vim.wait(500) -- an answer at once may be meant for the first review
    open({ { path = path, text = 'A\nb\nC\n', editable = false } }, { whole = true })
    enter('n')
    t.eq({ 'rejected', 2 }, { screen.ends[2].state, #screen.ends[2].rejected })
  end)

  it('is not decided by an answer to a question, and no question by one to the review', function()
    local Call, Question = require('mcp-tools.calls.call'), require('mcp-tools.ui.approval.question')
    propose('a\n', 'b\n')
    local call, choice = Call.new({ id = 'q', name = 'x', host = 'test' }), nil
    call:move('ask')
    local asked = { call = call, args = {}, reason = 'y', targets = {}, choices = { 'once', 'deny' }, root = '/' }
    local asker = { serial = true, show = function() end, hide = function() end }
    local question = Question.new(asked, { asker }, function(taken) choice = taken end)
    require('mcp-tools.ui.approval').add(question, 60000)
    t.wait(function() return question.shown_at end)
    command.run({ args = 'approve' })
    t.eq({ nil, nil }, { choice, question.closed })
    question:close('ended')
    command.run({ args = 'approve' })
    command.run({ args = 'deny' })
    is_notified('has just closed')
    t.eq(1, review.count())
    vim.wait(500) -- later answers are not for this question
  end)

  it('can be accepted from elsewhere as a whole only after all of it was on the screen', function()
    local path = edit('a.txt', ('x\n'):rep(300))
    local text = 'A\n' .. ('x\n'):rep(298) .. 'Z\n'
    open({ { path = path, text = text, editable = false } }, { whole = true })
    run('accept')
    t.eq({}, screen.ends)
    local presses = 1
    while #screen.ends == 0 and presses < 4 do
      presses = presses + 1
      command.run({ args = 'approve' })
    end
    t.eq({ [path] = text }, screen.ends[1].files)
  end)

  for what, new in pairs({ ['a long hunk'] = false, ['a long new file'] = true }) do
    it(('accepts %s only after its end was visible'):format(what), function()
      local path = edit('a.txt', 'a\n')
      local text = table.concat(t.lines(100, 'line %d'), '\n') .. '\n'
      open({ { path = new and project.root .. '/new.txt' or path, text = text } })
      enter()
      local presses = 0
      while #screen.ends == 0 and presses < 30 do
        presses = presses + 1
        vim.cmd.redraw()
        press('y')
      end
      t.eq('accepted', screen.ends[1].state)
      t.ok(presses > 3, presses)
    end)
  end

  it('shows a hunk that does not fit in a window of its own, which `q` closes without a decision', function()
    local path = edit('a.txt', 'a\nb\n')
    local text = table.concat(t.lines(100, 'line %d'), '\n') .. '\nb\n'
    local one = open({ { path = path, text = text } })
    enter('y')
    t.eq({ '@@ -1,1 +1,100 @@', '-a', '+line 1' }, api.nvim_buf_get_lines(0, 0, 3, false))
    t.wait(function() return not screen.legend() end)
    press('q')
    t.wait(function() return screen.legend() end)
    t.eq({ path, 1, true }, { api.nvim_buf_get_name(0), one:undecided(), vim.fn.maparg('y', 'n') ~= '' })
    press('y', 'n')
    t.eq({ 'rejected', path }, { screen.ends[1].state, api.nvim_buf_get_name(0) })
  end)

  it('says how line breaks change, and keeps the text of a hunk that it no longer needs', function()
    local path = edit('a.txt', 'a\nb\n')
    local one = open({ { path = path, text = 'a\r\nB\r\n' } })
    says('line breaks become CRLF')
    enter('e')
    api.nvim_buf_set_lines(0, 0, -1, false, { 'mine' })
    local buffer = api.nvim_get_current_buf()
    one:close('cancelled')
    vim.cmd('write')
    t.eq({ true, 'mine' }, { vim.bo[buffer].modified, api.nvim_buf_get_lines(buffer, 0, 1, false)[1] })
    vim.cmd('bwipeout!')
  end)

  it('decides several hunks at one line, and one without lines, one after the other', function()
    local path = propose('a\nb\nc\n', 'x\na\ny\nb\nc\nz\n')
    enter('y', 'y', 'e')
    api.nvim_buf_set_lines(0, 0, -1, false, {})
    vim.cmd('wq')
    vim.wait(20)
    press('y')
    t.eq({ [path] = 'x\na\ny\nb\nc\n' }, screen.ends[1].files)
  end)

  it('shows a rejected hunk again before it is accepted', function()
    local _, one = propose('a\nb\n', 'A\nb\nB\n')
    enter('n', 'ggy')
    t.eq({ 2, {} }, { one:undecided(), screen.ends })
    press('y')
    t.eq(1, one:undecided())
  end)

  it('accepts no hunk under another window', function()
    local path = propose('a\n', 'A\n')
    enter()
    local cover = api.nvim_open_win(api.nvim_create_buf(false, true), false, {
      relative = 'editor',
      row = 0,
      col = 0,
      width = vim.o.columns,
      height = vim.o.lines - 2,
    })
    vim.cmd.redraw()
    press('y')
    t.eq({}, screen.ends)
    api.nvim_win_close(cover, true)
    press('y')
    t.eq({ [path] = 'A\n' }, screen.ends[1].files)
  end)

  it('is rejected by `:McpTools deny`, with a reason', function()
    propose('a\nb\nc\n', 'A\nb\nC\n')
    vim.cmd('new')
    command.run({ args = 'deny use b' })
    local ended = screen.ends[1]
    t.eq({ 'rejected', 2, 'use b' }, { ended.state, #ended.rejected, ended.rejected[1].reason })
  end)

  it('reports that other unsaved lines are saved as well', function()
    local path = edit('a.txt', 'a\nb\nc\n')
    api.nvim_buf_set_lines(0, 2, 3, false, { 'mine' })
    open({ { path = path, text = 'A\nb\nmine\n' } }, { saves = true })
    enter('y')
    is_notified('also saved: your other changes in this buffer')
  end)

  it('removes its mappings when its window is left and when it is postponed', function()
    local path = propose('a\nb\n', 'A\nb\n')
    enter()
    vim.cmd('new')
    t.eq({}, api.nvim_buf_get_keymap(vim.fn.bufnr(path), 'n'))
    enter()
    t.eq(path, api.nvim_buf_get_name(0))
    press('q')
    t.eq({ {}, 1 }, { api.nvim_buf_get_keymap(0, 'n'), (review.count()) })
  end)

  it('can be decided from anywhere by commands for the marked hunk', function()
    local path = propose('a\nb\nc\n', 'A\nb\nC\n')
    vim.cmd('new')
    run('reject')
    run('accept')
    t.eq({ [path] = 'a\nb\nC\n' }, screen.ends[1].files)
  end)

  it('ignores decisions where there is no hunk, or while it is not on the screen', function()
    local _, one = propose('a\nb\nc\n', 'A\nb\nc\n')
    enter()
    api.nvim_win_set_cursor(0, { 3, 0 })
    press('y')
    t.eq(1, one:undecided())
    vim.cmd('enew')
    run('accept')
    t.eq(1, one:undecided())
  end)

  it('cannot be accepted in a closed fold', function()
    local _, one = propose(('x\n'):rep(9), ('x\n'):rep(4) .. 'A\n' .. ('x\n'):rep(4))
    vim.cmd('3,7fold')
    run('accept')
    t.eq(1, one:undecided())
    enter()
    run('accept')
    t.eq(0, one:undecided())
  end)

  it('can be left while lines are inserted above a closed fold', function()
    propose('a\nb\n', 'x\ny\nz\na\nb\n')
    vim.cmd('1,$fold')
    enter()
    vim.cmd('new')
    vim.cmd.redraw() -- Neovim 0.10 and 0.11 draw virtual lines above a closed fold for ever
    vim.cmd('wincmd p')
    t.eq({ 0, 2 }, { vim.fn.winsaveview().topfill, vim.fn.foldclosedend(1) })
  end)

  it("restores the user's options of a window that was closed during it", function()
    vim.cmd('new')
    local path = propose('a\n', 'A\n')
    vim.wo.wrap, vim.wo.foldenable = false, true
    enter()
    t.eq({ true, false }, { vim.wo.wrap, vim.wo.foldenable })
    vim.cmd('quit')
    vim.cmd('silent edit ' .. path)
    t.eq({ false, true }, { vim.wo.wrap, vim.wo.foldenable })
    vim.wo.wrap = true
  end)

  it('restores sizes and views of the windows after it has shown a hunk in a window of its own', function()
    local path = edit('a.txt', table.concat(t.lines(100, 'line %d'), '\n') .. '\n')
    vim.cmd('split | resize 12 | wincmd p | normal! 50Gzt')
    local other = api.nvim_get_current_win()
    local function layout() return { api.nvim_win_get_height(other), api.nvim_win_call(other, vim.fn.winsaveview) } end
    open({ { path = path, text = table.concat(t.lines(200, 'new %d'), '\n') .. '\n' } })
    for _, how in ipairs({ 'q', ':quit<CR>' }) do
      enter()
      local before = layout()
      while vim.bo.filetype ~= 'diff' do
        press('y')
      end
      press(how)
      vim.wait(20)
      t.eq({ before, 50 }, { layout(), before[2].lnum })
    end
    vim.cmd('only')
  end)

  it('passes a reason to the agent', function()
    propose('a\n', 'A\n')
    local input = vim.ui.input
    vim.ui.input = function(_, cb) cb('not like this') end
    run('reason')
    vim.ui.input = input
    t.eq('not like this', screen.ends[1].rejected[1].reason)
  end)

  it('accepts what the user writes instead of a hunk', function()
    local path = propose('a\nb\n', 'A\nb\n')
    enter('e')
    t.eq({ 'A' }, api.nvim_buf_get_lines(0, 0, -1, false))
    api.nvim_buf_set_lines(0, 0, -1, false, { 'mine', 'too' })
    vim.cmd('wq')
    t.wait(function() return api.nvim_buf_get_name(0) == path and #api.nvim_buf_get_keymap(0, 'n') > 0 end)
    press('y')
    t.eq({ [path] = 'mine\ntoo\nb\n' }, screen.ends[1].files)
    t.ok(screen.ends[1].edited)
  end)

  it('moves from file to file; a new one can be edited', function()
    local path = edit('a.txt', 'a\n')
    local new = project.root .. '/sub/new.lua'
    open({ { path = path, text = 'A\n' }, { path = new, text = 'return 1\n' } })
    enter('y')
    t.eq({ { 'return 1' }, 'lua' }, { api.nvim_buf_get_lines(0, 0, -1, false), vim.bo.filetype })
    api.nvim_buf_set_lines(0, 0, -1, false, { 'return 2', '', 'x' })
    press('y')
    t.eq({ [path] = 'A\n', [new] = 'return 2\n\nx\n' }, screen.ends[1].files)
    t.eq(nil, vim.uv.fs_stat(new))
  end)

  it('wraps a line that is wider than the window', function()
    local path = edit('a.txt', 'a\n')
    vim.cmd('vsplit')
    api.nvim_win_set_width(0, 30)
    vim.wo.number, vim.wo.numberwidth = true, 4
    open({ { path = path, text = ('x'):rep(40) .. ('ü漢'):rep(4) .. '\n' } })
    local first, rest = ('x'):rep(26), ('x'):rep(14) .. 'ü漢ü漢ü漢ü'
    t.eq({ '1 McpToolsRemoved', '1+' .. first, '1+↪ ' .. rest, '1+↪ 漢' }, drawn())
    vim.cmd('only')
    api.nvim_exec_autocmds('WinResized', {}) -- as the main loop does where there is a screen
    t.wait(function() return #drawn() == 2 end)
  end)

  it('shows how much of a line it omits', function()
    propose('a\n', ('x'):rep(100000) .. '\n')
    local rows, seen = drawn(), 0
    for _, row in ipairs(rows) do
      seen = seen + select(2, row:gsub('x', ''))
    end
    local left = vim.iter(rows):find(function(row) return row:find('more bytes', 1, true) end)
    t.eq(100000, seen + tonumber(left:match('(%d+) more bytes')))
  end)

  it("keeps a file loaded whose window shows the next one, also with 'nohidden'", function()
    local path, other = edit('a.txt', 'a\n'), project.write('b.txt', 'b\n')
    vim.o.hidden = false
    open({ { path = path, text = 'A\n' }, { path = other, text = 'B\n' } })
    enter('y')
    t.eq(other, api.nvim_buf_get_name(0))
    says('  a.txt  0 of 1 hunk left')
    press('y')
    vim.o.hidden = true
    t.eq({ [path] = 'A\n', [other] = 'B\n' }, screen.ends[1].files)
    t.eq({ '', '' }, { vim.bo[vim.fn.bufnr(path)].bufhidden, vim.bo.bufhidden })
  end)

  it('does not open over the command-line window, and tells the user what to do', function()
    local _, one = propose('a\n', 'A\n')
    local messages, type_of = {}, nil
    local notify = vim.notify
    vim.notify = function(text) table.insert(messages, text) end
    vim.keymap.set('n', '<F2>', function()
      type_of = vim.fn.getcmdwintype()
      enter()
    end)
    api.nvim_feedkeys(vim.keycode('q:<F2>:quit<CR>'), 'xt', false)
    t.wait(function() return #messages > 0 end)
    vim.notify = notify
    vim.keymap.del('n', '<F2>')
    t.eq({ ':', 1 }, { type_of, one:undecided() })
    t.matches('command%-line window', messages[1])
  end)

  it('ends while the command-line window is open, and closes its windows afterwards', function()
    local before, ended = edit('a.txt', 'a\n'), nil
    local text = table.concat(t.lines(100, 'line %d'), '\n') .. '\n'
    for path, filetype in pairs({ [project.root .. '/new.txt'] = '', [before] = 'diff' }) do
      local one = open({ { path = path, text = text } })
      enter('y')
      t.ok(filetype == '' or vim.bo.filetype == filetype)
      api.nvim_create_autocmd('CmdwinEnter', {
        once = true,
        callback = function() ended = { vim.fn.getcmdwintype(), pcall(one.close, one, 'cancelled') } end,
      })
      api.nvim_feedkeys(vim.keycode('q::quit<CR>'), 'xn', false)
      t.wait(function() return #api.nvim_list_wins() == 1 and api.nvim_buf_get_name(0) == before end, 2000, 'the end')
      t.eq({ { ':', true }, {} }, { ended, api.nvim_buf_get_keymap(0, 'n') })
      vim.wait(500) -- an answer at once may be meant for the first review
    end
  end)

  it('lets q end a macro that is being recorded', function()
    propose('a\n', 'A\n')
    press('qz')
    enter()
    t.eq('z', vim.fn.reg_recording())
    press('wq')
    t.wait(function() return vim.fn.getreg('z') == 'w' end)
    t.eq({ '', true }, { vim.fn.reg_recording(), #api.nvim_buf_get_keymap(0, 'n') > 0 })
    press('q')
    t.eq({}, api.nvim_buf_get_keymap(0, 'n'))
  end)

  it('is drawn again after the file was reloaded', function()
    local path, one = propose('a\nb\nc\nd\n', 'a\nB\nc\nD\n')
    project.write('a.txt', 'mine\na\nb\nc\nd\n')
    vim.cmd('silent edit!')
    t.wait(function() return vim.deep_equal({ '3 McpToolsRemoved', '3+B', '5 McpToolsRemoved', '5+D' }, drawn()) end)
    one:decide_rest('accepted')
    t.eq({ [path] = 'mine\na\nB\nc\nD\n' }, screen.ends[1].files)
  end)

  it('after an edit keeps it with y and reverts it with n', function()
    local path = propose('A\nb\nC\n', 'a\nb\nc\n', { applied = true })
    t.eq({ '1 McpToolsAdded', '1+a', '3 McpToolsAdded', '3+c' }, drawn())
    enter('y', 'n')
    t.eq({ [path] = 'A\nb\nc\n' }, screen.ends[1].files)
    is_notified('review finished: 1 kept, 1 reverted')
  end)

  it('does not redraw an unchanged legend', function()
    propose('a\nb\nc\nd\n', 'a\nB\nc\nD\n')
    enter()
    t.wait(function() return (footer() or ''):find('y accept', 1, true) end)
    local before, drawn_again = screen.legend(), false
    press(']c')
    vim.schedule(function() drawn_again = true end) -- after what the key has started
    t.wait(function() return drawn_again end)
    t.eq(before, (screen.legend()))
    press('y')
    says('1 of 2 hunks left')
  end)

  it('accepts no hunk that is not drawn yet, and draws the one at the cursor first', function()
    local _, one = propose('a\nb\nc\nd\n', 'a\nB\nc\nD\n')
    enter()
    local file, stretch = one.files[1], { left = 0 }
    inline.clear_marks(file.bufnr)
    inline.show_marks(file, 1, false, false, stretch)
    t.eq({ true, true, false }, { stretch.cut, inline.is_drawn(file.bufnr, 1), inline.is_drawn(file.bufnr, 2) })
    t.eq({ '2 McpToolsRemoved', '2+B' }, drawn())
    press('4Gy')
    t.eq({ 2, true }, { one:undecided(), inline.is_drawn(file.bufnr, 2) })
    press('y')
    t.eq(1, one:undecided())
  end)

  it('does not close the last window: q in a hunk editor', function()
    local closed = 0
    local function done() closed = closed + 1 end
    require('mcp-tools.ui.review.hunk_editor').open({ '-- {{{', 'x', '-- }}}' }, 'lua', function() end, done)
    vim.wo.foldmethod = 'marker'
    t.eq(-1, vim.fn.foldclosed(2))
    vim.cmd('silent only')
    press('iy<Esc>q')
    t.eq({ 'y-- {{{', 0 }, { api.nvim_get_current_line(), closed })
    vim.bo.modified = false
    press('q')
    t.wait(function() return closed == 1 end)
    t.eq('', api.nvim_buf_get_name(0))
  end)

  it('of 200 hunks in 5000 lines is drawn in slices', function()
    local old, new = {}, {}
    for i = 1, 5000 do
      old[i] = ('local value_%d = %d'):format(i, i)
      new[i] = i % 25 == 0 and old[i] .. ' + 1' or old[i]
    end
    local path = edit('big.lua', table.concat(old, '\n') .. '\n')
    local one
    local stretches = t.calls(inline, 'show_marks', function()
      one = open({ { path = path, text = table.concat(new, '\n') .. '\n' } })
      t.wait(function() return #drawn() == 400 end)
    end)
    t.ok(stretches > 10, 'the editor has its turns while they are drawn')
    t.eq(200, one:undecided())
    enter('y')
    run('none')
    local want = vim.list_slice(old)
    want[25] = new[25]
    t.eq(table.concat(want, '\n') .. '\n', screen.ends[1].files[path])
  end)
end)

it('the end of a review of applied edits says that files are unsaved', function()
  local buffer = vim.api.nvim_create_buf(true, false)
  local files = { { bufnr = buffer, hunks = { { verdict = 'accepted' }, { verdict = 'rejected' } } } }
  local done = { ended = 'accepted', applied = true, files = files }
  t.eq('review finished: 1 kept, 1 reverted', legend.summary(done))
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, { 'x' })
  t.eq('review finished: 1 kept, 1 reverted; unsaved (:wa)', legend.summary(done))
  vim.api.nvim_buf_delete(buffer, { force = true })
end)

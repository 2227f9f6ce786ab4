-- slow
local command = require('mcp-tools.command')
local config = require('mcp-tools.config')
local project = require('editor_project')
local screen = require('review_screen')
local t = require('helpers')

--- Text on the screen.
local function shown()
  vim.cmd('redraw')
  local rows = {}
  for row = 1, vim.o.lines do
    for column = 1, vim.o.columns do
      table.insert(rows, vim.fn.screenstring(row, column))
    end
    table.insert(rows, '\n')
  end
  return table.concat(rows)
end

--- Presses `y` until the review ends, and asserts that each word was on the screen before.
local function accepts_after_showing(words)
  local seen = {}
  for _ = 1, 200 do
    local text = shown()
    for _, word in ipairs(words) do
      seen[word] = seen[word] or text:find(word, 1, true) ~= nil
    end
    screen.press('y')
    vim.wait(20, function() return #screen.ends > 0 end)
    if #screen.ends > 0 then
      break
    end
  end
  local unseen = vim.tbl_filter(function(word) return not seen[word] end, words)
  t.eq({ {}, 'accepted' }, { unseen, (screen.ends[1] or {}).state })
end

local function review(path, text)
  screen.open({ { path = path, text = text } })
  command.run({ args = 'review' })
end

local edit = project.edit

--- Returns numbered words, and a line of them that fills about a number of rows of a width.
local function tall(rows, width)
  local words, parts = {}, {}
  for i = 1, rows do
    words[i] = ('W%d_'):format(i)
    parts[i] = words[i] .. ('.'):rep(width - #words[i]) .. words[i] -- one of both is not broken at the end of a row
  end
  return words, table.concat(parts)
end

local EVIL = 'local x = 1' .. (' '):rep(300) .. 'os.execute("EVIL")\n'
local FOLDED = 'function f()\n  local x = 1\n  os.execute("EVIL")\n  return x\nend\n'

describe('a hunk is accepted after all of it was on the screen', function()
  before_each(screen.reset)
  after_each(function()
    screen.close()
    vim.cmd('set wrap& foldmethod& foldlevel& shiftwidth& lines& columns&')
  end)

  for _, case in ipairs({ { 'above the first line', 0, 50 }, { 'between lines', 50, 50 }, { 'at the end', 50, 0 } }) do
    it('if many lines are inserted ' .. case[1], function()
      local words = t.lines(100, 'NEW%04d')
      local before, after = t.lines(case[2], 'before %d'), t.lines(case[3], 'after %d')
      local path = edit('a.txt', table.concat(vim.list_extend(vim.list_slice(before), after), '\n') .. '\n')
      local text = vim.list_extend(vim.list_extend(vim.list_slice(before), words), after)
      review(path, table.concat(text, '\n') .. '\n')
      accepts_after_showing(words)
    end)
  end

  it('if its beginning is above the window', function()
    local words = t.lines(50, 'old%03d')
    local path = edit('a.txt', table.concat(words, '\n') .. '\nlast\n')
    screen.open({ { path = path, text = 'last\n' } })
    vim.cmd('normal! 45Gzt')
    command.run({ args = 'approve' })
    t.eq({}, screen.ends)
    accepts_after_showing(words)
  end)

  it('if the window became smaller, or one on another tab page is larger', function()
    local words = t.lines(12, 'NEW%04d')
    for _, change in ipairs({ 'botright 12new | wincmd p', 'tab split | botright 12new | wincmd p' }) do
      screen.reset()
      review(edit('a.txt', 'x\ny\n'), table.concat(words, '\n') .. '\nx\ny\n')
      vim.cmd(change)
      command.run({ args = 'review' })
      accepts_after_showing(words)
      vim.cmd('silent! tabonly | silent! only')
    end
  end)

  it('if the user goes to its end, or has characters that do not show', function()
    local words = t.lines(100, 'NEW%04d')
    local path = edit('a.txt', 'x\n' .. table.concat(words, '\n') .. '\ny\n')
    review(path, 'x\ny\n')
    screen.press('100Gzb')
    accepts_after_showing(words)
    screen.reset()
    review(project.root .. '/new.txt', 'one\ntwo\u{3164}\n')
    accepts_after_showing({ 'two<U+3164>' })
  end)

  it('if its lines are wrapped, also in a removal', function()
    local words = t.lines(30, 'L%03d')
    local text = table.concat(vim.tbl_map(function(word) return word .. (' x'):rep(200) end, words), '\n') .. '\n'
    review(project.root .. '/new.txt', text)
    accepts_after_showing(words)
    screen.reset()
    review(edit('b.txt', text .. 'last\n'), 'last\n')
    accepts_after_showing(words)
  end)

  it("whatever the user's options are, which return afterwards", function()
    vim.cmd('set shiftwidth=2 foldmethod=indent foldlevel=0 nowrap')
    review(project.root .. '/new.lua', FOLDED)
    accepts_after_showing({ 'EVIL' })
    screen.reset()
    review(edit('a.lua', FOLDED .. 'last\n'), 'last\n')
    accepts_after_showing({ 'EVIL' })
    screen.reset()
    review(edit('c.lua', 'local y = 1\n'), EVIL)
    accepts_after_showing({ 'EVIL' })
    t.eq({ false, true }, { vim.wo.wrap, vim.wo.foldenable })
    screen.reset()
    review(edit('d.lua', 'local y = 1\n'), EVIL)
    local bufnr = vim.api.nvim_get_current_buf()
    t.eq(true, vim.wo.wrap)
    vim.cmd('silent edit other.txt')
    vim.cmd('silent buffer ' .. bufnr)
    t.eq({ false, true }, { vim.wo.wrap, vim.wo.foldenable })
  end)

  it('side by side', function()
    config.setup({ review = { layout = 'split' } })
    review(edit('a.lua', 'local x = 0\nlocal y = 1\n'), EVIL .. 'local y = 1\n')
    accepts_after_showing({ 'EVIL' })
    for _, more in ipairs({ 0, 30 }) do -- then removed lines as well
      screen.reset()
      local words, text = tall(40, 14)
      local old = table.concat(t.lines(more, 'old %d'), '\n')
      review(edit(('%d.txt'):format(more), 'x\n' .. old .. '\ny\n'), 'x\n' .. text:gsub('%.%.%.', '\n', 20) .. '\ny\n')
      accepts_after_showing(vim.list_extend(words, more > 0 and { 'old 1', 'old 30' } or {}))
    end
  end)

  for _, rows in ipairs({ 38, 70 }) do -- more than the window has, more than are drawn at once
    for _, where in ipairs({ 'first', 'middle', 'last', 'only', 'above' }) do
      it(('if a line has %d rows (%s)'):format(rows, where), function()
        local words, line = tall(rows, 60)
        local at = { first = { line, 'b' }, last = { 'a', line }, only = { line } }
        local text = table.concat(at[where] or { 'a', line, 'c' }, '\n')
        review(
          edit('a.txt', 'x\ny\n'),
          (where == 'above' and '' or 'x\n') .. text .. (where == 'above' and '\nx' or '') .. '\ny\n'
        )
        accepts_after_showing(words)
      end)
    end
  end
end)

-- every Neovim
local float = require('mcp-tools.ui.window.float')
local t = require('helpers')

local api = vim.api

describe('the place of a floating window', function()
  before_each(function()
    vim.o.lines, vim.o.columns, vim.o.cmdheight = 24, 80, 1
  end)

  after_each(function()
    vim.cmd('silent! only | %bwipeout!')
  end)

  it('is in the half in which the cursor is not', function()
    t.eq({ row = 14, height = 6 }, float.place(6))
    vim.cmd('botright 4new')
    t.eq({ row = 0, height = 6 }, float.place(6))
  end)

  it('leaves two fifths of the screen to the person, however much there is to show', function()
    t.eq(13, float.place(1000).height)
    t.eq(1, float.place(0).height)
  end)

  it('stays as it is, unless it hides the line of the cursor', function()
    t.eq(9, float.place(6, nil, 9).row)
    vim.cmd('botright 12new')
    t.ok(float.place(6, nil, 9).row ~= 9)
  end)

  it('is beside what was opened, and lower where that leaves less room', function()
    vim.cmd('botright 5new')
    local opened = api.nvim_get_current_win()
    vim.cmd.wincmd('p')
    local at = float.place(12, opened)
    local top = api.nvim_win_get_position(opened)[1]
    t.ok(at.row + at.height + float.FRAME <= top, vim.inspect(at))
    t.ok(at.height < 13 and at.height >= 8, vim.inspect(at))
    api.nvim_win_close(opened, true)
    t.eq(float.place(12), float.place(12, opened))
  end)
end)

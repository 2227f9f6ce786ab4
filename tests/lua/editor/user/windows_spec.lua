-- every Neovim
local t = require('helpers')
local windows = require('mcp-tools.editor.user.windows')

local api = vim.api

describe('closing a window', function()
  local first

  before_each(function() first = api.nvim_get_current_win() end)
  after_each(function()
    vim.cmd('silent! only!')
    vim.cmd('silent %bwipeout!')
  end)

  local function above(win)
    return api.nvim_open_win(api.nvim_create_buf(false, true), true, { split = 'above', win = win })
  end

  it('returns to the previous window', function()
    local last = above(first)
    local between = above(last)
    api.nvim_set_current_win(first)
    api.nvim_set_current_win(between)
    t.eq({ true, first }, { windows.close(between), api.nvim_get_current_win() })
  end)

  it('leaves the focus where it is if another window is closed', function()
    local last = above(first)
    api.nvim_set_current_win(first)
    t.eq({ true, first }, { windows.close(last), api.nvim_get_current_win() })
  end)

  it('goes to a terminal only if there is no other window', function()
    local channel = api.nvim_open_term(0, {})
    local last = above(first)
    local between = above(last)
    local gone = above(between)
    api.nvim_win_close(gone, true)
    api.nvim_set_current_win(between)
    local float = { relative = 'editor', row = 1, col = 1, width = 5, height = 2 }
    local previous = api.nvim_open_win(api.nvim_create_buf(false, true), true, float)
    api.nvim_set_current_win(between)
    t.eq({ true, last }, { windows.close(between), api.nvim_get_current_win() })
    api.nvim_win_close(previous, true)
    t.eq({ true, first }, { windows.close(last), api.nvim_get_current_win() })
    vim.fn.chanclose(channel)
  end)

  it('keeps the focus if it fails', function()
    vim.o.hidden = false
    local window = above(first)
    vim.cmd('new | call setline(1, "unsaved")')
    local unsaved = api.nvim_get_current_win()
    t.eq({ false, unsaved }, { (windows.close(unsaved)), api.nvim_get_current_win() })
    t.eq({ true, window }, { (windows.close(unsaved, true)), api.nvim_get_current_win() })
    vim.o.hidden = true
    vim.cmd('silent! only!')
    t.eq(false, (windows.close(api.nvim_get_current_win())))
  end)
end)

-- every Neovim
local help = require('mcp-tools.ui.window.help')
local t = require('helpers')

local api = vim.api

describe('the help of a window', function()
  after_each(function()
    help.close()
    vim.cmd('silent! %bwipeout!')
  end)

  it('takes the key that closes it, and leaves the next ones alone', function()
    if vim.fn.has('nvim-0.11') == 0 then
      return -- a key cannot be taken
    end
    local ran = {}
    for _, key in ipairs({ 'q', 'y' }) do
      vim.keymap.set('n', key, function()
        table.insert(ran, key)
      end, { buffer = 0 })
    end
    api.nvim_buf_set_lines(0, 0, -1, false, vim.tbl_map(tostring, vim.fn.range(1, 500)))
    help.toggle({ { lhs = 'q', description = 'leave' } })
    api.nvim_feedkeys('qyx', 'xt', false)
    t.eq({ { 'y' }, { 1, 0 }, '' }, { ran, api.nvim_win_get_cursor(0), api.nvim_get_current_line() })
    t.wait(function()
      return #api.nvim_list_wins() == 1
    end)
  end)

  it('names the space bar', function()
    help.attach(0)
    vim.keymap.set('n', '<Space>', '<Nop>', { buffer = 0, desc = 'choose' })
    api.nvim_feedkeys('?', 'xt', false)
    local lines = {}
    for _, window in ipairs(api.nvim_list_wins()) do
      vim.list_extend(lines, api.nvim_buf_get_lines(api.nvim_win_get_buf(window), 0, -1, false))
    end
    t.matches('<Space>%s+choose', table.concat(lines, '\n'))
  end)
end)

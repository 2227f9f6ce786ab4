-- every Neovim
local layout = require('mcp-tools.ui.layout')
local t = require('helpers')

local api = vim.api

local function open(style, closed)
  return layout.open({
    name = 'spec',
    title = 'spec',
    style = style,
    keys = {},
    render = function(rows)
      rows:add({ 'a row' })
    end,
    on_close = closed,
  })
end

describe('a window of ours', function()
  local ended

  local function closed()
    ended = ended + 1
  end

  before_each(function()
    ended = 0
  end)
  after_each(function()
    vim.cmd('silent! only')
    vim.cmd('%bwipeout!')
  end)

  it('says in its frame how its keys are left again', function()
    local shown = open('float')
    local function press(keys)
      api.nvim_feedkeys(vim.keycode(keys), 'xt', false)
      local footer = vim.iter(api.nvim_win_get_config(shown.window).footer):map(function(chunk)
        return chunk[1]
      end)
      return { shown.helping, footer:join('') }
    end
    t.eq({ true, ' q back ' }, press('?'))
    t.eq({ false, ' q close  ? keys ' }, press('<Esc>'))
    t.eq({ false, ' q close  ? keys ' }, press('<Esc>'))
    shown:close()
  end)

  it('as a split is left to who opens a text in it', function()
    for _, alone in ipairs({ false, true }) do
      local before, path = ended, vim.fn.tempname()
      open('split', closed)
      if alone then
        vim.cmd.only()
      end
      vim.cmd.edit(path)
      local window = api.nvim_get_current_win()
      t.wait(function()
        return ended > before
      end)
      t.eq({ before + 1, window, path }, { ended, api.nvim_get_current_win(), api.nvim_buf_get_name(0) })
      t.eq('', vim.wo.winbar)
      vim.cmd('silent! only')
    end
  end)

  it('goes with its buffer, and its buffer with it', function()
    for _, style in ipairs({ 'float', 'split' }) do
      for _, command in ipairs({ 'close', 'bwipeout' }) do
        local before, one = ended, open(style, closed)
        vim.cmd(command)
        t.wait(function()
          return ended > before
        end)
        t.eq({ false, false }, { api.nvim_win_is_valid(one.window), api.nvim_buf_is_valid(one.buffer) })
      end
    end
    t.eq(4, ended)
  end)

  it('stands above the others where there is no room for one more', function()
    local lines = vim.o.lines
    vim.o.lines = 12
    while pcall(vim.cmd.split) do
    end
    local one = open('split')
    t.eq('editor', api.nvim_win_get_config(one.window).relative)
    t.eq({ 'a row' }, api.nvim_buf_get_lines(one.buffer, 0, -1, false))
    one:close()
    vim.cmd('silent! only')
    vim.o.lines = lines
  end)
end)

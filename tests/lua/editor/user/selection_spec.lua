-- every Neovim
local selection = require('mcp-tools.editor.user.selection')
local t = require('helpers')

local root

--- Selects with the keys of a person, in a file of the project, and leaves the selection.
local function select(lines, keys)
  vim.cmd('edit! ' .. root .. '/x.txt')
  vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys .. '<Esc>', true, false, true), 'xt', false)
end

describe('the last selection', function()
  before_each(function()
    root = vim.uv.fs_realpath(vim.fs.dirname(vim.fn.tempname()))
  end)

  after_each(function()
    vim.cmd('bwipeout!')
  end)

  it('is given with its place', function()
    select({ 'one two', 'three' }, 'gg4lvj')
    local got = selection.get(root)
    t.eq({ 'two\nthree', 1, 5, 2, 5 }, { got.text, got.start_line, got.start_column, got.end_line, got.end_column })
  end)

  it('may hold NUL bytes', function()
    for _, case in ipairs({
      { 'gg2lvl', 'b\0', 3, 4 },
      { 'gg2l<C-v>lj', 'b\0\nd\0', 3, 4 },
      { 'ggVj', 'a b\0c\nx d\0e', 1, 5 },
    }) do
      select({ 'a b\0c', 'x d\0e' }, case[1])
      local got = selection.get(root)
      t.eq({ case[2], case[3], case[4] }, { got.text, got.start_column, got.end_column })
    end
  end)

  it('ends where its lines end by now', function()
    for _, case in ipairs({
      { 'gg15lv5l', 'abc', 'c', 3, 3 },
      { 'gg5lv15l', 'abcdefgh', 'fgh', 6, 8 },
      { 'gg15lv5l', '', '', 1, 1 },
      { 'gg15lv$', 'abc', 'c', 3, 3 },
      { 'gg15lv5l', 'aäö', 'ö', 3, 3 },
      { 'gg2lv1l', 'aäö', 'äö', 2, 3 },
      { 'gg15l<C-v>5l', 'abc', 'c', 3, 3 },
    }) do
      select({ ('a'):rep(30), 'b' }, case[1])
      vim.api.nvim_buf_set_lines(0, 0, 1, false, { 'changed' })
      vim.api.nvim_buf_set_lines(0, 0, 1, false, { case[2] })
      local got = selection.get(root)
      t.eq({ case[3], case[4], case[5] }, { vim.trim(got.text), got.start_column, got.end_column })
    end
  end)

  it('is not copied when it is too large for anybody', function()
    select({ ('a'):rep(4 * 1024 * 1024 - 1) }, 'ggV')
    t.eq(4 * 1024 * 1024 - 1, #selection.get(root).text)
    for _, keys in ipairs({ 'ggV', 'gglvG$', 'gg<C-v>G' }) do
      select({ 'one two', ('a'):rep(4 * 1024 * 1024) }, keys .. 'G')
      local got = selection.get(root)
      t.eq({ 'too large', 1, 2 }, { got.withheld, got.start_line, got.end_line })
      t.eq(nil, got.text)
    end
  end)
end)

-- every Neovim
local context = require('mcp-tools.editor.context')
local project = require('editor_project')
local focus = require('mcp-tools.editor.user.focus')
local t = require('helpers')

describe('context for agents', function()
  local api = vim.api
  local told, wanted = {}, false

  context.on_change(function(now) table.insert(told, now) end, function() return wanted end)

  local edit = project.edit

  --- Types keys like a user.
  local function type(keys) api.nvim_feedkeys(vim.keycode(keys), 'xt', false) end

  project.each(nil, function()
    told, wanted = {}, false
  end)

  describe('the context', function()
    it('has the real path of the file and the cursor, in UTF-16 from 0', function()
      edit('a.txt', 'x\nä𝄞b\n')
      vim.fn.cursor(2, #'ä𝄞' + 1)
      t.eq(vim.uv.fs_realpath(project.root .. '/a.txt'), context.get().active.path)
      t.eq({ line = 1, character = 3 }, context.get().active.cursor)
      t.eq(nil, context.get().active.selection)
    end)

    it('has the recent files of the user, the last one first, without deleted ones', function()
      local one, two = edit('one', ''), edit('two', '')
      t.eq({ two, one }, t.field('path', context.get().open_files))
      vim.cmd('silent bwipeout ' .. one)
      t.eq(1, #context.get().open_files)
    end)

    it('is that of the last window without a terminal', function()
      local path = edit('a.txt', 'x\n')
      t.terminal()
      t.eq(path, context.get().active.path)
      vim.cmd('bwipeout!')
    end)

    it('does not name a sensitive file, or one that the user has marked', function()
      edit('.env', 'TOKEN=1\n')
      t.eq({ nil, 0 }, { context.get().active, #context.get().open_files })
      edit('b.txt', 'x\n')
      t.ok(context.get().active)
      vim.b.sensitive = true
      t.eq({ nil, 0 }, { context.get().active, #context.get().open_files })
    end)
  end)

  describe('the selection', function()
    local function selected() return context.get().active.selection end

    it('is the active one: characters, lines, a block', function()
      edit('a.txt', 'one two\nthree\nfour\n')
      local seen
      vim.keymap.set('x', 'Q', function() seen = selected() end, { buffer = true })
      type('wvjQ<Esc>')
      t.eq({ start = { line = 0, character = 4 }, finish = { line = 1, character = 5 }, text = 'two\nthree' }, seen)
      type('ggVjQ<Esc>')
      t.eq({ start = { line = 0, character = 0 }, finish = { line = 1, character = 5 }, text = 'one two\nthree' }, seen)
      type('gg0l<C-v>jlQ<Esc>')
      t.eq('ne\nhr', seen.text)
      type('gg0vjokQ<Esc>')
      t.eq({ line = 0, character = 0 }, seen.start)
    end)

    it('lasts until the cursor moves or the text changes', function()
      edit('a.txt', 'one\ntwo\nthree\n')
      type('jV<Esc>')
      t.eq('two', selected().text)
      local window = api.nvim_get_current_win()
      t.terminal()
      t.eq('two', selected().text)
      vim.cmd('bwipeout!')
      api.nvim_set_current_win(window)
      type('k')
      t.eq(nil, selected())
      type('jV<Esc>')
      t.ok(selected())
      api.nvim_buf_set_lines(0, 0, 1, false, { 'other' })
      t.eq(nil, selected())
    end)

    it('has its whole range and a limited text', function()
      edit('a.txt', (('x'):rep(100) .. '\n'):rep(2000))
      type('ggVG<Esc>')
      t.eq({ line = 1999, character = 100 }, selected().finish)
      t.ok(#selected().text > 64000 and #selected().text <= 64 * 1024)
    end)
  end)

  describe('a listener', function()
    it('is notified once for many moves, and not at all if nobody needs the context', function()
      edit('a.txt', 'one\ntwo\n')
      for _ = 1, 3 do
        api.nvim_exec_autocmds('CursorMoved', {})
      end
      wanted = true
      for _ = 1, 3 do
        api.nvim_exec_autocmds('CursorMoved', {})
      end
      t.eq(0, #told)
      t.wait(function() return #told > 0 end)
      t.eq(1, #told)
    end)

    it('is notified of changed diagnostics', function()
      edit('a.txt', 'one\n')
      wanted = true
      local before = context.get().diagnostics
      local space = api.nvim_create_namespace('context spec')
      vim.diagnostic.set(space, 0, { { lnum = 0, col = 0, end_col = 3, message = 'oh', severity = 2, source = 's' } })
      t.ok(t.wait(function() return told[#told] end).diagnostics > before)
      local path = api.nvim_buf_get_name(0)
      t.eq({
        {
          path = path,
          diagnostics = {
            {
              message = 'oh',
              severity = 2,
              source = 's',
              range = { start = { line = 0, character = 0 }, ['end'] = { line = 0, character = 3 } },
            },
          },
        },
      }, context.diagnostics())
      vim.diagnostic.reset(space)
      t.eq({}, context.diagnostics())
      t.eq({ { path = path, diagnostics = {} } }, context.diagnostics(path))
      t.eq({}, context.diagnostics(project.root .. '/not-open.txt'))
    end)
  end)
end)

local root

--- Selects text of a project file with keys, and leaves the selection.
local function select(lines, keys)
  vim.cmd('edit! ' .. root .. '/x.txt')
  vim.api.nvim_buf_set_lines(0, 0, -1, false, lines)
  vim.api.nvim_feedkeys(vim.api.nvim_replace_termcodes(keys .. '<Esc>', true, false, true), 'xt', false)
end

describe('the last selection', function()
  before_each(function() root = vim.uv.fs_realpath(vim.fs.dirname(vim.fn.tempname())) end)

  after_each(function() vim.cmd('bwipeout!') end)

  it('has its range', function()
    select({ 'one two', 'three' }, 'gg4lvj')
    local got = focus.selection(root)
    t.eq({ 'two\nthree', 1, 5, 2, 5 }, { got.text, got.start_line, got.start_column, got.end_line, got.end_column })
  end)

  it('can contain NUL bytes', function()
    for _, case in ipairs({
      { 'gg2lvl', 'b\0', 3, 4 },
      { 'gg2l<C-v>lj', 'b\0\nd\0', 3, 4 },
      { 'ggVj', 'a b\0c\nx d\0e', 1, 5 },
    }) do
      select({ 'a b\0c', 'x d\0e' }, case[1])
      local got = focus.selection(root)
      t.eq({ case[2], case[3], case[4] }, { got.text, got.start_column, got.end_column })
    end
  end)

  it('ends at the current end of its lines', function()
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
      local got = focus.selection(root)
      t.eq({ case[3], case[4], case[5] }, { vim.trim(got.text), got.start_column, got.end_column })
    end
  end)

  it('is not copied when it is too large', function()
    select({ ('a'):rep(4 * 1024 * 1024 - 1) }, 'ggV')
    t.eq(4 * 1024 * 1024 - 1, #focus.selection(root).text)
    for _, keys in ipairs({ 'ggV', 'gglvG$', 'gg<C-v>G' }) do
      select({ 'one two', ('a'):rep(4 * 1024 * 1024) }, keys .. 'G')
      local got = focus.selection(root)
      t.eq({ 'too large', 1, 2, nil }, { got.withheld, got.start_line, got.end_line, got.text })
    end
  end)
end)

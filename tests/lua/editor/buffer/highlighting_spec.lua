-- every Neovim
-- Text that would freeze or abort Neovim when it is highlighted.

local command = require('mcp-tools.command')
local disk = require('mcp-tools.editor.buffer.disk')
local highlighting = require('mcp-tools.editor.buffer.highlighting')
local notifications = require('notifications')
local project = require('editor_project')
local screen = require('review_screen')
local t = require('helpers')

local api = vim.api

local NESTED = ('> '):rep(260) .. 'x'
local LONG = ('function f() '):rep(1000) .. ('end '):rep(1000)

describe('text that is dangerous to highlight', function()
  local group

  local function is_highlighted(bufnr)
    return vim.treesitter.highlighter.active[bufnr or api.nvim_get_current_buf()] ~= nil
  end

  --- Parses the text, as folds do. Without the guard, this aborts Neovim.
  local function parse() return vim.treesitter.get_parser(0):parse(true) end

  --- Opens a highlighted file.
  local function edit(name, text)
    vim.cmd('silent edit! ' .. project.write(name, text))
    vim.bo.filetype = name:match('%.md$') and 'markdown' or 'lua'
    t.ok(is_highlighted())
    return api.nvim_get_current_buf()
  end

  before_each(function()
    screen.reset()
    project.offer({ 'editor', 'file' })
    group = api.nvim_create_augroup('highlighting_spec', {})
    api.nvim_create_autocmd('FileType', {
      group = group,
      pattern = { 'lua', 'markdown' },
      callback = function(args) vim.treesitter.start(args.buf, args.match) end,
    })
  end)

  after_each(function()
    api.nvim_del_augroup_by_id(group)
    vim.cmd('silent! tabonly! | silent! only!')
    screen.close()
  end)

  it('is found in any language and in linear time', function()
    local items, tabs = ('- '):rep(260) .. 'x', ('\t'):rep(130) .. '- x'
    for _, line in ipairs({ NESTED, items, tabs, ('1) '):rep(260) .. 'x', '--- ' .. NESTED, ('x'):rep(333) .. NESTED }) do
      t.eq('abort', highlighting.danger_of({ 'x', line }))
    end
    for _, line in ipairs({ ('-'):rep(500), ('> '):rep(90), ('x '):rep(999), (' '):rep(300), ('1.5, '):rep(400) }) do
      t.eq(nil, highlighting.danger_of({ line }))
    end
    t.eq('freeze', highlighting.danger_of({ LONG }))
    local line = ('f() '):rep(500)
    t.eq('freeze', highlighting.danger_of(vim.fn['repeat']({ line }, 20)))
    t.eq(nil, highlighting.danger_of(vim.fn['repeat']({ line, '', '', '', '', '', '', '', '', '' }, 50)))
    local lines = vim.fn['repeat']({ ('- x > '):rep(20) }, 20000)
    t.eq(nil, t.fast(highlighting.danger_of, lines))
  end)

  it('is opened without highlighting', function()
    project.write('a.lua', LONG .. '\n')
    project.once('BufReadPost', '*.lua', 'set filetype=lua') -- the spec has no detection of filetypes
    notifications.collect()
    t.eq(nil, select(2, project.call('editor_open', { path = 'a.lua' })))
    t.eq({ 'a.lua', 'lua', false }, { vim.fs.basename(api.nvim_buf_get_name(0)), vim.bo.filetype, is_highlighted() })
    notifications.wait('highlighting of a.lua is off: its long lines could block Neovim. `:edit` turns it on again')
    notifications.restore()
  end)

  it('stays highlighted where the user has seen it so', function()
    local text = ('-- x\n'):rep(60) .. LONG .. '\n'
    local bufnr = edit('a.lua', text)
    notifications.collect()
    for i, added in ipairs({ 'first()\n', 'last()\n' }) do
      vim.cmd('normal! G')
      vim.cmd.redraw()
      vim.uv.fs_utime(project.write('a.lua', i == 1 and added .. text or text .. added), 20 * i, 20 * i)
      t.eq('reloaded', disk.check(bufnr))
      t.ok(is_highlighted())
    end
    vim.cmd('normal! 61G')
    vim.cmd.redraw()
    t.eq(nil, select(2, project.call('editor_open', { path = 'a.lua', line = 1 })))
    t.eq({ bufnr, true }, { api.nvim_get_current_buf(), is_highlighted() })
    for i = 1, 2 do
      vim.uv.fs_utime(project.write('a.lua', text .. LONG .. i .. '\n'), 9 * i, 9 * i)
      t.eq('reloaded', disk.check(bufnr))
      t.eq(false, is_highlighted())
    end
    notifications.wait('a.lua is off')
    t.eq(1, #notifications.list)
    notifications.restore()
  end)

  it('ends highlighting before the user is led to a line that was not drawn', function()
    edit('a.lua', ('-- x\n'):rep(300) .. LONG .. '\n')
    vim.cmd.redraw()
    t.eq(nil, select(2, project.call('editor_open', { path = 'a.lua', line = 301 })))
    t.eq(false, is_highlighted())
  end)

  it('ends highlighting when an edit adds it', function()
    edit('a.md', 'one\ntwo\n')
    parse()
    for _, expected in ipairs({ true, false }) do -- only both edits together are dangerous
      local edits = { { path = 'a.md', old_text = 'two', new_text = ('> '):rep(130) .. 'two' } }
      t.eq({ nil, expected }, { select(2, project.call('file_edit', { edits = edits })), (is_highlighted()) })
    end
    t.eq({}, parse())
  end)

  it('ends highlighting when it is read from disk', function()
    local bufnr = edit('a.md', 'one\n')
    vim.uv.fs_utime(project.write('a.md', 'two\n'), 1, 1)
    t.eq('reloaded', disk.check(bufnr))
    t.ok(is_highlighted())
    vim.uv.fs_utime(project.write('a.md', NESTED .. '\n'), 9, 9)
    t.eq('reloaded', disk.check(bufnr))
    t.eq({ false, '' }, { is_highlighted(), vim.bo.filetype })
  end)

  it('is reviewed without highlighting', function()
    for _, layout in ipairs({ 'inline', 'split' }) do
      screen.reset()
      require('mcp-tools').setup({ review = { layout = layout } })
      local bufnr = edit(layout .. '.md', 'one\n')
      screen.open({ { path = api.nvim_buf_get_name(bufnr), text = NESTED .. '\n' } })
      command.run({ args = 'review' })
      t.eq({ true, layout == 'inline' }, { is_highlighted(bufnr), is_highlighted() })
      screen.press('e')
      t.eq({ NESTED, false }, { api.nvim_get_current_line(), is_highlighted() })
      vim.cmd('silent! tabonly! | silent! only!')
      screen.close()
    end
    screen.reset()
    screen.open({ { path = project.root .. '/new.md', text = NESTED .. '\n' } })
    command.run({ args = 'review' })
    t.eq({ NESTED, '' }, { api.nvim_get_current_line(), vim.bo.filetype })
  end)
end)

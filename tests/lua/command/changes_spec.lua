-- every Neovim
-- luacheck: globals vim.ui
local command = require('mcp-tools.command')
local changes = require('mcp-tools.editor.edit.history')
local notifications = require('notifications')
local project = require('editor_project')
local t = require('helpers')

local api = vim.api

local function run(text)
  command.run({ args = 'changes ' .. text })
end

local function press(keys)
  api.nvim_feedkeys(vim.keycode(keys), 'xt', false)
end

local function lines(bufnr)
  return api.nvim_buf_get_lines(bufnr or 0, 0, -1, false)
end

local path

before_each(function()
  project.open()
  require('mcp-tools').setup({ tools = 'all', approval = { groups = { buffer = 'allow', file = 'allow' } } })
  path = project.write('a.txt', 'a\nb\nc\n')
  vim.cmd('silent edit ' .. path)
  local args = { path = path, edits = { { search = 'c', replace = 'C\nD' } } }
  t.eq(nil, project.run('tool', 'buffer_edit', args).error)
end)
after_each(project.close)

describe(':McpTools changes', function()
  it('lists who changed what, newest first', function()
    run('')
    t.matches('^ +%d+  %d%d:%d%d:%d%d  a.txt:3  %+2 %-1  .*, buffer_edit$', lines()[1])
    local told = api.nvim_eval_statusline(vim.wo.winbar, { use_winbar = true, maxwidth = 80 }).str
    t.matches('changes by agents.*<CR> go  d difference  u revert  q close  %? keys', told)
  end)

  it('jumps to one, also when lines came before it', function()
    api.nvim_buf_set_lines(0, 0, 0, false, { 'mine' })
    run('')
    press('<CR>')
    t.eq({ path, 4 }, { api.nvim_buf_get_name(0), api.nvim_win_get_cursor(0)[1] })
  end)

  it('shows one as a diff', function()
    run('diff ' .. changes.list()[1].id)
    t.eq('diff', vim.bo.filetype)
    t.ok(vim.list_contains(lines(), '-c') and vim.list_contains(lines(), '+C'))
  end)

  it('shows in a diff what else could not be seen', function()
    local args = { path = path, edits = { { search = 'a', replace = 'x\226\128\174y\tz' } } }
    t.eq(nil, project.run('tool', 'buffer_edit', args).error)
    run('diff ' .. changes.list()[1].id)
    t.ok(vim.list_contains(lines(), '+x<U+202E>y    z'))
  end)

  it('asks before it deletes a file that was made', function()
    local new, asked, answer = project.root .. '/new.txt', nil, 2
    t.eq(nil, project.run('tool', 'file_write', { path = new, text = 'one\n' }).error)
    local select = vim.ui.select
    vim.ui.select = function(items, opts, fn)
      asked = opts.prompt
      fn(items[answer])
    end
    local id = changes.list()[1].id
    run('revert ' .. id)
    t.matches('This change created new.txt. Delete', asked)
    t.ok(vim.uv.fs_stat(new))
    answer = 1
    run('revert ' .. id)
    vim.ui.select = select
    t.wait(function()
      return not vim.uv.fs_stat(new) and changes.find(id).reverted
    end)
  end)

  it('says of one whether it is taken back now, by whatever way', function()
    local function is_gone()
      run('')
      local row = lines()[1]
      vim.cmd.close()
      return row:find('reverted', 1, true) ~= nil
    end
    local seen = { is_gone() }
    for _, way in ipairs({ 'undo', 'redo' }) do
      vim.cmd('silent ' .. way)
      table.insert(seen, is_gone())
    end
    run('revert ' .. changes.list()[1].id)
    t.wait(function()
      return #lines() == 3
    end)
    table.insert(seen, is_gone())
    vim.cmd('silent undo')
    t.eq({ false, true, false, true, false }, vim.list_extend(seen, { is_gone() }))
  end)

  it('comes back from a difference, in which one can be taken back, too', function()
    run('')
    press('d')
    t.eq('diff', vim.bo.filetype)
    press('q')
    t.matches('a.txt:3', lines()[1])
    press('d')
    press('u')
    t.wait(function()
      return lines()[1]:find('reverted', 1, true)
    end)
    notifications.collect()
    press('u')
    notifications.wait('already been reverted')
    press('q')
    t.eq(-1, vim.fn.bufnr('^mcp-tools://change'))
  end)

  it('takes one back', function()
    local bufnr = api.nvim_get_current_buf()
    run('')
    press('u')
    t.wait(function()
      return vim.deep_equal({ 'a', 'b', 'c' }, lines(bufnr))
    end)
    t.wait(function()
      return lines()[1]:find('reverted', 1, true)
    end)
  end)
end)

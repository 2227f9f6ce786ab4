-- every Neovim
local changes = require('mcp-tools.editor.edit.history')
local project = require('editor_project')
local revert = require('mcp-tools.editor.edit.revert')
local t = require('helpers')

local api = vim.api

local function edit(args)
  local outcome = project.run('tool', 'buffer_edit', args)
  t.eq(nil, outcome.error)
  return changes.list()[1]
end

local function back(change)
  local done
  revert.run(change, function(...)
    done = { ... }
  end)
  t.wait(function()
    return done
  end)
  return done[1], done[2]
end

local function lines()
  return api.nvim_buf_get_lines(0, 0, -1, false)
end

before_each(function()
  project.open()
  require('mcp-tools').setup({
    tools = 'all',
    approval = { default = 'allow', groups = { buffer = 'allow', file = 'allow' } },
  })
end)
after_each(project.close)

describe('what agents change', function()
  it('is kept with who, when, which tool and the lines', function()
    local path = project.write('a.txt', 'a\nb\nc\n')
    vim.cmd('silent edit ' .. path)
    local change = edit({ path = path, edits = { { search = 'b\n', replace = 'B\nB2\n' } } })
    t.eq({ 'buffer_edit', path, false }, { change.tool, change.path, change.is_new })
    t.ok(math.abs(os.time() - change.at) < 60)
    t.eq({ { start = 2, count = 1, old = { 'b' }, new = { 'B', 'B2' } } }, change.hunks)
    t.eq({ 'a', 'B', 'B2', 'c' }, changes.after(change))
    t.eq(change, changes.find(change.id))
  end)

  it('takes no more room than is meant for it, new files among it', function()
    local text = { ('x'):rep(10 * 1024 * 1024) }
    for i = 1, 4 do
      local made = { path = '/' .. i, before = {}, is_new = true, hunks = { { line = 1, removed = 0, added = 1 } } }
      changes.note({ call = { name = 'file_write' } }, made, function()
        return text
      end)
    end
    t.eq(
      { '/4', '/3', '/2' },
      vim.tbl_map(function(change)
        return change.path
      end, changes.list())
    )
  end)

  it('is taken back, though the text around it is another by now', function()
    local path = project.write('a.txt', 'a\nb\nc\nd\ne\n')
    vim.cmd('silent edit ' .. path)
    local edits =
      { { search = 'b\n', replace = 'B\nB2\n' }, { search = 'd\n', replace = '' }, { search = 'e', replace = 'E' } }
    local change = edit({ path = path, edits = edits })
    api.nvim_buf_set_lines(0, 0, 1, false, { 'mine', 'a!' })
    t.eq({ hunks = 2, left = 0 }, (back(change)))
    t.eq({ 'mine', 'a!', 'b', 'c', 'd', 'e' }, lines())
    t.ok(change.reverted)
  end)

  it('is taken back as far as it is still there', function()
    local path = project.write('a.txt', 'a\nb\nc\n')
    vim.cmd('silent edit ' .. path)
    local change = edit({ path = path, edits = { { search = 'a', replace = 'A' }, { search = 'c', replace = 'C' } } })
    api.nvim_buf_set_lines(0, 2, 3, false, { 'mine' })
    t.eq({ hunks = 1, left = 1 }, (back(change)))
    t.eq({ 'a', 'b', 'mine' }, lines())
    local _, err = back(change)
    t.eq('stale', err.code)
  end)

  it('is taken back on the disk where the file is not open', function()
    local path = project.write('a.txt', 'a\nb\n')
    local change = edit({ path = path, edits = { { search = 'a', replace = 'A' } } })
    t.eq({ 'A', 'b' }, vim.fn.readfile(path))
    t.ok((back(change)))
    t.eq({ 'a', 'b' }, vim.fn.readfile(path))
  end)

  it('includes what a formatter changes when the file is written, and is taken back with it', function()
    local path, told = project.write('fmt.txt', 'a\nb\nc\n'), nil
    api.nvim_create_autocmd('BufWritePre', {
      pattern = '*/fmt.txt',
      once = true,
      callback = function()
        api.nvim_buf_set_lines(0, 1, 2, false, { 'b = 1' })
        api.nvim_buf_set_lines(0, 0, 0, false, { '-- header' })
      end,
    })
    api.nvim_create_autocmd('User', {
      pattern = 'McpToolsEdit',
      once = true,
      callback = function(args)
        told = args.data.hunks
      end,
    })
    local outcome = project.run('tool', 'buffer_edit', { path = path, edits = { { search = 'b', replace = 'b=1' } } })
    t.eq('-- header\na\nb = 1\nc\n', table.concat(vim.fn.readfile(path), '\n') .. '\n')
    local hunks = { { line = 1, removed = 0, added = 1 }, { line = 3, removed = 1, added = 1 } }
    t.eq({ hunks, hunks }, { told, outcome.value.applied })
    local change = changes.list()[1]
    t.eq({ '-- header', 'a', 'b = 1', 'c' }, changes.after(change))
    t.eq({ hunks = 2, left = 0 }, (back(change)))
    t.eq({ 'a', 'b', 'c' }, vim.fn.readfile(path))
  end)

  it('is deleted where it made the file, unless somebody has changed that since', function()
    local path = project.root .. '/new.txt'
    local function made()
      t.eq(nil, project.run('tool', 'file_write', { path = path, text = 'one\n\ntwo\n' }).error)
      return changes.list()[1]
    end
    local change = made()
    t.eq({ true, { 'one', '', 'two' } }, { change.is_new, changes.after(change) })
    project.write('new.txt', 'one\n\nTWO\n')
    local _, err = back(change)
    t.eq('stale', err.code)
    t.eq({ 'one', '', 'TWO' }, vim.fn.readfile(path))
    project.write('new.txt', 'one\n\ntwo\n')
    vim.cmd('silent edit ' .. path)
    api.nvim_buf_set_lines(0, 0, 0, false, { 'mine' })
    _, err = back(change)
    t.matches('changed after it was created', err.message)
    vim.cmd('silent undo')
    t.eq({ hunks = 1, left = 0 }, (back(change)))
    t.eq({ nil, true, { 'one', '', 'two' } }, { vim.uv.fs_stat(path), vim.bo.modified, lines() })
    vim.cmd('silent bwipeout!')
    t.ok((back(made())))
    t.eq({ nil, -1 }, { vim.uv.fs_stat(path), vim.fn.bufnr(path) })
    _, err = back(change)
    t.eq('not_found', err.code)
  end)
end)

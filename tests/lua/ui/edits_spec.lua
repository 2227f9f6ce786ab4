-- slow, every Neovim
-- What the user sees of edits by agents: marks of changed lines, and a notification of unsaved edits.

local edits = require('mcp-tools.ui.edits')
local changes = require('mcp-tools.editor.edit.history')
local command = require('mcp-tools.command')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local edit = require('mcp-tools.editor.edit')
local notifications = require('notifications')
local project = require('editor_project')
local t = require('helpers')

edits.QUIET = 100

describe('lines that an agent has changed', function()
  local bufnr

  ---@return table[] rows from 1, with how they are marked
  local function marked()
    local list = vim.api.nvim_buf_get_extmarks(bufnr, -1, 0, -1, { details = true })
    local out = {}
    for _, mark in ipairs(list) do
      local details = mark[4]
      if details.number_hl_group == 'McpToolsChanged' then
        table.insert(out, { mark[2] + 1, details.sign_text ~= nil })
      end
    end
    return out
  end

  --- Replaces a line as a tool does.
  ---@param line integer
  ---@param text string
  ---@param id string
  local function change(line, text, id)
    local ctx = { call = { id = id, name = 'file_edit' }, client = { name = 'agent' }, session = id }
    local row, last = line - 1, #vim.fn.getline(line)
    local place = { start_line = row, start_col = 0, end_line = row, end_col = last, text = text }
    t.ok(edit.apply(bufnr, { place }, { ctx = ctx }))
  end

  before_each(function()
    core.get()
    bufnr = vim.api.nvim_create_buf(true, false)
    vim.api.nvim_buf_set_name(bufnr, vim.fn.tempname() .. '.txt')
    vim.api.nvim_set_current_buf(bufnr)
    vim.api.nvim_buf_set_lines(bufnr, 0, -1, false, { 'one', 'two', 'three', 'four' })
  end)

  after_each(function()
    vim.api.nvim_buf_delete(bufnr, { force = true })
    config.reset()
  end)

  it('are marked by their number, and open the change', function()
    change(2, 'TWO\nand a half', 'a')
    t.eq({ { 2, false }, { 3, false } }, marked())
    local id = changes.list()[1].id
    t.eq({ id, id, nil }, { edits.at(bufnr, 2), edits.at(bufnr, 3), (edits.at(bufnr, 4)) })
    change(3, 'later', 'b')
    t.eq(changes.list()[1].id, edits.at(bufnr, 3))
    vim.api.nvim_win_set_cursor(0, { 2, 0 })
    command.run({ args = 'changes' })
    t.eq({ 2, id }, { vim.api.nvim_win_get_cursor(0)[1], changes.list()[2].id })
    vim.cmd.close()
  end)

  it('lose their marks when the change is reverted, and by `clear`', function()
    change(1, 'ONE', 'a')
    change(4, 'FOUR', 'b')
    t.eq(2, #marked())
    command.run({ args = 'changes revert ' .. changes.list()[1].id })
    t.wait(function() return #marked() == 1 end)
    t.eq('four', vim.fn.getline(4))
    command.run({ args = 'changes clear' })
    t.eq({}, marked())
  end)

  it('get a sign, or nothing, as the option requires', function()
    config.setup({ ui = { changes = 'sign' } })
    change(1, 'ONE', 'a')
    t.eq({ { 1, true } }, marked())
    config.setup({ ui = { changes = 'none' } })
    change(2, 'TWO', 'b')
    t.eq({ { 1, true } }, marked())
  end)

  it('lose a mark when its line is deleted', function()
    change(2, 'TWO', 'a')
    vim.api.nvim_buf_set_lines(bufnr, 1, 2, false, {})
    t.eq({}, marked())
  end)

  it('are limited to a thousand', function()
    change(1, ('x\n'):rep(3000), 'a')
    t.eq(999, #marked())
  end)
end)

describe('an edit that stays unsaved', function()
  local api = vim.api

  local function edit_buffer(path, search)
    local value = project.call('file_edit', { path = path, edits = { { search = search, replace = search:upper() } } })
    return t.ok(value).files[1]
  end

  after_each(notifications.restore)
  project.each({ 'buffer', 'file' }, function()
    vim.wait(2 * edits.QUIET) -- edits of earlier cases were reported
    vim.o.hidden = true
    notifications.collect()
  end)

  it('is reported to the user in one line, with the other files of the moment', function()
    local open, closed = project.write('pricing.py', 'a\nb\n'), project.write('test_pricing.py', 'a\n')
    vim.cmd('silent edit ' .. open)
    t.eq({ false, true }, { edit_buffer(open, 'a').written, edit_buffer(closed, 'a').written })
    notifications.wait('2 files; pricing.py is unsaved')
    edit_buffer(open, 'b')
    vim.wait(300)
    t.eq(1, #notifications.list)
    vim.cmd('silent write')
    api.nvim_buf_set_lines(0, 0, -1, false, { 'c' })
    vim.cmd('silent write')
    edit_buffer(open, 'c')
    t.wait(function() return #notifications.list == 2 end, 2000, 'the second notification')
  end)

  it('is not attributed to one agent when several made edits', function()
    local path = project.edit('a.py', 'a\n')
    vim.bo.modified = true
    for _, name in ipairs({ 'first', 'second' }) do
      local data = { path = path, bufnr = api.nvim_get_current_buf(), tool = 'file_edit', client = { name = name } }
      api.nvim_exec_autocmds('User', { pattern = 'McpToolsEdit', data = data })
    end
    notifications.wait('several agents changed a.py')
    vim.bo.modified = false
  end)

  it('is not reported when it is written at once', function()
    local path = project.edit('a.py', 'a\n')
    edit_buffer(path, 'a')
    t.ok((project.call('file_save', { path = path })))
    vim.wait(300)
    t.eq({}, notifications.list)
  end)
end)

-- every Neovim
-- What the user is told of edits that are not on the disk.

local notifications = require('notifications')
local project = require('editor_project')
local t = require('helpers')
local unsaved_edits = require('mcp-tools.ui.unsaved_edits')

local api = vim.api

local quiet = unsaved_edits.QUIET

local function edit(path, search)
  local value = project.call('buffer_edit', { path = path, edits = { { search = search, replace = search:upper() } } })
  return t.ok(value)
end

before_each(function()
  project.open()
  project.offer({ 'buffer' })
  unsaved_edits.QUIET = 100
  vim.o.hidden = true
  notifications.collect()
end)
after_each(function()
  unsaved_edits.QUIET = quiet
  notifications.restore()
  project.close()
end)

describe('an edit that stays unsaved', function()
  it('is reported to the user in one line, with the other files of the moment', function()
    local open, closed = project.write('pricing.py', 'a\nb\n'), project.write('test_pricing.py', 'a\n')
    vim.cmd('silent edit ' .. open)
    t.matches('unsaved', edit(open, 'a').note)
    t.eq(nil, edit(closed, 'a').note)
    t.wait(function()
      return #notifications.list > 0
    end, 2000, 'the notification')
    t.matches('2 files; pricing.py is unsaved', notifications.text())
    edit(open, 'b')
    vim.wait(300)
    t.eq(1, #notifications.list)
    vim.cmd('silent write')
    api.nvim_buf_set_lines(0, 0, -1, false, { 'c' })
    vim.cmd('silent write')
    edit(open, 'c')
    t.wait(function()
      return #notifications.list == 2
    end, 2000, 'the second notification')
  end)

  it('is not attributed to one agent when several made edits', function()
    local path = project.write('a.py', 'a\n')
    vim.cmd('silent edit ' .. path)
    vim.bo.modified = true
    for _, name in ipairs({ 'first', 'second' }) do
      local data = { path = path, bufnr = api.nvim_get_current_buf(), tool = 'buffer_edit', client = { name = name } }
      api.nvim_exec_autocmds('User', { pattern = 'McpToolsEdit', data = data })
    end
    t.wait(function()
      return #notifications.list > 0
    end, 2000, 'the notification')
    t.matches('several agents changed a.py', notifications.text())
    vim.bo.modified = false
  end)

  it('is not reported when it is written at once', function()
    local path = project.write('a.py', 'a\n')
    vim.cmd('silent edit ' .. path)
    edit(path, 'a')
    t.ok((project.call('buffer_write', { path = path })))
    vim.wait(300)
    t.eq({}, notifications.list)
  end)
end)

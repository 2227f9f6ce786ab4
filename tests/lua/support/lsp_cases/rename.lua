-- Renames, for any kind of server.

local project = require('lsp_project')
local t = require('helpers')

local KINDS = {
  python = { ledger = 'shop/ledger.py', user = 'shop/user%d.py', old = 'post_entry', new = 'add_entry', line = 7 },
  typescript = { ledger = 'shop/ledger.ts', user = 'shop/user%d.ts', old = 'postEntry', new = 'addEntry', line = 6 },
}

---@param path string in the project
---@return string
local function text_of(path) return table.concat(vim.fn.readfile(project.root .. '/' .. path), '\n') end

---@param text string
---@param name string
---@return integer
local function count(text, name) return select(2, text:gsub(vim.pesc(name), '')) end

return function(kind)
  local here = KINDS[kind]
  describe('symbol_rename in ' .. kind, function()
    local ledger = project.root .. '/' .. here.ledger

    before_each(function() project.share(kind) end)

    --- Asserts that one name has replaced another, and nothing else has changed.
    local function renamed(from, to)
      t.eq({ 1, 1 }, { count(text_of(here.ledger), from), count(text_of(here.ledger), to) })
      for i = 1, 4 do
        local text = text_of(here.user:format(i))
        t.eq({ i, 2 }, { i, count(text, 'ledger.' .. to .. '(') })
        t.eq({ i, 1, 0 }, { i, count(text, 'journal.' .. here.old .. '('), count(text, 'ledger.' .. from .. '(') })
      end
    end

    it('shows a diff and changes nothing with preview', function()
      local before = text_of(here.ledger)
      local args = { path = ledger, symbol = 'Ledger/' .. here.old, new_name = here.new, preview = true }
      local result = t.ok(project.call('symbol_rename', args))
      t.eq(9, result.places)
      t.matches('%+.*' .. here.new, result.diff)
      t.eq(before, text_of(here.ledger))
    end)

    it('leaves an open file unsaved, in one undo block, and the window as it was', function()
      vim.cmd('silent! %bwipeout!')
      vim.cmd.edit(ledger)
      vim.api.nvim_win_set_cursor(0, { 2, 0 })
      local bufnr, win = vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_win()
      local user = project.root .. '/' .. here.user:format(1)
      local args = { path = user, line = here.line, symbol = here.old, new_name = here.new }
      local result = t.ok(project.call('symbol_rename', args))
      t.eq({ true, nil }, { result.files[1].unsaved, result.files[2].unsaved })
      t.eq({ bufnr, win, true }, { vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_win(), vim.bo.modified })
      t.eq({ 2, 0 }, vim.api.nvim_win_get_cursor(0))
      t.eq(1, count(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n'), here.new))
      vim.cmd('silent undo')
      t.eq(0, count(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n'), here.new))
      vim.cmd('silent redo | silent write')
      renamed(here.old, here.new)
      args = { path = ledger, symbol = here.new, new_name = here.old }
      t.eq(9, (project.call('symbol_rename', args)).places)
      vim.cmd('silent write')
      t.eq(2, count(text_of(here.ledger), here.old))
    end)

    it('reports invalid requests', function()
      t.fails('not_found', nil, project.call('symbol_rename', { path = ledger, line = 1, column = 1, new_name = 'x' }))
      local value, err =
        project.call('symbol_rename', { path = ledger, symbol = 'Ledger/' .. here.old, new_name = here.old })
      t.fails('validation_error', nil, value, err)
      t.fails('validation_error', nil, project.call('symbol_rename', { path = ledger, symbol = 'Ledger/' .. here.old }))
    end)

    it('is complete as the first request to a server', function()
      for _ = 1, 3 do
        project.stop_servers()
        local args = { path = ledger, symbol = 'Ledger/' .. here.old, new_name = here.new }
        local result = t.ok(project.call('symbol_rename', args))
        t.eq({ here.old, here.new, 9, 5 }, { result.old_name, result.new_name, result.places, #result.files })
        t.eq(('no reference to %s is left'):format(here.old), result.checked)
        renamed(here.old, here.new)
        result = t.ok(project.call('symbol_rename', { path = ledger, symbol = here.new, new_name = here.old }))
        t.eq({ 9, 2 }, { result.places, count(text_of(here.ledger), here.old) })
      end
    end)
  end)
end

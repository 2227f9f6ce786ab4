-- Renames, for any kind of server.

local project = require('lsp_project')
local renames = require('lsp_cases.renames')
local t = require('helpers')

return function(kind)
  local here = renames.KINDS[kind]
  describe('lsp_rename in ' .. kind, function()
    local ledger = project.root .. '/' .. here.ledger

    before_each(function()
      project.share(kind)
    end)

    local function renamed(from, to)
      renames.check(here, from, to)
    end

    it('shows a diff and changes nothing with dry_run', function()
      local before = renames.text_of(here.ledger)
      local args = { path = ledger, symbol = 'Ledger/' .. here.old, new_name = here.new, dry_run = true }
      local result, err = project.call('lsp_rename', args)
      t.eq(nil, err)
      t.eq(9, result.places)
      t.matches('%+.*' .. here.new, result.diff)
      t.eq(before, renames.text_of(here.ledger))
    end)

    it('leaves an open file unsaved, in one undo block, and the window as it was', function()
      vim.cmd('silent! %bwipeout!')
      vim.cmd.edit(ledger)
      vim.api.nvim_win_set_cursor(0, { 2, 0 })
      local bufnr, win = vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_win()
      local user = project.root .. '/' .. here.user:format(1)
      local args = { path = user, line = here.use_line, symbol = here.old, new_name = here.new }
      local result, err = project.call('lsp_rename', args)
      t.eq(nil, err)
      t.eq(true, result.files[1].unsaved)
      t.eq(nil, result.files[2].unsaved)
      t.eq({ bufnr, win, true }, { vim.api.nvim_get_current_buf(), vim.api.nvim_get_current_win(), vim.bo.modified })
      t.eq({ 2, 0 }, vim.api.nvim_win_get_cursor(0))
      t.eq(1, renames.count(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n'), here.new))
      vim.cmd('silent undo')
      t.eq(0, renames.count(table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), '\n'), here.new))
      vim.cmd('silent redo | silent write')
      renamed(here.old, here.new)
      args = { path = ledger, symbol = here.new, new_name = here.old }
      t.eq(9, (project.call('lsp_rename', args)).places)
      vim.cmd('silent write')
      t.eq(2, renames.count(renames.text_of(here.ledger), here.old))
    end)

    it('is refused, also as a dry run, where another definition has the new name', function()
      local before = renames.text_of(here.ledger)
      for _, dry_run in ipairs({ true, false }) do
        local args = { path = ledger, symbol = 'Journal', new_name = 'Ledger', dry_run = dry_run }
        args.line = here.journal_line
        local result, err = project.call('lsp_rename', args)
        t.eq(nil, result)
        t.eq('validation_error', err.code)
        t.matches('conflict: .* Ledger %(line %d+%)', err.message)
      end
      t.eq(before, renames.text_of(here.ledger))
    end)

    it('says why it cannot', function()
      local _, err = project.call('lsp_rename', { path = ledger, line = 1, column = 1, new_name = 'x' })
      t.eq('not_found', err.code)
      _, err = project.call('lsp_rename', { path = ledger, symbol = 'Ledger/' .. here.old, new_name = here.old })
      t.eq('validation_error', err.code)
      _, err = project.call('lsp_rename', { path = ledger, symbol = 'Ledger/' .. here.old })
      t.eq('validation_error', err.code)
    end)

    it('is refused as long as the server is not ready', function()
      project.stop_servers()
      local user = project.root .. '/' .. here.user:format(1)
      local args = { path = user, line = here.use_line, symbol = here.old, new_name = here.new, wait_ms = 0 }
      local result, err = project.call('lsp_rename', args)
      t.eq(nil, result)
      t.eq('busy', err.code)
      t.matches('nothing was changed', err.message)
      t.eq(2, renames.count(renames.text_of(here.ledger), here.old))
    end)
  end)
end

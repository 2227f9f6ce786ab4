-- Code actions and formatting, for any kind of server.

local project = require('lsp_project')
local t = require('helpers')

local KINDS = {
  python = {
    file = 'shop/action.py',
    text = 'import os\n\nvalue = Ledger()\n',
    line = 3,
    symbol = 'Ledger',
    title = 'shop.ledger',
    done = 'from shop.ledger import Ledger',
  },
  typescript = {
    file = 'shop/action.ts',
    text = 'export const   value = new Ledger( );\n',
    line = 1,
    symbol = 'Ledger',
    title = '[Ii]mport.*ledger',
    done = 'import { Ledger } from "./ledger";',
    formats = 'export const value = new Ledger();',
  },
}

return function(kind)
  local here = KINDS[kind]

  describe('code actions of a server of ' .. kind, function()
    local path = project.root .. '/' .. here.file

    before_each(function() project.share(kind) end)

    local function text() return table.concat(vim.fn.readfile(path), '\n') .. '\n' end

    local function ok(name, args) return t.ok(project.call(name, args)) end

    it('are listed, previewed and applied by id', function()
      project.write(here.file, here.text)
      t.ok(#ok('diagnostics_list', { path = path }).new >= 1)
      local list = ok('code_actions', { path = path, line = here.line, symbol = here.symbol })
      local function is_wanted(each) return each.title:find(here.title) ~= nil end
      local action = t.ok(vim.iter(list.actions):find(is_wanted), vim.inspect(list))
      local shown = ok('code_actions', { apply = action.id, preview = true })
      t.matches(vim.pesc('+' .. here.done), shown.diff)
      t.eq(here.text, text())
      local done = ok('code_actions', { apply = action.id })
      t.eq({ action.title, here.file }, { done.title, done.files[1].path })
      t.matches(vim.pesc(here.done), text())
      t.fails('stale', nil, project.call('code_actions', { apply = action.id }))
      t.fails('not_found', nil, project.call('code_actions', { apply = 'a0' }))
    end)

    it('of an unknown kind are an empty list', function()
      local result = ok('code_actions', { path = path, line = 1, column = 1, kinds = { 'nothing.like.this' } })
      t.eq({}, result.actions)
    end)

    if here.formats then
      it('code_format writes a closed file, with a preview', function()
        project.write(here.file, here.text)
        local shown = ok('code_format', { path = path, preview = true })
        t.matches(vim.pesc('+' .. here.formats), shown.diff)
        t.eq(here.text, text())
        local result = ok('code_format', { path = path })
        t.eq({ true, nil, here.formats .. '\n' }, { result.changed, result.unsaved, (text()) })
        t.eq(false, ok('code_format', { path = path }).changed)
      end)
    else
      it(
        'code_format reports that the server cannot format',
        function()
          t.fails('not_found', 'cannot answer textDocument/formatting', project.call('code_format', { path = path }))
        end
      )
    end

    it('can be cleaned up', function()
      vim.cmd('silent! bwipeout! ' .. path)
      vim.fn.delete(path)
    end)
  end)
end

-- Renames as the first question of all, for any kind of server.
-- Receives: the kind. Sends: tests.

local project = require('lsp_project')
local t = require('helpers')

local KINDS = {
  python = { ledger = 'shop/ledger.py', user = 'shop/user%d.py', old = 'post_entry', new = 'add_entry', use_line = 7 },
  typescript = {
    ledger = 'shop/ledger.ts',
    user = 'shop/user%d.ts',
    old = 'postEntry',
    new = 'addEntry',
    use_line = 6,
  },
}

local function text_of(path)
  return table.concat(vim.fn.readfile(project.root .. '/' .. path), '\n')
end

local function count(text, name)
  return select(2, text:gsub(vim.pesc(name), ''))
end

return function(kind)
  local here = KINDS[kind]
  describe('lsp_rename in ' .. kind, function()
    local ledger = project.root .. '/' .. here.ledger

    before_each(function()
      project.share(kind)
    end)

    local function renamed(from, to)
      t.eq({ 1, 1 }, { count(text_of(here.ledger), from), count(text_of(here.ledger), to) })
      for i = 1, 4 do
        local text = text_of(here.user:format(i))
        t.eq({ i, 2 }, { i, count(text, 'ledger.' .. to .. '(') })
        t.eq({ i, 1, 0 }, { i, count(text, 'journal.' .. here.old .. '('), count(text, 'ledger.' .. from .. '(') })
      end
    end

    for try = 1, 3 do
      it('is right as the first question, ' .. try, function()
        local result, err = project.call('lsp_rename', { path = ledger, symbol = here.old, new_name = here.new })
        t.eq(nil, err)
        t.eq({ here.old, here.new, 9, 5 }, { result.old_name, result.new_name, result.places, #result.files })
        t.eq(('9 references to %s, none to %s is left'):format(here.new, here.old), result.checked)
        renamed(here.old, here.new)
        result, err = project.call('lsp_rename', { path = ledger, symbol = here.new, new_name = here.old })
        t.eq(nil, err)
        t.eq(9, result.places)
        t.eq(2, count(text_of(here.ledger), here.old))
        project.stop_servers()
      end)
    end
  end)
end

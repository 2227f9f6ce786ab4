-- Renames as the first question of all, for any kind of server.

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

    for try = 1, 3 do
      it('is right as the first question, ' .. try, function()
        local result, err =
          project.call('lsp_rename', { path = ledger, symbol = 'Ledger/' .. here.old, new_name = here.new })
        t.eq(nil, err)
        t.eq({ here.old, here.new, 9, 5 }, { result.old_name, result.new_name, result.places, #result.files })
        t.eq(('no reference to %s is left'):format(here.old), result.checked)
        renamed(here.old, here.new)
        result, err = project.call('lsp_rename', { path = ledger, symbol = here.new, new_name = here.old })
        t.eq(nil, err)
        t.eq(9, result.places)
        t.eq(2, renames.count(renames.text_of(here.ledger), here.old))
        project.stop_servers()
      end)
    end
  end)
end

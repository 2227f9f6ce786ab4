-- every Neovim
-- A call that is cancelled while it loads a file leaves no buffer behind, at whatever moment.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local project = require('editor_project')
local t = require('helpers')

local CALLS = {
  buffer_edit = { path = 'a.lua', edits = { { search = 'one', replace = 'two' } } },
  symbol_read = { path = 'a.lua', symbol = 'f' },
  buffer_diff = { path = 'a.lua' },
  file_replace = { query = 'one', replacement = 'two', dry_run = false, expected_count = 1 },
  editor_open = { path = 'a.lua' },
}

before_each(function()
  project.open()
  project.write('a.lua', 'local function f()\n  return "one"\nend\nreturn f\n')
  config.setup({
    tools = 'all',
    approval = {
      rule = function()
        return 'allow'
      end,
    },
  })
  core.get()
end)

after_each(project.close)

--- Lets everything that was begun come to its end.
local function settle()
  local turns = 0
  t.wait(function()
    turns = turns + 1
    return turns > 20
  end, 5000, 'turns')
end

describe('a file that is loaded for a call', function()
  it('is not loaded, or goes again, when the call is cancelled in any turn of the editor', function()
    local before = #vim.api.nvim_list_bufs()
    for name, args in pairs(CALLS) do
      for turns = 0, 6 do
        local call = core.get().executor:execute(name, vim.deepcopy(args), { host = 'test' })
        local passed = 0
        t.wait(function()
          passed = passed + 1
          return passed > turns or call:ended()
        end, 5000, 'turns')
        if call:cancel('test') then
          settle()
          t.eq({ name, turns, before }, { name, turns, #vim.api.nvim_list_bufs() })
          t.eq('local function f()\n  return "one"\nend\nreturn f\n', table.concat(vim.fn.readfile('a.lua', 'b'), '\n'))
        else
          vim.cmd('silent! %bwipeout!')
          project.write('a.lua', 'local function f()\n  return "one"\nend\nreturn f\n')
          before = #vim.api.nvim_list_bufs()
        end
      end
    end
  end)
end)

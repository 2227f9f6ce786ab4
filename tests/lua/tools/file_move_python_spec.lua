-- slow, every Neovim
-- What a move of a Python module across packages leaves of its imports.

local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local project = require('lsp_project')
local t = require('helpers')

local function disk(name)
  return table.concat(vim.fn.readfile(project.root .. '/' .. name), '\n')
end

before_each(function()
  project.open('python')
  for _, package in ipairs({ 'kit', 'kit/util', 'kit/core' }) do
    project.write(package .. '/__init__.py', '')
  end
  config.setup({
    tools = { 'file' },
    approval = {
      rule = function()
        return 'allow'
      end,
    },
  })
  core.get()
end)
after_each(project.close)

describe('a Python module moved to another package', function()
  it('is imported from there, and imports that do not resolve are named', function()
    project.write('kit/util/parse.py', 'from . import other\n\n\ndef amount(x: str) -> int:\n    return other.ONE\n')
    project.write('kit/util/other.py', 'ONE = 1\n')
    project.write('kit/util/near.py', 'from .parse import amount\n\nprint(amount("1"))\n')
    project.write('kit/a.py', 'from kit.util.parse import amount\n\nprint(amount("1"))\n')
    project.write('kit/b.py', 'import kit.util.parse\n\nprint(kit.util.parse.amount("1"))\n')
    project.write('kit/c.py', 'from kit.util import parse\n\nprint(parse.amount("1"))\n')
    project.write('kit/d.py', 'from kit.util import other, parse\n\nprint(parse.amount("1"), other.ONE)\n')
    local call = project.start('file_move', { path = 'kit/util/parse.py', new_path = 'kit/core/parsing.py' })
    t.wait(function()
      return call:ended()
    end, 45000, 'file_move')
    t.eq(nil, call.outcome.error)
    t.eq('from kit.core.parsing import amount\n\nprint(amount("1"))', disk('kit/a.py'))
    t.eq('import kit.core.parsing\n\nprint(kit.core.parsing.amount("1"))', disk('kit/b.py'))
    t.eq('from kit.core import parsing\n\nprint(parsing.amount("1"))', disk('kit/c.py'))
    t.eq('from ..core.parsing import amount\n\nprint(amount("1"))', disk('kit/util/near.py'))
    local text = call.outcome.payload.text
    t.matches('kit/core/parsing.py:1:.*other', text)
    t.matches('kit/d.py:1:.*parsing', text)
    t.ok(not text:find('kit/[abc].py:%d+:'), text)
  end)
end)

-- every Neovim
-- Trees of symbols, made in pieces.

local nodes = require('mcp-tools.editor.symbol.nodes')
local t = require('helpers')

describe('symbols of a file', function()
  it('in any order come in that of the text, with pauses', function()
    local list, pauses = {}, 0
    for i = 1, 1000 do
      local line = (i * 7919) % 1009
      list[i] = { name = 'f' .. line, kind = 'function', range = { line, 0, line, 5 }, children = {} }
    end
    local expected = vim.tbl_map(function(node)
      return node.range[1]
    end, list)
    table.sort(expected)
    local found = nodes.prune(list, function()
      pauses = pauses + 1
    end)
    t.eq(
      expected,
      vim.tbl_map(function(node)
        return node.range[1]
      end, found)
    )
    t.eq(true, pauses >= 1000)
  end)

  it('stand in what is around them', function()
    local function node(name, from, to)
      return { name = name, kind = 'class', range = { from, 0, to, 0 }, children = {} }
    end
    local top = nodes.nest({ node('inner', 2, 3), node('other', 9, 9), node('outer', 1, 5) })
    t.eq({ 'outer', 'other' }, { top[1].name, top[2].name })
    t.eq('inner', top[1].children[1].name)
  end)
end)

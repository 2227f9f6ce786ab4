-- slow
-- Holds for every bundled tool: a number that nobody means, however large, is an answer or an error. The editor is not
-- held by it, and nothing throws.

local editor = require('editor_project')
local every = require('every_tool')

local VALUES = { 0, -1, 2 ^ 31, 2 ^ 53 - 1, 2 ^ 53, 1e308, -1e308 }

---@param schema table
---@return boolean
local function is_number(schema)
  return every.takes(schema, 'integer', 'number')
end

describe('every tool', function()
  local limit, world = every.LIMIT, nil

  before_each(function()
    every.LIMIT = 300
    editor.open()
    local lines = {}
    for i = 1, 120 do
      lines[i] = ('def sample_%d(): return %d'):format(i, i)
    end
    local path = editor.write('sample.py', table.concat(lines, '\n') .. '\n')
    vim.cmd.edit(path)
    world = { path = 'sample.py', uri = vim.uri_from_fname(path), glob = '*.py', word = 'sample_3', other = 'other.py' }
    world.bufnr = vim.api.nvim_get_current_buf()
    every.offer()
  end)

  after_each(function()
    every.LIMIT = limit
    editor.close()
  end)

  it('bears numbers that nobody means', function()
    local trial = every.trial()
    for _, tool in ipairs(every.tools()) do
      for _, value in ipairs(VALUES) do
        for place, args in pairs(every.with_value(tool.input_schema, world, value, is_number)) do
          trial:call(('%s.%s = %g'):format(tool.name, place, value), tool.name, args)
        end
      end
    end
    trial:ends_well()
  end)
end)

-- Holds for every bundled tool: a number that nobody means, however large, is an answer or an error. The editor is not
-- held by it, and nothing throws.

local editor = require('editor_project')
local every = require('every_tool')
local t = require('helpers')

local VALUES = { 0, -1, 2 ^ 31, 2 ^ 53 - 1, 2 ^ 53, 1e308, -1e308 }
--- Of our time, in one go; s. A call as it is meant takes less than a tenth of that.
local LONGEST = 0.25

---@param schema table
---@return boolean
local function is_number(schema)
  local kinds = type(schema.type) == 'table' and schema.type or { schema.type }
  return vim.list_contains(kinds, 'integer') or vim.list_contains(kinds, 'number')
end

--- Arguments with a number put into every place that takes one, of the first entries of lists as well.
---@param schema table
---@param world table
---@param value number
---@return table<string, table> by the name of the place
local function with_number(schema, world, value)
  local list = {}
  for name, property in pairs(schema.properties or {}) do
    local items = type(property.items) == 'table' and property.items or nil
    if is_number(property) then
      local args = every.arguments(schema, world, { path = true })
      args[name] = value
      list[name] = args
    elseif items and is_number(items) then
      local args = every.arguments(schema, world, { path = true })
      args[name] = { value }
      list[name] = args
    elseif items and items.properties then
      for inner, args_of_entry in pairs(with_number(items, world, value)) do
        local args = every.arguments(schema, world, { path = true })
        args[name] = { args_of_entry }
        list[('%s[0].%s'):format(name, inner)] = args
      end
    end
  end
  return list
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
    local wrong, tried, last, at = {}, 0, os.clock(), ''
    local timer = assert(vim.uv.new_timer())
    timer:start(0, 1, function()
      local now = os.clock() -- of our time, whoever else is busy
      if now - last > LONGEST then
        table.insert(wrong, ('%s held the editor for %d ms'):format(at, (now - last) * 1e3))
      end
      last = now
    end)
    for _, tool in ipairs(every.tools()) do
      for _, value in ipairs(VALUES) do
        for place, args in pairs(with_number(tool.input_schema, world, value)) do
          tried = tried + 1
          at = ('%s.%s = %g'):format(tool.name, place, value)
          local done = every.call(tool.name, args)
          local needs_python = tool.name:find('python') -- an environment that these specs have not
          if every.is_broken(done) and not needs_python then
            table.insert(wrong, ('%s: %s'):format(at, done.text))
          end
        end
      end
    end
    timer:close()
    t.eq('', table.concat(wrong, '\n'))
    t.ok(tried > 300, tried)
  end)
end)

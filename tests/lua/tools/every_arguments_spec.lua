-- Holds for every bundled tool: what does not fit its schema is a `validation_error`. Where nothing is to be had the
-- answer is an error that is told, or empty. It never throws.

local editor = require('editor_project')
local every = require('every_tool')
local t = require('helpers')

local NONE =
  { path = 'nowhere/none.txt', uri = 'file:///nowhere/none.txt', glob = '*.none', word = 'nothing', bufnr = 999 }
NONE.other = 'nowhere/other.txt'

--- Values, each of a type of its own.
local VALUES = {
  string = 'x',
  array = { 'x' },
  boolean = true,
  object = { x = 1 },
  number = 1.5,
}

---@param property table
---@return any value of a type that the property does not allow; nil when it allows all
local function misfit(property)
  local kinds = type(property.type) == 'table' and property.type or { property.type }
  if #kinds == 0 then
    return nil
  end
  for _, kind in ipairs({ 'object', 'boolean', 'string', 'number', 'array' }) do
    if not vim.list_contains(kinds, kind) then
      return VALUES[kind]
    end
  end
end

before_each(function()
  editor.open()
  every.offer()
end)

after_each(editor.close)

describe('every tool', function()
  it('refuses arguments of a wrong type by name, before anything runs', function()
    local wrong, tried = {}, 0
    for _, tool in ipairs(every.tools()) do
      for name, property in pairs(tool.input_schema.properties or {}) do
        local value = misfit(property)
        if value ~= nil then
          tried = tried + 1
          local args = every.arguments(tool.input_schema, NONE)
          args[name] = value
          local err = every.call(tool.name, args).outcome.error or {}
          local field = err.errors and err.errors[1].field or ''
          if err.code ~= 'validation_error' or not vim.startswith(field, name) then
            table.insert(wrong, ('%s.%s: %s'):format(tool.name, name, vim.inspect(err)))
          end
        end
      end
      if #(tool.input_schema.required or {}) > 0 then
        local err = every.call(tool.name, vim.empty_dict()).outcome.error or {}
        if err.code ~= 'validation_error' then
          table.insert(wrong, ('%s without arguments: %s'):format(tool.name, vim.inspect(err)))
        end
      end
    end
    t.eq({}, wrong)
    t.ok(tried > 10)
  end)

  it('tells what is not there, and never throws', function()
    local broken = {}
    for _, tool in ipairs(every.tools()) do
      local waiting = {}
      for _, args in ipairs(every.ways(tool.input_schema, NONE)) do
        table.insert(waiting, every.begin('tool', tool.name, args))
      end
      for _, finish in ipairs(waiting) do
        local done = finish()
        if every.is_broken(done) then
          table.insert(broken, ('%s %s: %s'):format(done.name, vim.inspect(done.args), done.text))
        end
      end
    end
    t.eq({}, broken)
  end)
end)

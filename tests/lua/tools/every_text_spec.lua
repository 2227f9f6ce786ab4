-- Holds for every bundled tool: a text that nobody means, however long or odd, is an answer or a short error. The
-- editor is not held by it, and nothing throws.

local editor = require('editor_project')
local every = require('every_tool')
local t = require('helpers')

local VALUES = {
  '',
  (' '):rep(20000),
  ('a'):rep(100000),
  ('a/'):rep(50000),
  ('\n'):rep(10000),
  ('%'):rep(300),
  'a\0b',
  '\255\254',
  '-rf',
  '{{{{[((*',
}
local FILES = {
  (' '):rep(100000) .. '\n',
  ('sample_3 '):rep(20000) .. '\n',
  ('('):rep(5000) .. ('def sample_3():'):rep(100) .. '\n' .. (')'):rep(5000) .. '\n',
  ('\t'):rep(2000) .. 'def sample_3():\n' .. ('\t \n'):rep(5000),
}
--- Of our time, in one go; s. A call as it is meant takes less than a tenth of that.
local LONGEST = 0.25
--- Bytes of an error that a model has to read.
local MAX_ERROR = 4000
--- What they are given is what they run, or show to the person.
local LEFT_OUT =
  { editor_command = true, editor_eval_lua = true, shell_run = true, shell_jobs = true, interview = true }

---@param schema table
---@return boolean
local function is_text(schema)
  local kinds = type(schema.type) == 'table' and schema.type or { schema.type }
  return vim.list_contains(kinds, 'string') and not schema.enum
end

--- Arguments with a text put into every place that takes one, of the first entries of lists as well.
---@param schema table
---@param world table
---@param value string
---@return table<string, table> by the name of the place
local function with_text(schema, world, value)
  local list = {}
  for name, property in pairs(schema.properties or {}) do
    local items = type(property.items) == 'table' and property.items or nil
    local given
    if is_text(property) then
      given = { [name] = value }
    elseif items and is_text(items) then
      given = { [name] = { value } }
    elseif items and items.properties then
      for inner, entry in pairs(with_text(items, world, value)) do
        list[('%s[0].%s'):format(name, inner)] =
          vim.tbl_extend('force', every.arguments(schema, world, { path = true }), { [name] = { entry } })
      end
    end
    if given then
      local args = every.arguments(schema, world, { path = true })
      list[name] = vim.tbl_extend('force', args, given)
    end
  end
  return list
end

describe('every tool', function()
  local limit, world = every.LIMIT, nil

  before_each(function()
    every.LIMIT = 300
    editor.open()
    local path = editor.write('sample.py', 'def sample_3():\n    return 3\n')
    vim.cmd.edit(path)
    world = { path = 'sample.py', uri = vim.uri_from_fname(path), glob = '*.py', word = 'sample_3', other = 'other.py' }
    world.bufnr = vim.api.nvim_get_current_buf()
    every.offer()
  end)

  after_each(function()
    every.LIMIT = limit
    editor.close()
  end)

  it('bears texts that nobody means', function()
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
      for number, value in ipairs(LEFT_OUT[tool.name] and {} or VALUES) do
        for place, args in pairs(with_text(tool.input_schema, world, value)) do
          tried = tried + 1
          at = ('%s.%s = value %d'):format(tool.name, place, number)
          last = os.clock() -- calls that are refused at once follow each other without a turn of the loop
          local done = every.call(tool.name, args)
          local err = done.outcome.error
          local needs_python = tool.name:find('python') -- an environment that these specs have not
          if every.is_broken(done) and not needs_python then
            table.insert(wrong, ('%s: %s'):format(at, done.text:sub(1, 300)))
          elseif err and #err.message > MAX_ERROR then
            table.insert(wrong, ('%s: an error of %d bytes: %s'):format(at, #err.message, err.message:sub(1, 100)))
          end
        end
      end
    end
    timer:close()
    t.eq('', table.concat(wrong, '\n'))
    t.ok(tried > 300, tried)
  end)

  it('bears files that nobody means', function()
    local wrong, tried, last, at = {}, 0, os.clock(), ''
    local timer = assert(vim.uv.new_timer())
    timer:start(0, 1, function()
      local now = os.clock()
      if now - last > LONGEST then
        table.insert(wrong, ('%s held the editor for %d ms'):format(at, (now - last) * 1e3))
      end
      last = now
    end)
    for number, text in ipairs(FILES) do
      vim.cmd('%bwipeout!')
      vim.cmd.edit(editor.write('sample.py', text))
      world.bufnr = vim.api.nvim_get_current_buf()
      for _, tool in ipairs(every.tools()) do
        if tool.annotations and tool.annotations.read_only and not LEFT_OUT[tool.name] then
          for _, args in ipairs(every.ways(tool.input_schema, world)) do
            tried = tried + 1
            at = ('%s of file %d'):format(tool.name, number)
            last = os.clock()
            local done = every.call(tool.name, args)
            if every.is_broken(done) and not tool.name:find('python') then
              table.insert(wrong, ('%s: %s'):format(at, done.text:sub(1, 300)))
            end
          end
        end
      end
    end
    timer:close()
    t.eq('', table.concat(wrong, '\n'))
    t.ok(tried > 300, tried)
  end)
end)

-- every Neovim
local form = require('mcp-tools.ui.form')
local t = require('helpers')

-- `vim.ui.input` and `vim.ui.select` are replaced by a user with prepared answers.
local input, select = vim.ui.input, vim.ui.select
local prompts ---@type string[]

local function person(answers)
  prompts = {}
  local function next_answer(prompt)
    table.insert(prompts, prompt)
    return table.remove(answers, 1)
  end
  vim.ui.input = function(opts, done)
    local answer = next_answer(opts.prompt)
    done(answer == '<default>' and opts.default or answer)
  end
  vim.ui.select = function(items, opts, done)
    local answer = next_answer(opts.prompt)
    for i, item in ipairs(items) do
      if opts.format_item and opts.format_item(item) == answer or item == answer then
        return done(item, i)
      end
    end
    done(nil)
  end
end

local function asked(properties, answers, required)
  local result
  person(answers)
  local schema = { type = 'object', properties = properties, required = required }
  form.ask({ message = 'Why', requestedSchema = schema }, function(answer) result = answer end, t.returns(true))
  return t.wait(function() return result end)
end

describe('a form', function()
  it('leaves at most one key watcher behind if pickers never call back', function()
    local on_key, watched = vim.on_key, {}
    vim.on_key = function(fn, namespace)
      namespace = on_key(fn, namespace)
      watched[namespace] = fn ~= nil or nil
      return namespace
    end
    vim.ui.select = function() end
    for _ = 1, 3 do
      local schema = { type = 'object', properties = { a = { enum = { 'x' } } } }
      form.ask({ message = 'Why', requestedSchema = schema }, function() end, t.returns(true))
    end
    vim.wait(50)
    vim.on_key = on_key
    t.eq(1, vim.tbl_count(watched))
  end)

  after_each(function()
    vim.ui.input, vim.ui.select = input, select
  end)

  it('accepts values of each kind of field', function()
    local titled = { oneOf = { { const = 1, title = 'low' }, { const = 9, title = 'high' } } }
    local several = { type = 'array', items = { type = 'string', enum = { 'x', 'y', 'z' } } }
    local got = asked({
      a = { type = 'number', default = 2.5 },
      b = { type = 'boolean' },
      c = titled,
      d = several,
      e = { type = 'string' },
    }, { '<default>', 'no', 'high', 'x, z', '' })
    t.eq({ action = 'accept', content = { a = 2.5, b = false, c = 9, d = { 'x', 'z' } } }, got)
    t.eq('Why: a, optional: ', prompts[1])
    t.matches('any of x, y, z', prompts[4])
  end)

  it('asks again for invalid values, required fields first', function()
    local properties = { a = { type = 'string' }, z = { type = 'integer', maximum = 3 } }
    local got = asked(properties, { '', 'many', '7', '3', 'x' }, { 'z' })
    t.eq({ action = 'accept', content = { z = 3, a = 'x' } }, got)
    t.matches('^Why: z: .*is required.*must be.*at most 3.*Why: a,', table.concat(prompts, ''))
  end)

  it('without fields is accepted, declined or cancelled', function()
    t.eq({ action = 'accept', content = vim.empty_dict() }, asked({}, { 'Accept' }))
    t.eq({ { action = 'decline' }, { action = 'cancel' } }, { asked({}, { 'Decline' }), (asked({}, {})) })
  end)

  it('is cancelled by leaving a field', function()
    t.eq({ action = 'cancel' }, asked({ a = { type = 'string' } }, {}))
    t.eq({ action = 'cancel' }, asked({ a = { type = 'boolean' } }, {}))
  end)
end)

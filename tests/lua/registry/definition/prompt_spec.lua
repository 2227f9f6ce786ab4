local prompt = require('mcp-tools.registry.definition.prompt')
local t = require('helpers')

local function get() end

local function names(def)
  return vim.tbl_map(function(arg)
    return arg.name
  end, def.args)
end

describe('a prompt definition', function()
  it('is published in the names of MCP', function()
    local def = assert(prompt.normalise({
      name = 'p',
      title = 'P',
      description = 'why',
      args = { topic = { description = 'what', required = true, complete = get, title = 'T' } },
      get = get,
    }))
    t.eq({
      name = 'p',
      title = 'P',
      description = 'why',
      arguments = { { name = 'topic', title = 'T', description = 'what', required = true } },
    }, prompt.published(def))
    t.eq({}, def.lint)
    t.eq(
      { name = 'q', description = 'x' },
      prompt.published(assert(prompt.normalise({
        name = 'q',
        description = 'x',
        run = get,
      })))
    )
  end)

  it('keeps the order of a list, and makes one of a map', function()
    local base = { name = 'p', description = 'x', get = get }
    local listed = vim.tbl_extend('force', base, { args = { { name = 'z' }, { name = 'a', required = true } } })
    t.eq({ 'z', 'a' }, names(assert(prompt.normalise(listed))))
    local mapped = vim.tbl_extend('force', base, { args = { b = {}, z = { required = true }, a = {} } })
    t.eq({ 'z', 'a', 'b' }, names(assert(prompt.normalise(mapped))))
  end)

  it('is refused with every fault at once', function()
    local _, fault = prompt.normalise({
      name = 'p',
      args = { a = { required = 'yes', complete = 1, description = 5 }, b = 1 },
      timeout = 'x',
    })
    for _, line in ipairs({
      "prompt 'p': description: is required",
      "prompt 'p': args.a.required: must be a boolean",
      "prompt 'p': args.a.complete: must be a function",
      "prompt 'p': args.a.description: must be a string",
      "prompt 'p': args.b: must be a table",
      "prompt 'p': timeout: must be a number",
      "prompt 'p': get: is required (or run)",
    }) do
      t.matches(vim.pesc(line), fault)
    end
    _, fault =
      prompt.normalise({ name = 'p', description = 'x', get = get, args = { {}, { name = 'a' }, { name = 'a' } } })
    t.matches('args%[1%]%.name: must be a non%-empty string', fault)
    t.matches('args%[3%]%.name: is a duplicate', fault)
  end)

  it('is linted for names that clients cannot make a command of', function()
    local def =
      assert(prompt.normalise({ name = 'a b', description = 'x', get = get, args = { q = { requird = true } } }))
    t.matches('args.q.requird: did you mean required', def.typos[1])
    t.matches('name: has characters', def.lint[1])
  end)
end)

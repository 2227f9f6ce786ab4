-- The lists that clients get: one definition that cannot be written takes nothing from the others.

local core = require('mcp-tools.core')
local log = require('mcp-tools.log')
local mcp_tools = require('mcp-tools')
local t = require('helpers')
local wire = require('mcp-tools.rpc')

local function noop() end

--- What clients get of a kind, by name.
local function listed(kind)
  local names = {}
  core.get() -- so that nothing is left to load
  for _, entry in ipairs(vim.json.decode(wire.list(kind).json)) do
    names[entry.name] = entry
  end
  return names
end

--- What health says of a name.
local function failures_of(name)
  local found
  mcp_tools.refresh(nil, function(failures)
    found = failures
  end)
  t.wait(function()
    return found
  end)
  return vim.tbl_filter(function(failure)
    return failure.source == name
  end, found)
end

local function nested(levels)
  local schema = { type = 'string' }
  for _ = 1, levels do
    schema = { type = 'object', properties = { inner = schema } }
  end
  return schema
end

describe('a schema that is nested too deep', function()
  it('is refused where it is registered, with its depth', function()
    mcp_tools.register({ name = 'fine', description = 'd', execute = noop, input_schema = nested(45) })
    local ok, err = pcall(mcp_tools.register, {
      name = 'deep',
      description = 'd',
      execute = noop,
      input_schema = nested(60),
    })
    t.eq(false, ok)
    t.matches("tool 'deep': input_schema: is nested more than 96 levels deep", tostring(err))
    t.ok(listed('tools').nvim_fine)
    t.eq(nil, listed('tools').nvim_deep)
  end)
end)

describe('a definition that cannot be written', function()
  local kinds = {
    tools = {
      add = function(name, callers)
        mcp_tools.register({ name = name, description = 'd', execute = noop, callers = callers })
      end,
      prefix = 'nvim_',
      label = 'bad_tools',
    },
    resources = {
      add = function(name, callers)
        mcp_tools.register_resource({ uri = 'x://' .. name, name = name, read = noop, callers = callers })
      end,
      label = "resource 'x://bad_resources'",
    },
    templates = {
      add = function(name, callers)
        local uri = ('x://%s/{n}'):format(name)
        mcp_tools.register_resource({ uri_template = uri, name = name, read = noop, callers = callers })
      end,
      label = "resource 'x://bad_templates/{n}'",
    },
    prompts = {
      add = function(name, callers)
        mcp_tools.register_prompt({ name = name, description = 'd', get = noop, callers = callers })
      end,
      label = "prompt 'bad_prompts'",
    },
  }
  for kind, case in pairs(kinds) do
    it('is left out of the ' .. kind .. ', logged, and reported', function()
      local callers = { mcp = { meta = { a = 1 } } }
      case.add('good_' .. kind, nil)
      case.add('bad_' .. kind, callers)
      callers.mcp.meta.a = noop -- who registered it still holds this table
      local names, prefix = listed(kind), case.prefix or ''
      t.ok(names[prefix .. 'good_' .. kind], 'the good one is missing')
      t.eq(nil, names[prefix .. 'bad_' .. kind])
      t.matches('not listed: definition%._meta%.a: a function', failures_of(case.label)[1].error)
      t.matches('left out of the list', table.concat(log.lines(5), '\n'))
    end)
  end

  it('is forgotten with it', function()
    mcp_tools.unregister('bad_tools')
    t.eq({}, failures_of('bad_tools'))
  end)
end)

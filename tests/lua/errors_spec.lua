-- Error values: one list of codes, distinguishable from any other value.

local errors = require('mcp-tools.errors')
local t = require('helpers')

describe('errors', function()
  it('have a code, a message and faults', function()
    t.eq({ code = 'stale', message = 'changed' }, errors.new('stale', 'changed'))
    local faults = { { field = 'n', message = 'is required' } }
    t.eq(faults, errors.new(errors.codes.validation_error, 'bad', faults).errors)
  end)

  it('refuse a code that is not in the list', function()
    t.raises('unknown error code: oops', function() errors.new('oops', 'x') end)
  end)

  it('are distinguished from other values', function()
    t.ok(errors.is(errors.new('busy', 'later')))
    for _, value in ipairs({ 'busy', 5, {}, { code = 'busy' }, { code = 'oops', message = 'x' }, vim.NIL }) do
      t.ok(not errors.is(value))
    end
  end)

  it('are sorted by what the client can do about them', function()
    local sorts = { validation_error = 'validation', unknown_tool = 'validation' }
    sorts.tool_error, sorts.not_found, sorts.stale = 'domain', 'domain', 'domain'
    for code in pairs(errors.codes) do
      local err = errors.new(code, 'x')
      t.eq({ code, sorts[code] == 'validation' }, { code, errors.is_validation_failure(err) })
      t.eq({ code, sorts[code] == 'domain' }, { code, errors.is_domain_failure(err) })
    end
    for _, value in ipairs({ 'tool_error', 5, {}, { code = 'tool_error' } }) do
      t.ok(not errors.is_validation_failure(value) and not errors.is_domain_failure(value))
    end
    t.ok(not errors.is_domain_failure(nil))
  end)
end)

-- The official test suite for draft 2020-12 (tests/data/json-schema-test-suite/SOURCE.md), without the files about
-- keywords that are not supported.

local schema = require('mcp-tools.schema')
local t = require('helpers')

local DATA = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/../../data/json-schema-test-suite/draft2020-12/'

local function read(path)
  local file = assert(io.open(path))
  local text = file:read('*a')
  file:close()
  return vim.json.decode(text)
end

local counts = { checked = 0, refused = 0, unchecked = 0 }

--- Whether a schema is refused for what is not supported, and for nothing else.
local function is_refused(faults)
  for _, fault in ipairs(faults) do
    t.matches('not supported', fault.message)
  end
  return #faults > 0
end

local function check_group(group)
  local validator, faults = schema.compile(group.schema)
  if not validator then
    counts.refused = counts.refused + 1
    return t.ok(is_refused(faults))
  end
  local unchecked = #validator.unchecked > 0
  for _, test in ipairs(group.tests) do
    local ok, errors = validator:check(test.data, { strict = true })
    if ok ~= test.valid and not (ok and unchecked) then
      error(('%s: expected %s, got %s %s'):format(test.description, test.valid, ok, vim.inspect(errors)))
    end
    t.eq(ok, errors == nil)
    t.ok(ok or #errors > 0, test.description .. ': refused without a reason')
    validator:check(test.data)
  end
  local key = unchecked and 'unchecked' or 'checked'
  counts[key] = counts[key] + 1
end

describe('JSON-Schema-Test-Suite', function()
  for _, folder in ipairs({ '', 'optional/' }) do
    for name, kind in vim.fs.dir(DATA .. folder) do
      for _, group in ipairs(kind == 'file' and read(DATA .. folder .. name) or {}) do
        it(folder .. name .. ': ' .. group.description, function()
          check_group(group)
        end)
      end
    end
  end

  it('is checked but for a few groups', function()
    t.ok(counts.checked > 250 and counts.refused < 20 and counts.unchecked < 15, vim.inspect(counts))
  end)
end)

-- The official test suite for draft 2020-12 (tests/data/json-schema-test-suite/SOURCE.md) against the schema check.

local schema = require('mcp-tools.schema')
local t = require('helpers')

local DATA = vim.fs.dirname(debug.getinfo(1, 'S').source:sub(2)) .. '/../../data/json-schema-test-suite/draft2020-12/'

-- Files about what the check refuses: each of their groups is refused by `compile`, or passes.
local REFUSED_FILES = {
  ['dynamicRef.json'] = '$dynamicRef and remote references',
  ['unevaluatedItems.json'] = 'unevaluatedItems',
  ['unevaluatedProperties.json'] = 'unevaluatedProperties',
  ['refRemote.json'] = 'remote references',
}

-- Single groups that use what the check refuses. They must be refused, not misjudged.
local REFUSED = {
  ['defs.json: validate definition against metaschema'] = 'remote reference (the metaschema)',
  ['ref.json: remote ref, containing refs itself'] = 'remote reference (the metaschema)',
  ['ref.json: ref creates new scope when adjacent to keywords'] = 'unevaluatedProperties',
  ["not.json: collect annotations inside a 'not', even if collection is disabled"] = 'unevaluatedProperties',
}

-- Groups whose rule the check does not have.
local LEFT_OUT = {
  ['vocabulary.json: schema that uses custom metaschema with with no validation vocabulary'] = '$vocabulary: '
    .. 'metaschemas are never fetched, so all keywords count',
  ['optional/dependencies-compatibility.json'] = '`dependencies` left the standard with draft 2019-09',
}

-- Groups with a pattern that does not translate: it must be named as unchecked, and lets every text pass.
local UNCHECKED = {
  ['optional/ecmascript-regex.json: patterns always use unicode semantics with pattern'] = '\\p',
  ['optional/ecmascript-regex.json: pattern with non-ASCII digits'] = '\\p',
  ['optional/ecmascript-regex.json: patterns always use unicode semantics with patternProperties'] = '\\p',
  ['optional/ecmascript-regex.json: patternProperties with non-ASCII digits'] = '\\p',
  ['pattern.json: pattern with Unicode property escape requires unicode mode'] = '\\p',
  ['patternProperties.json: patternProperties with Unicode property escape'] = '\\p',
}

local function read(path)
  local file = assert(io.open(path))
  local text = file:read('*a')
  file:close()
  return vim.json.decode(text)
end

local function check_group(group, id)
  local validator, faults = schema.compile(group.schema)
  if not validator then
    error('refused: ' .. vim.inspect(faults))
  end
  t.eq(UNCHECKED[id] ~= nil, #validator.unchecked > 0)
  for _, test in ipairs(group.tests) do
    local ok, errors = validator:check(test.data, { strict = true })
    if ok ~= test.valid and not (ok and UNCHECKED[id]) then
      error(('%s: expected %s, got %s %s'):format(test.description, test.valid, ok, vim.inspect(errors)))
    end
    t.eq(ok, errors == nil)
    t.ok(ok or #errors > 0, test.description .. ': refused without a reason')
    validator:check(test.data)
  end
end

local checked = 0

describe('JSON-Schema-Test-Suite', function()
  for _, folder in ipairs({ '', 'optional/' }) do
    local names = {}
    for name, kind in vim.fs.dir(DATA .. folder) do
      if kind == 'file' then
        names[#names + 1] = name
      end
    end
    table.sort(names)
    for _, name in ipairs(names) do
      local file = folder .. name
      for _, group in ipairs(LEFT_OUT[file] and {} or read(DATA .. file)) do
        local id = file .. ': ' .. group.description
        if REFUSED[id] then
          it(id .. ' is refused', function()
            local validator, faults = schema.compile(group.schema)
            t.eq(nil, validator)
            t.ok(#faults > 0)
          end)
        elseif REFUSED_FILES[file] then
          it(id, function()
            if schema.compile(group.schema) then
              check_group(group, id)
            end
          end)
        elseif not LEFT_OUT[id] then
          it(id, function()
            check_group(group, id)
            checked = checked + 1
          end)
        end
      end
    end
  end

  it('has been run in full', function()
    t.ok(checked > 270, 'groups checked: ' .. checked)
  end)
end)

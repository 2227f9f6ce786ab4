--- Keywords about arrays: `prefixItems`, `items`, `contains`, `uniqueItems`, `minItems`, `maxItems`.
---
--- Receives: a schema. Sends: one check for all of these keywords that it has, or nil.
--- Does not know about: other keywords.

local canonical_json = require('mcp-tools.util.canonical_json')
local every = require('mcp-tools.schema.every')
local value = require('mcp-tools.schema.value')

local huge = math.huge
--- What a byte of an item takes that is compared with others by its text.
local STEPS_OF_BYTE = 1 / 2
--- What a table takes that is made into such a text, each of its keys, and each item of a list.
local STEPS_OF_TABLE, STEPS_OF_KEY, STEPS_OF_ITEM = 30, 30, 6
--- Deeper than this no text is made.
local MAX_DEPTH = 200

local function count(n, what)
  return ('%d %s%s'):format(n, what, n == 1 and '' or 's')
end

--- Items by prefixItems, then items.
local function each(compiler, schema)
  local prefix = {}
  for i, item in ipairs(schema.prefixItems or {}) do
    prefix[i] = compiler:check(item)
  end
  local rest = schema.items ~= nil and schema.items ~= true and compiler:check(schema.items) or nil
  local closed = schema.items == false
  local n_prefix = #prefix
  if n_prefix == 0 and not rest then
    return nil
  end
  return function(v, report)
    local ok = true
    if closed and #v > n_prefix then
      if report then
        report:add(n_prefix == 0 and 'must be empty' or 'must have at most ' .. count(n_prefix, 'item'))
      end
      ok = false
    end
    local n = (closed or not rest) and math.min(#v, n_prefix) or #v
    compiler:spend(n)
    for i = 1, n do
      local check = prefix[i] or rest
      if report then
        if report.full then
          return false
        end
        report:enter(i)
        ok = check(v[i], report) and ok
        report:leave()
      elseif not check(v[i]) then
        return false
      end
    end
    return ok
  end
end

local function contains(compiler, schema)
  if schema.contains == nil then
    return nil
  end
  local check = compiler:check(schema.contains)
  local min, max = schema.minContains or 1, schema.maxContains or huge
  return function(v, report)
    local n = 0
    compiler:spend(#v)
    for i = 1, #v do
      if check(v[i]) then
        n = n + 1
      end
    end
    if n >= min and n <= max then
      return true
    end
    if report then
      local bound = n < min and 'at least ' .. min or 'at most ' .. max
      report:add(('must contain %s item(s) of the kind that `contains` describes, has %d'):format(bound, n))
    end
    return false
  end
end

--- Counts what the text of a table takes, before it is made.
---@param compiler mcp-tools.schema.Compiler
---@param item table
---@param depth integer
local function pay(compiler, item, depth)
  compiler:spend(STEPS_OF_TABLE)
  for key, part in pairs(item) do
    compiler:spend(type(key) == 'number' and STEPS_OF_ITEM or STEPS_OF_KEY)
    if type(part) == 'table' and depth < MAX_DEPTH then
      pay(compiler, part, depth + 1)
    end
  end
end

local function unique(compiler, schema)
  if not schema.uniqueItems then
    return nil
  end
  return function(v, report)
    local plain, tables = {}, {}
    compiler:spend(#v)
    for i = 1, #v do
      local item, seen = v[i], plain
      if type(item) == 'table' then
        pay(compiler, item, 1)
        local made
        made, item = pcall(canonical_json.text, item)
        if not made then
          compiler:give_up('is nested too deep to be compared')
        end
        compiler:spend(#item * STEPS_OF_BYTE)
        seen = tables
      end
      if seen[item] then
        if report then
          report:add(('items must differ: [%d] repeats [%d]'):format(i - 1, seen[item] - 1))
        end
        return false
      elseif item == item then -- else it is NaN: it differs from everything, and is no key
        seen[item] = i
      end
    end
    return true
  end
end

local function sized(schema)
  local min, max = schema.minItems or 0, schema.maxItems or huge
  if not schema.minItems and not schema.maxItems then
    return nil
  end
  return function(v, report)
    if #v >= min and #v <= max then
      return true
    end
    if report then
      report:add(#v < min and 'must have at least ' .. count(min, 'item') or 'must have at most ' .. count(max, 'item'))
    end
    return false
  end
end

---@param compiler mcp-tools.schema.Compiler
---@param schema table
---@return mcp-tools.schema.Check?
return function(compiler, schema)
  local checks = {}
  checks[#checks + 1] = sized(schema)
  checks[#checks + 1] = unique(compiler, schema)
  checks[#checks + 1] = contains(compiler, schema)
  checks[#checks + 1] = each(compiler, schema)
  if #checks == 0 then
    return nil
  end
  return every(checks, value.is_array)
end

--- Keywords about strings and numbers.
---
--- Receives: a schema. Sends: one check for all of these keywords that it has, or nil.
--- Does not know about: other keywords.

local pattern = require('mcp-tools.schema.pattern')
local value = require('mcp-tools.schema.value')

--- Rounding of one division and of its two operands, relative.
local EPSILON = 4 * 2 ^ -52
local floor, abs, huge = math.floor, math.abs, math.huge

local function is_multiple(v, divisor)
  local quotient = v / divisor
  if quotient == floor(quotient) and abs(quotient) ~= huge then
    return true
  end
  if abs(quotient) == huge then
    return math.fmod(v, divisor) == 0
  end
  local near = floor(quotient + 0.5)
  -- Whole numbers are exact: there is nothing to be lenient about.
  if v == floor(v) and divisor == floor(divisor) then
    return false
  end
  return abs(quotient - near) <= EPSILON * abs(quotient)
end

local function count(n, what)
  return ('%d %s%s'):format(n, what, n == 1 and '' or 's')
end

--- Each keyword: what a value must pass, and what to say if not.
---@type table<string, fun(limit: any): (fun(v: any): boolean)?, string?>
local numbers = {
  minimum = function(limit)
    return function(v)
      return v >= limit
    end, 'must be at least ' .. value.show(limit)
  end,
  maximum = function(limit)
    return function(v)
      return v <= limit
    end, 'must be at most ' .. value.show(limit)
  end,
  exclusiveMinimum = function(limit)
    return function(v)
      return v > limit
    end, 'must be more than ' .. value.show(limit)
  end,
  exclusiveMaximum = function(limit)
    return function(v)
      return v < limit
    end, 'must be less than ' .. value.show(limit)
  end,
  multipleOf = function(divisor)
    return function(v)
      return is_multiple(v, divisor)
    end, 'must be a multiple of ' .. value.show(divisor)
  end,
}

local strings = {
  minLength = function(limit)
    return function(v)
      -- A character has at most 4 bytes, so most texts need not be counted.
      return #v >= limit and (#v >= 4 * limit or value.length(v) >= limit)
    end, 'must have at least ' .. count(limit, 'character')
  end,
  maxLength = function(limit)
    return function(v)
      return #v <= limit or (#v <= 4 * limit and value.length(v) <= limit)
    end, 'must have at most ' .. count(limit, 'character')
  end,
  pattern = function(source)
    local matches = pattern.compile(source)
    return matches, 'must match the pattern ' .. source
  end,
}

local function collect(schema, keywords)
  local tests, messages = {}, {}
  for keyword, make in vim.spairs(keywords) do
    if schema[keyword] ~= nil then
      local test, message = make(schema[keyword])
      if test then
        tests[#tests + 1] = test
        messages[#messages + 1] = message
      end
    end
  end
  return tests, messages
end

---@param schema table
---@return mcp-tools.schema.Check?
return function(_, schema)
  local number_tests, number_messages = collect(schema, numbers)
  local string_tests, string_messages = collect(schema, strings)
  if #number_tests + #string_tests == 0 then
    return nil
  end
  return function(v, report)
    local tests, messages
    local kind = type(v)
    if kind == 'number' then
      tests, messages = number_tests, number_messages
    elseif kind == 'string' then
      tests, messages = string_tests, string_messages
    else
      return true
    end
    local ok = true
    for i = 1, #tests do
      if not tests[i](v) then
        if not report then
          return false
        end
        report:add(messages[i])
        ok = false
      end
    end
    return ok
  end
end

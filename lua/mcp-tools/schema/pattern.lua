--- ECMAScript regular expressions by way of `vim.regex`, where that is exact.
---
--- Receives: the source of a pattern as JSON Schema writes it (code points, as with the `u` flag).
--- Sends: a function text → boolean, and what it may cost; or why there is none (look-behinds, backreferences,
--- `\p{…}`, syntax errors).
--- Does not know about: schemas, the grammar of patterns (ecma.lua).

local charset = require('mcp-tools.schema.charset')
local ecma = require('mcp-tools.schema.ecma')

local M = {}

---@class mcp-tools.schema.Pattern
---@field matches fun(text: string): boolean
---@field steps fun(length: integer): number at worst, for a text of that many bytes; about 10 ns each

---@type table<string, mcp-tools.schema.Pattern>
local compiled = setmetatable({}, { __mode = 'v' })

--- Compiles a pattern.
---@param source string
---@return mcp-tools.schema.Pattern?
---@return string? why there is none
function M.compile(source)
  if compiled[source] then
    return compiled[source]
  end
  local pieces, why = ecma.translate(source)
  if not pieces then
    return nil, why
  end
  local regexes, wanted = {}, {}
  for i, piece in ipairs(pieces) do
    local ok, regex = pcall(vim.regex, piece.text)
    if not ok then
      return nil, 'Vim does not take its translation'
    end
    regexes[i], wanted[i] = regex, piece.wanted
  end
  local function matches(text)
    text = charset.text(text)
    for i = 1, #regexes do
      if (regexes[i]:match_str(text) ~= nil) ~= wanted[i] then
        return false
      end
    end
    return true
  end
  local function steps(length)
    local sum = 0
    for i = 1, #pieces do
      local each = pieces[i].flat and math.min(pieces[i].steps, length) or pieces[i].steps
      sum = sum + each * length
    end
    return sum
  end
  compiled[source] = { matches = matches, steps = steps }
  return compiled[source]
end

return M

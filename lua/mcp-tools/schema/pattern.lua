--- ECMAScript regular expressions by way of `vim.regex`, where that is exact.
---
--- Receives: the source of a pattern as JSON Schema writes it (code points, as with the `u` flag).
--- Sends: a function text → boolean; or why there is none (look-behinds, backreferences, `\p{…}`, syntax errors).
--- Does not know about: schemas, the grammar of patterns (ecma.lua).

local charset = require('mcp-tools.schema.charset')
local ecma = require('mcp-tools.schema.ecma')

local M = {}

---@type table<string, fun(text: string): boolean>
local compiled = setmetatable({}, { __mode = 'v' })

--- Compiles a pattern.
---@param source string
---@return (fun(text: string): boolean)? matches
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
  compiled[source] = matches
  return matches
end

return M

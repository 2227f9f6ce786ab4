--- URI templates with `{id}` and `{+id}`: matches URIs and expands templates.
---
--- Source: RFC 6570 level 1 (`{id}`, without `/`) and `{+id}` of level 2. Matching never backtracks: a value ends at
--- the first occurrence of the literal after it, and the last literal is matched at the end. So it is always linear.

local M = {}

---@class mcp-tools.UriTemplate
---@field text string
---@field parts (string|mcp-tools.UriVariable)[] alternating literals and variables
---@field names string[] variables, in order
---@field literal integer number of literal bytes; if two templates match, the one with more is used
local Template = {}
Template.__index = Template

---@class mcp-tools.UriVariable
---@field name string
---@field reserved boolean `{+id}`

--- Characters allowed in a URI besides letters and digits. Source: RFC 3986, sections 2.2 and 2.3.
local LITERAL = "^[%w%-._~:/?#%[%]@!$&'()*+,;=%%]*$"

local OPERATORS = 'operators other than + are not supported'

---@param inner string text between the braces
---@return mcp-tools.UriVariable?
---@return string? fault
local function variable(inner)
  local plus, name = inner:match('^(%+?)([%w_]+)$')
  if name then
    return { name = name, reserved = plus == '+' }
  elseif inner:find('^[#./;?&=,!@|]') then
    return nil, ('{%s}: %s'):format(inner, OPERATORS)
  elseif inner:find(',', 1, true) then
    return nil, ('{%s}: only one variable per pair of braces is supported'):format(inner)
  elseif inner:find('[*:]') then
    return nil, ('{%s}: modifiers are not supported'):format(inner)
  end
  return nil, ('{%s}: must be a name of letters, digits and _, such as {id} or {+path}'):format(inner)
end

---@param self mcp-tools.UriTemplate
---@param literal string
---@return string? fault
local function add_literal(self, literal)
  if literal:find('[{}]') then
    return 'unbalanced braces'
  elseif not literal:find(LITERAL) or literal:find('%%%X') or literal:find('%%%x%X') or literal:find('%%%x?$') then
    return ('%q: must be percent-encoded'):format(literal)
  end
  if literal ~= '' then
    table.insert(self.parts, literal)
    self.literal = self.literal + #literal
  end
end

---@param self mcp-tools.UriTemplate
---@param inner string
---@return string? fault
local function add_variable(self, inner)
  local var, fault = variable(inner)
  if not var then
    return fault
  elseif vim.list_contains(self.names, var.name) then
    return ('{%s}: occurs twice'):format(var.name)
  elseif type(self.parts[#self.parts]) == 'table' then
    return ('{%s}: there must be text between two variables'):format(var.name)
  end
  table.insert(self.parts, var)
  table.insert(self.names, var.name)
end

--- Compiles a template.
---@param text string
---@return mcp-tools.UriTemplate?
---@return string? fault the first one
function M.compile(text)
  local self = setmetatable({ text = text, parts = {}, names = {}, literal = 0 }, Template)
  local from = 1
  while true do
    local open, close, inner = text:find('{([^{}]*)}', from)
    local fault = add_literal(self, text:sub(from, (open or 0) - 1))
    if not fault and inner then
      fault = add_variable(self, inner)
    end
    if fault then
      return nil, fault
    elseif not open then
      break
    end
    from = close + 1
  end
  if #self.names == 0 then
    return nil, 'has no variable; use uri for a fixed URI'
  end
  return self
end

--- Percent-decodes a text once.
---@param text string
---@return string? decoded nil: a % is not followed by two hex digits
function M.decode(text)
  if not text:find('%', 1, true) then
    return text
  end
  local bad = false
  local decoded = text:gsub('%%(.?.?)', function(hex)
    if not hex:find('^%x%x$') then
      bad = true
      return ''
    end
    return string.char(tonumber(hex, 16))
  end)
  return not bad and decoded or nil
end

---@param var mcp-tools.UriVariable
---@param raw string
---@return string? value
local function value_of(var, raw)
  if raw == '' or (not var.reserved and raw:find('[/?#]')) then
    return nil
  end
  return M.decode(raw)
end

--- Matches a URI and returns the values of the variables.
---@param uri string
---@return table<string, string>? values decoded; nil: no match
function Template:match(uri)
  local values, at, count = {}, 1, #self.parts
  for i, part in ipairs(self.parts) do
    if type(part) == 'string' then
      if uri:sub(at, at + #part - 1) ~= part then
        return nil
      end
      at = at + #part
    else
      local after = self.parts[i + 1] --[[@as string?]]
      local stop
      if not after then
        stop = #uri + 1
      elseif i + 1 == count then
        stop = #uri - #after + 1
      else
        stop = uri:find(after, at + 1, true)
      end
      local value = stop and stop > at and value_of(part, uri:sub(at, stop - 1))
      if not value then
        return nil
      end
      values[part.name] = value
      at = stop
    end
  end
  return at == #uri + 1 and values or nil
end

local function encoded(char)
  return ('%%%02X'):format(char:byte())
end

--- Returns the URI for values.
---@param values table<string, string>
---@return string uri
function Template:expand(values)
  local out = {}
  for i, part in ipairs(self.parts) do
    if type(part) == 'string' then
      out[i] = part
    else
      -- A % in a value is literal, so it is encoded in `{+id}` too.
      local keep = part.reserved and "[^%w%-._~:/?#%[%]@!$&'()*+,;=]" or '[^%w%-._~]'
      out[i] = tostring(values[part.name] or ''):gsub(keep, encoded)
    end
  end
  return table.concat(out)
end

return M

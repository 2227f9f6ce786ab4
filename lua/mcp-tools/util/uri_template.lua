--- URI templates: the text with `{id}` and `{+id}` in it, matched against URIs and filled in.
---
--- Source: RFC 6570 level 1 (`{id}`, which holds no `/`), and of level 2 `{+id}`, which may. Matching never goes back:
--- a value ends where the text after it begins for the first time, and the last text of a template is looked for at
--- the end. So a long URI made to be matched in many ways costs no more than any other.

local M = {}

---@class mcp-tools.UriTemplate
---@field text string
---@field parts (string|mcp-tools.UriVariable)[] literals and variables in turn
---@field names string[] of the variables, in order
---@field literal integer bytes that are not variables; of two templates that match, the one with more is meant
local Template = {}
Template.__index = Template

---@class mcp-tools.UriVariable
---@field name string
---@field reserved boolean `{+id}`

--- What may stand in a URI as it is, besides letters and digits. Source: RFC 3986, sections 2.2 and 2.3.
local LITERAL = "^[%w%-._~:/?#%[%]@!$&'()*+,;=%%]*$"

local OPERATORS = 'operators other than + are not supported'

---@param inner string what stands between the braces
---@return mcp-tools.UriVariable?
---@return string? fault
local function variable(inner)
  local plus, name = inner:match('^(%+?)([%w_]+)$')
  if name then
    return { name = name, reserved = plus == '+' }
  elseif inner:find('^[#./;?&=,!@|]') then
    return nil, ('{%s}: %s'):format(inner, OPERATORS)
  elseif inner:find(',', 1, true) then
    return nil, ('{%s}: one variable to a pair of braces'):format(inner)
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
    return 'its braces do not match'
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
    return ('{%s}: stands there twice'):format(var.name)
  elseif type(self.parts[#self.parts]) == 'table' then
    return ('{%s}: there must be text between two variables'):format(var.name)
  end
  table.insert(self.parts, var)
  table.insert(self.names, var.name)
end

--- Makes a template ready.
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
    return nil, 'has no variable; a URI that is always the same goes into uri'
  end
  return self
end

--- The text that percent-encoded text stands for; decoded once.
---@param text string
---@return string? decoded nil when a % is not followed by two hex digits
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

--- The values of a URI that this template describes.
---@param uri string
---@return table<string, string>? values decoded; nil when it does not match
function Template:match(uri)
  local values, at, count = {}, 1, #self.parts
  for i, part in ipairs(self.parts) do
    if type(part) == 'string' then
      if uri:sub(at, at + #part - 1) ~= part then
        return nil
      end
      at = at + #part
    else
      local after, stop = self.parts[i + 1]
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

--- The URI for values.
---@param values table<string, string>
---@return string uri
function Template:expand(values)
  local out = {}
  for i, part in ipairs(self.parts) do
    if type(part) == 'string' then
      out[i] = part
    else
      -- A % in a value is one that is meant, so it is encoded in `{+id}` too.
      local keep = part.reserved and "[^%w%-._~:/?#%[%]@!$&'()*+,;=]" or '[^%w%-._~]'
      out[i] = tostring(values[part.name] or ''):gsub(keep, encoded)
    end
  end
  return table.concat(out)
end

return M

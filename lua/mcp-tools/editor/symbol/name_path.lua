--- Names of symbols with what they stand in: `Class/method`.
---
---   method          any symbol of that name
---   Class/method    one that stands in a `Class`, wherever that is
---   /Class          one at the top of the file
---   name[2]         the second of that name in the same place
---
--- Where nothing is called just so, `Class.method` and `Class:method` mean the same as `Class/method`.

local errors = require('mcp-tools.errors')
local nodes = require('mcp-tools.editor.symbol.nodes')
local suggest = require('mcp-tools.util.suggest')

local M = {}

---@class mcp-tools.NamePath
---@field absolute boolean
---@field parts { name: string, nth: integer?, lower: string? }[]
---@field given string

--- Bytes.
local MAX = 500
--- Symbols that are named where none or several fit.
local MAX_TOLD = 12
--- And that are compared with a name that none has.
local MAX_COMPARED = 2000

--- Reads a name path.
---@param text string
---@param argument string its name, for the error
---@return mcp-tools.NamePath?
---@return mcp-tools.Error? err
function M.parse(text, argument)
  local parts = {}
  for part in vim.gsplit(#text > MAX and '' or text:gsub('^/', ''), '/', { plain = true }) do
    local name, nth = part:match('^(.-)%[(%d+)%]$')
    if part == '' or name == '' or tonumber(nth) == 0 then
      parts = {}
      break
    end
    table.insert(parts, { name = name or part, nth = tonumber(nth) })
  end
  if #parts == 0 then
    local fault = '%s: %q is no name; write `name`, `Class/method`, `/Class` (top level) or `name[2]` (the second)'
    return nil, errors.new('validation_error', fault:format(argument, text:sub(1, 100)))
  end
  return { absolute = text:sub(1, 1) == '/', parts = parts, given = text }
end

--- Removes the list of parameters that some servers add to a name.
---@param name string
---@return string
local function without_parameters(name)
  return name:match('^([^(]+)%(.*%)$') or name
end

--- Returns the last identifier of a name, such as `open` of `M.open(path)`.
---@param name string
---@return string?
function M.word(name)
  name = without_parameters(name)
  return name:match('^.*[^%w_$\128-\255]([%w_$\128-\255]+)$') or name:match('^[%w_$\128-\255]+$')
end

--- `M.open` and `M:open` are `open` as well, `open(int)` too.
---@param name string
---@return string
local function plain(name)
  name = without_parameters(name)
  return name:match('^.*[.:](.+)$') or name
end

---@param node mcp-tools.SymbolNode
---@param part { name: string, lower: string? }
---@param substring? boolean
local function has_name(node, part, substring)
  if substring then
    part.lower = part.lower or part.name:lower()
    return node.name:lower():find(part.lower, 1, true) ~= nil
  end
  return node.name == part.name or node.name:find(part.name, 1, true) ~= nil and plain(node.name) == part.name
end

--- Which of its name is it, where it stands?
---@param node mcp-tools.SymbolNode
---@param siblings mcp-tools.SymbolNode[]
---@return integer nth, integer count
local function place(node, siblings)
  local nth, count = 0, 0
  for _, each in ipairs(siblings) do
    if each.name == node.name then
      count = count + 1
      nth = each == node and count or nth
    end
  end
  return nth, count
end

---@param node mcp-tools.SymbolNode
---@param path mcp-tools.NamePath
---@param top mcp-tools.SymbolNode[]
---@param substring? boolean for the last name
local function fits(node, path, top, substring)
  for i = #path.parts, 1, -1 do
    local part = path.parts[i]
    if not node or not has_name(node, part, substring and i == #path.parts) then
      return false
    elseif part.nth and part.nth ~= place(node, node.parent and node.parent.children or top) then
      return false
    end
    node = node.parent --[[@as mcp-tools.SymbolNode]]
  end
  return not (path.absolute and node)
end

--- Names with what joins them made one: `M.sub:run` and `M/sub/run` are the same.
---@param text string
local function joined(text)
  return '/' .. text:gsub('[.:/]+', '/')
end

--- Those whose names are joined otherwise, by what they stand in or in the name itself.
---@param top mcp-tools.SymbolNode[]
---@param path mcp-tools.NamePath
---@return mcp-tools.SymbolNode[]
local function joined_otherwise(top, path)
  local names, found = {}, {} ---@type string[], mcp-tools.SymbolNode[]
  for i, part in ipairs(path.parts) do
    if part.nth then
      return {}
    end
    names[i] = part.name
  end
  local wanted = joined(table.concat(names, '/'))
  local last = wanted:match('^.*/(.*)$')
  if not wanted:find('/', 2, true) then
    return {}
  end
  nodes.each(top, function(node)
    if node.name:find(last, 1, true) then
      local whole, at = '', node ---@type string, mcp-tools.SymbolNode?
      while at and #whole <= #wanted do
        whole, at = joined(without_parameters(at.name)) .. whole, at.parent
      end
      if whole == wanted and not (path.absolute and at) or not path.absolute and vim.endswith(whole, wanted) then
        table.insert(found, node)
      end
    end
  end)
  return found
end

--- All symbols that are meant.
---@param top mcp-tools.SymbolNode[]
---@param path mcp-tools.NamePath
---@param substring? boolean
---@return mcp-tools.SymbolNode[]
function M.all(top, path, substring)
  local found, exact = {}, {}
  local last = path.parts[#path.parts].name
  nodes.each(top, function(node)
    if fits(node, path, top, substring) then
      table.insert(found, node)
      if node.name == last then
        table.insert(exact, node)
      end
    end
  end)
  if #found == 0 and not substring then
    return joined_otherwise(top, path)
  end
  return #exact > 0 and not substring and exact or found
end

--- The path of a symbol, by which it alone is meant.
---@param node mcp-tools.SymbolNode
---@param top mcp-tools.SymbolNode[]
---@return string
function M.of(node, top)
  local names = {}
  local at = node ---@type mcp-tools.SymbolNode?
  while at do
    local nth, count = place(at, at.parent and at.parent.children or top)
    table.insert(names, 1, count > 1 and ('%s[%d]'):format(at.name, nth) or at.name)
    at = at.parent
  end
  return table.concat(names, '/')
end

---@param list mcp-tools.SymbolNode[]
---@param top mcp-tools.SymbolNode[]
---@return string
local function told(list, top)
  local names = {}
  for i = 1, math.min(#list, MAX_TOLD) do
    names[i] = ('%s (line %d)'):format(M.of(list[i], top), list[i].line)
  end
  return table.concat(names, ', ') .. (#list > MAX_TOLD and (' and %d more'):format(#list - MAX_TOLD) or '')
end

--- What comes near a name that nothing has: it holds it, or differs by a slip; else what stands at the top.
---@param top mcp-tools.SymbolNode[]
---@param path mcp-tools.NamePath
---@return string? told nil: nothing is there
function M.near(top, path)
  local last = path.parts[#path.parts].name
  local near = M.all(top, { absolute = false, parts = { { name = last } }, given = '' }, true)
  if #near == 0 then
    local names = {}
    nodes.each(top, function(node)
      table.insert(names, plain(node.name))
      return #names == MAX_COMPARED
    end)
    local slip = suggest(plain(last), names)
    near = slip and M.all(top, { absolute = false, parts = { { name = slip } }, given = '' }) or top
  end
  return #near > 0 and told(near, top) or nil
end

--- The one symbol that is meant.
---@param top mcp-tools.SymbolNode[]
---@param path mcp-tools.NamePath
---@param argument string its name, for the error
---@param where string the file, for the error
---@return mcp-tools.SymbolNode?
---@return mcp-tools.Error? err it names those that come near
function M.one(top, path, argument, where)
  local found = M.all(top, path)
  if #found == 1 then
    return found[1]
  elseif #found > 1 then
    local text = '%s: %q means %d symbols of %s: %s; give the whole path of one'
    return nil, errors.new('validation_error', text:format(argument, path.given, #found, where, told(found, top)))
  end
  local text = ('%s: there is no %q in %s'):format(argument, path.given, where)
  local near = M.near(top, path)
  return nil, errors.new('not_found', text .. (near and '; there is ' .. near or ''))
end

return M

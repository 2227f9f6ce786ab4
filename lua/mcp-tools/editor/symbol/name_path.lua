--- Name paths of symbols: `Class/method`.
---
---   method          any symbol with that name
---   Class/method    a symbol inside any `Class`
---   /Class          a symbol at the top level of the file
---   name[2]         the second symbol with that name in the same parent
---
--- If there is no exact match, `Class.method` and `Class:method` mean `Class/method`.

local errors = require('mcp-tools.errors')
local nodes = require('mcp-tools.editor.symbol.nodes')
local suggest = require('mcp-tools.util.suggest')

local M = {}

---@class mcp-tools.NamePath
---@field absolute boolean
---@field parts { name: string, nth: integer?, lower: string? }[]
---@field given string

--- Maximum length, bytes.
local MAX = 500
--- Maximum number of symbols in an error message.
local MAX_LISTED = 12
--- Maximum number of symbols that are compared with an unknown name.
local MAX_COMPARED = 2000

--- Reads a name path.
---@param text string
---@param argument string name of the argument, for the error
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
    local fault = '%s: %q is not a name path: use `name`, `Class/method`, `/Class` (top level) or `name[2]`'
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

--- Returns the last part of a qualified name: `open` for `M.open`, `M:open` and `open(int)`.
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

--- Returns which of the siblings with the same name a symbol is.
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

--- Normalizes separators: `M.sub:run` and `M/sub/run` are the same.
---@param text string
local function normalized(text)
  return '/' .. text:gsub('[.:/]+', '/')
end

--- Returns symbols whose path matches with other separators.
---@param top mcp-tools.SymbolNode[]
---@param path mcp-tools.NamePath
---@return mcp-tools.SymbolNode[]
local function with_other_separators(top, path)
  local names, found = {}, {} ---@type string[], mcp-tools.SymbolNode[]
  for i, part in ipairs(path.parts) do
    if part.nth then
      return {}
    end
    names[i] = part.name
  end
  local wanted = normalized(table.concat(names, '/'))
  local last = wanted:match('^.*/(.*)$')
  if not wanted:find('/', 2, true) then
    return {}
  end
  nodes.each(top, function(node)
    if node.name:find(last, 1, true) then
      local whole, at = '', node ---@type string, mcp-tools.SymbolNode?
      while at and #whole <= #wanted do
        whole, at = normalized(without_parameters(at.name)) .. whole, at.parent
      end
      if whole == wanted and not (path.absolute and at) or not path.absolute and vim.endswith(whole, wanted) then
        table.insert(found, node)
      end
    end
  end)
  return found
end

--- Returns all symbols that a name path matches.
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
    return with_other_separators(top, path)
  end
  return #exact > 0 and not substring and exact or found
end

--- Returns the shortest unique name path of a symbol.
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
local function listed(list, top)
  local names = {}
  for i = 1, math.min(#list, MAX_LISTED) do
    names[i] = ('%s (line %d)'):format(M.of(list[i], top), list[i].line)
  end
  return table.concat(names, ', ') .. (#list > MAX_LISTED and (' and %d more'):format(#list - MAX_LISTED) or '')
end

--- Lists symbols similar to an unknown name: those that contain it, or a likely typo; otherwise the top level.
---@param top mcp-tools.SymbolNode[]
---@param path mcp-tools.NamePath
---@return string? text nil if there are no symbols
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
  return #near > 0 and listed(near, top) or nil
end

--- Returns the one symbol that a name path matches.
---@param top mcp-tools.SymbolNode[]
---@param path mcp-tools.NamePath
---@param argument string name of the argument, for the error
---@param where string the file, for the error
---@return mcp-tools.SymbolNode?
---@return mcp-tools.Error? err lists similar symbols
function M.one(top, path, argument, where)
  local found = M.all(top, path)
  if #found == 1 then
    return found[1]
  elseif #found > 1 then
    local text = '%s: %q matches %d symbols of %s: %s; give the whole path of one'
    return nil, errors.new('validation_error', text:format(argument, path.given, #found, where, listed(found, top)))
  end
  local text = ('%s: there is no %q in %s'):format(argument, path.given, where)
  local near = M.near(top, path)
  return nil, errors.new('not_found', text .. (near and '; there is ' .. near or ''))
end

return M

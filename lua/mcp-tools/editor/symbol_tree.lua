--- Symbols of a file: their trees, their kinds, and name paths such as `Class/method`.
---
---   method          any symbol with that name
---   Class/method    a symbol inside any `Class`
---   /Class          a symbol at the top level of the file
---   name[2]         the second symbol with that name in the same parent
---
--- If there is no exact match, `Class.method` and `Class:method` mean `Class/method`.

local errors = require('mcp-tools.errors')
local position = require('mcp-tools.editor.position')
local sort = require('mcp-tools.util.sort')
local suggest = require('mcp-tools.util.suggest')

local M = {}

---@class mcp-tools.SymbolNode
---@field name string
---@field kind string
---@field line integer from 1
---@field end_line integer
---@field range number[] first row and column, last row and column, from 0; columns in `units`
---@field at { [1]: integer, [2]: integer } row and column of the name
---@field units mcp-tools.lsp.Encoding of columns
---@field children mcp-tools.SymbolNode[]
---@field parent mcp-tools.SymbolNode?

-- Kinds ---------------------------------------------------------------------------------------------------------

--- Symbol kinds of syntax trees that the LSP specification does not define.
M.MORE_KINDS = { 'impl', 'macro', 'protocol', 'record', 'section', 'trait', 'type', 'union' }

---@type table<integer, string>
local kind_names = {}
for number, name in pairs(vim.lsp.protocol.SymbolKind) do
  if type(number) == 'number' then
    kind_names[number] = (name --[[@as string]]):gsub('(%l)(%u)', '%1_%2'):lower()
  end
end

--- Reads kinds in any spelling: `Method`, `methods`, `EnumMember`.
---@param given string[]
---@param more? string[] kinds that the LSP specification does not define
---@return string[]?
---@return mcp-tools.Error? err
function M.read_kinds(given, more)
  local known = vim.list_extend(vim.tbl_values(kind_names), more or {})
  local list = {}
  for i, text in ipairs(given) do
    local name = text:gsub('(%l)(%u)', '%1_%2'):lower():gsub('[%s-]', '_')
    for _, each in ipairs({ (name:gsub('ies$', 'y')), (name:gsub('es$', '')), (name:gsub('s$', '')), name }) do
      list[i] = vim.list_contains(known, each) and each or list[i]
    end
    if not list[i] then
      table.sort(known)
      local fault = 'kinds: %q is not a kind; kinds are %s'
      return nil, errors.new('validation_error', fault:format(text:sub(1, 100), table.concat(known, ', ')))
    end
  end
  return list
end

-- Trees ---------------------------------------------------------------------------------------------------------

---@param list string[]
---@return table<string, true>
local function set(list)
  local out = {}
  for _, each in ipairs(list) do
    out[each] = true
  end
  return out
end

--- Kinds whose contents are local, except for definitions of functions and types.
local CODE = set({ 'function', 'method', 'constructor', 'operator' })
local KEPT_IN_CODE = set({ 'function', 'method', 'constructor', 'class', 'interface', 'enum', 'struct' })
--- Functions inside these are methods.
local TYPES = set({ 'class', 'struct', 'interface', 'trait', 'impl', 'protocol', 'enum', 'object' })

--- Returns whether a server has invented the name, as for callbacks and anonymous symbols.
---@param name string
local function is_invented(name)
  return name == '' or name:find('^<') ~= nil or name:find(' callback$') ~= nil
end

---@param a mcp-tools.SymbolNode
---@param b mcp-tools.SymbolNode
local function before(a, b)
  for i = 1, 4 do
    if a.range[i] ~= b.range[i] then
      return (a.range[i] < b.range[i]) == (i < 3)
    end
  end
  return false
end

local function no_pause() end

--- Removes parameters, local variables and nameless symbols; marks functions inside types as methods.
---@param list mcp-tools.SymbolNode[]
---@param pause? fun()
---@param parent? mcp-tools.SymbolNode
---@return mcp-tools.SymbolNode[]
function M.prune(list, pause, parent)
  local out = {}
  pause = pause or no_pause
  list = sort(list, before, pause) -- some servers sort by name
  for _, node in ipairs(list) do
    local inner = parent and CODE[parent.kind]
    if node.kind ~= 'type_parameter' and not is_invented(node.name) and not (inner and not KEPT_IN_CODE[node.kind]) then
      node.parent = parent
      if node.kind == 'function' and parent and TYPES[parent.kind] then
        node.kind = 'method'
      end
      node.children = M.prune(node.children, pause, node)
      table.insert(out, node)
    end
    pause()
  end
  return out
end

---@param outer mcp-tools.SymbolNode
---@param inner mcp-tools.SymbolNode
local function holds(outer, inner)
  local a, b = outer.range, inner.range
  return a[3] > b[3] or a[3] == b[3] and a[4] >= b[4]
end

--- Builds a tree from a flat list by the ranges of its symbols.
---@param list mcp-tools.SymbolNode[] without children
---@param pause? fun()
---@return mcp-tools.SymbolNode[]
function M.nest(list, pause)
  pause = pause or no_pause
  list = sort(list, before, pause)
  local top, open = {}, {}
  for _, node in ipairs(list) do
    while #open > 0 and not holds(open[#open], node) do
      table.remove(open)
    end
    node.parent = open[#open]
    table.insert(node.parent and node.parent.children or top, node)
    table.insert(open, node)
    pause()
  end
  return top
end

--- Calls `fn` for each symbol, in the order of the tree, until it returns a true value.
---@param list mcp-tools.SymbolNode[]
---@param fn fun(node: mcp-tools.SymbolNode): any
---@return any
function M.each(list, fn)
  for _, node in ipairs(list) do
    local found = fn(node) or M.each(node.children, fn)
    if found then
      return found
    end
  end
end

--- Returns the innermost symbol around a line.
---@param list mcp-tools.SymbolNode[]
---@param line integer from 1
---@return mcp-tools.SymbolNode?
function M.around(list, line)
  for _, node in ipairs(list) do
    if node.line <= line and line <= node.end_line then
      return M.around(node.children, line) or node
    end
  end
end

---@param item table DocumentSymbol or SymbolInformation
---@param encoding mcp-tools.lsp.Encoding
---@param pause fun()
---@param parent? mcp-tools.SymbolNode
---@return mcp-tools.SymbolNode?
local function node_of(item, encoding, pause, parent)
  pause()
  item = type(item) == 'table' and item or {}
  local range = item.range or type(item.location) == 'table' and item.location.range
  if type(item.name) ~= 'string' or not position.is_range(range) then
    return nil
  end
  local at = (position.is_range(item.selectionRange) and item.selectionRange or range).start
  local last = range['end']
  local node = {
    name = item.name,
    kind = kind_names[item.kind] or 'symbol',
    line = range.start.line + 1,
    -- A range that ends before the first character of a line does not reach it.
    end_line = (last.character == 0 and last.line > range.start.line) and last.line or last.line + 1,
    range = { range.start.line, range.start.character, last.line, last.character },
    at = { at.line, at.character },
    units = encoding,
    children = {},
    parent = parent,
  }
  for _, child in ipairs(type(item.children) == 'table' and item.children or {}) do
    table.insert(node.children, node_of(child, encoding, pause, node))
  end
  return node
end

--- Moves symbols into their container if no range includes them: some servers report only the range of a name.
---@param top mcp-tools.SymbolNode[] nested by range
---@param containers table<mcp-tools.SymbolNode, string> `containerName` of symbols
---@param pause fun()
---@return mcp-tools.SymbolNode[]
local function nest_by_container(top, containers, pause)
  local out, before_it = {}, {} ---@type mcp-tools.SymbolNode[], table<string, mcp-tools.SymbolNode>
  local function visit(node)
    local container = containers[node]
    if not node.parent and container then
      -- Only a symbol above it, so that no two contain each other.
      node.parent = before_it[container] or before_it[container:match('^.*[.:/](.+)')]
      table.insert(node.parent and node.parent.children or out, node)
    elseif not node.parent then
      table.insert(out, node)
    end
    if container ~= node.name then -- a constructor may have the name of its class
      before_it[node.name] = node
    end
    pause()
    for _, child in ipairs(vim.list_slice(node.children)) do
      visit(child)
    end
  end
  for _, node in ipairs(top) do
    visit(node)
  end
  return out
end

--- Returns the tree of an answer to `textDocument/documentSymbol`.
---@param items table[]?
---@param encoding mcp-tools.lsp.Encoding
---@param pause fun()
---@return mcp-tools.SymbolNode[]
function M.of_server(items, encoding, pause)
  local list, flat, containers = {}, true, {}
  for _, item in ipairs(items or {}) do
    local node = node_of(item, encoding, pause)
    if node then
      table.insert(list, node)
      containers[node] = type(item.containerName) == 'string' and item.containerName ~= '' and item.containerName or nil
    end
    flat = flat and (not node or item.location ~= nil)
  end
  return flat and nest_by_container(M.nest(list, pause), containers, pause) or list
end

-- Name paths ----------------------------------------------------------------------------------------------------

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

--- Returns a function that returns which of the siblings with the same name a symbol is. It counts siblings once.
---@param pause fun()
---@return fun(node: mcp-tools.SymbolNode, siblings: mcp-tools.SymbolNode[]): integer
local function counted(pause)
  local places = {} ---@type table<mcp-tools.SymbolNode[], table<mcp-tools.SymbolNode, integer>>
  return function(node, siblings)
    if not places[siblings] then
      local counts, nths = {}, {}
      places[siblings] = nths
      for _, each in ipairs(siblings) do
        counts[each.name] = (counts[each.name] or 0) + 1
        nths[each] = counts[each.name]
        pause()
      end
    end
    return places[siblings][node]
  end
end

---@param node mcp-tools.SymbolNode
---@param path mcp-tools.NamePath
---@param top mcp-tools.SymbolNode[]
---@param nth_of fun(node: mcp-tools.SymbolNode, siblings: mcp-tools.SymbolNode[]): integer
---@param substring? boolean for the last name
local function fits(node, path, top, nth_of, substring)
  for i = #path.parts, 1, -1 do
    local part = path.parts[i]
    if not node or not has_name(node, part, substring and i == #path.parts) then
      return false
    elseif part.nth and part.nth ~= nth_of(node, node.parent and node.parent.children or top) then
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
---@param pause fun()
---@return mcp-tools.SymbolNode[]
local function with_other_separators(top, path, pause)
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
  M.each(top, function(node)
    pause()
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
---@param pause? fun()
---@return mcp-tools.SymbolNode[]
function M.all(top, path, substring, pause)
  local found, exact = {}, {}
  local last = path.parts[#path.parts].name
  pause = pause or no_pause
  local nth_of = counted(pause)
  M.each(top, function(node)
    pause()
    if fits(node, path, top, nth_of, substring) then
      table.insert(found, node)
      if node.name == last then
        table.insert(exact, node)
      end
    end
  end)
  if #found == 0 and not substring then
    return with_other_separators(top, path, pause)
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
---@param pause? fun()
---@return string? text nil if there are no symbols
function M.near(top, path, pause)
  local last = path.parts[#path.parts].name
  local near = M.all(top, { absolute = false, parts = { { name = last } }, given = '' }, true, pause)
  if #near == 0 then
    local names = {}
    M.each(top, function(node)
      table.insert(names, plain(node.name))
      return #names == MAX_COMPARED
    end)
    local likely = suggest(plain(last), names)
    near = likely and M.all(top, { absolute = false, parts = { { name = likely } }, given = '' }, false, pause) or top
  end
  return #near > 0 and listed(near, top) or nil
end

--- Returns the one symbol that a name path matches.
---@param top mcp-tools.SymbolNode[]
---@param path mcp-tools.NamePath
---@param argument string name of the argument, for the error
---@param where string the file, for the error
---@param pause? fun()
---@return mcp-tools.SymbolNode?
---@return mcp-tools.Error? err lists similar symbols
function M.one(top, path, argument, where, pause)
  local found = M.all(top, path, false, pause)
  if #found == 1 then
    return found[1]
  elseif #found > 1 then
    local text = '%s: %q matches %d symbols of %s: %s; give the whole path of one'
    return nil, errors.new('validation_error', text:format(argument, path.given, #found, where, listed(found, top)))
  end
  local text = ('%s: there is no %q in %s'):format(argument, path.given, where)
  local near = M.near(top, path, pause)
  return nil, errors.new('not_found', text .. (near and '; there is ' .. near or ''))
end

return M

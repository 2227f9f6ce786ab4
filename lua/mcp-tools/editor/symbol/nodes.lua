--- Trees of the symbols of a file.

local sort = require('mcp-tools.util.sort')

local M = {}

---@class mcp-tools.SymbolNode
---@field name string
---@field kind string
---@field line integer from 1
---@field end_line integer
---@field range { [1]: integer, [2]: integer, [3]: integer, [4]: integer } rows and columns from 0; columns in `units`
---@field at { [1]: integer, [2]: integer } row and column of the name
---@field units mcp-tools.lsp.Encoding of columns
---@field children mcp-tools.SymbolNode[]
---@field parent mcp-tools.SymbolNode?

--- Kinds of syntax trees that the language server protocol does not have.
M.MORE_KINDS = { 'impl', 'macro', 'protocol', 'record', 'section', 'trait', 'type', 'union' }

---@param list string[]
---@return table<string, true>
local function set(list)
  local out = {}
  for _, each in ipairs(list) do
    out[each] = true
  end
  return out
end

--- Their contents are local, except for definitions of functions and types.
local CODE = set({ 'function', 'method', 'constructor', 'operator' })
local KEPT_IN_CODE = set({ 'function', 'method', 'constructor', 'class', 'interface', 'enum', 'struct' })
--- Functions inside these are methods.
local TYPES = set({ 'class', 'struct', 'interface', 'trait', 'impl', 'protocol', 'enum', 'object' })

--- Callbacks and nameless symbols, for which servers invent a name.
---@param name string
local function is_invented(name)
  return name == '' or name:find('^<') ~= nil or name:find(' callback$') ~= nil
end

---@param a mcp-tools.SymbolNode
---@param b mcp-tools.SymbolNode
local function before(a, b)
  for i = 1, 2 do
    if a.range[i] ~= b.range[i] then
      return a.range[i] < b.range[i]
    end
  end
  for i = 3, 4 do
    if a.range[i] ~= b.range[i] then
      return a.range[i] > b.range[i]
    end
  end
  return false
end

local function no_pause() end

--- Removes parameters, local variables and nameless symbols; marks functions inside types as methods.
---@param list mcp-tools.SymbolNode[]
---@param pause? fun() called between pieces of work
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

--- Makes a tree of a flat list, by their ranges.
---@param list mcp-tools.SymbolNode[] without children
---@param pause? fun() called between pieces of work
---@return mcp-tools.SymbolNode[]
function M.nest(list, pause)
  pause = pause or no_pause
  list = sort(list, before, pause)
  local top, open = {}, {}
  for _, node in ipairs(list) do
    while #open > 0 and not holds(open[#open], node) do
      table.remove(open)
    end
    table.insert(#open > 0 and open[#open].children or top, node)
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

return M

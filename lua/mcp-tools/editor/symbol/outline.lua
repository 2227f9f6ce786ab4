--- Outlines: the symbols of a file as text, nested by indent: `Ledger [class] 25-67`, and for functions the source
--- line: `  post 33: def post(self, account):`.

local result = require('mcp-tools.editor.result')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Kinds that are listed with their source line instead of their kind.
local CALLED = { ['function'] = true, method = true, constructor = true }
--- Kinds without contents; several in a row share a line.
local SMALL = {
  variable = true,
  constant = true,
  field = true,
  property = true,
  enum_member = true,
  string = true,
  number = true,
  boolean = true,
  array = true,
  object = true,
  event = true,
  key = true,
}
--- Maximum number of lines, and bytes, of the source of one definition.
local MAX_LINES, MAX_SOURCE = 10, 160
--- Maximum length of a row, and of a name, in bytes.
local MAX_ROW, MAX_NAME = 160, 100

---@alias mcp-tools.LinesOf fun(first: integer, last: integer): string[] from 1

--- Returns a reader that fetches a line once, however many symbols are on it.
---@param lines_of mcp-tools.LinesOf
---@return fun(number: integer): string?
function M.line_reader(lines_of)
  local known, line
  return function(number)
    if known ~= number then
      known, line = number, lines_of(number, number)[1]
    end
    return line
  end
end

--- Whether a text ends within parentheses.
---@param text string
local function is_open(text)
  local _, opened = text:gsub('[%(%[]', '')
  local _, closed = text:gsub('[%)%]]', '')
  return opened > closed
end

--- Returns the source line of a definition, joined with the next ones while a bracket is open.
---@param node mcp-tools.SymbolNode
---@param line_of fun(number: integer): string?
---@return string
function M.signature(node, line_of)
  local number = node.at[1] + 1
  local line = line_of(number) or ''
  if #line > MAX_SOURCE then -- other definitions may be on it
    local first = math.max(node.at[2] - MAX_SOURCE / 4, 0)
    line = utf8.repair(line:sub(first + 1, first + 2 * MAX_SOURCE))
  end
  local text = trim(line)
  local last = math.min(number + MAX_LINES, node.end_line)
  while number < last and #text < MAX_SOURCE and is_open(text) do
    number = number + 1
    local more = line_of(number) or ''
    text = text .. (text:find('[%(%[]$') and '' or ' ') .. trim(more:sub(1, MAX_SOURCE))
  end
  return (utf8.repair((utf8.cut((text:gsub('%c', ' ')), MAX_SOURCE))))
end

---@param node mcp-tools.SymbolNode
---@return boolean
function M.is_called(node)
  return CALLED[node.kind] == true
end

--- Returns the lines of a symbol: `25-67`.
---@param node mcp-tools.SymbolNode
---@return string
function M.lines(node)
  return node.end_line > node.line and ('%d-%d'):format(node.line, node.end_line) or tostring(node.line)
end

---@param text string
---@return string
local function clean(text)
  return (utf8.repair((utf8.cut(text:gsub('%c', ' '), MAX_NAME))))
end

---@class mcp-tools.OutlineOpts
---@field depth integer? levels; default: all
---@field small boolean? false: without variables, fields and the like
---@field signatures boolean? false: without the source line of functions

--- Returns one symbol as one line.
---@param node mcp-tools.SymbolNode
---@param line_of fun(number: integer): string?
---@param opts mcp-tools.OutlineOpts
---@return string
local function row(node, line_of, opts)
  if not CALLED[node.kind] then
    return ('%s [%s] %s'):format(clean(node.name), node.kind, M.lines(node))
  end
  local where = #node.children > 0 and M.lines(node) or tostring(node.line)
  local source = opts.signatures ~= false and M.signature(node, line_of) or ''
  return ('%s %s%s'):format(clean(node.name), where, source ~= '' and ': ' .. source or '')
end

---@param list mcp-tools.SymbolNode[]
---@param line_of fun(number: integer): string?
---@param opts mcp-tools.OutlineOpts
---@param out string[]|{ bytes: integer }
---@param level integer
local function add(list, line_of, opts, out, level)
  local indent = ('  '):rep(level)
  local run, kind = {}, nil
  local function flush()
    if #run > 0 then
      local text = ('%s%s [%s]'):format(indent, table.concat(run, ', '), kind)
      table.insert(out, text)
      out.bytes = out.bytes + #text + 1
      run = {}
    end
  end
  for _, node in ipairs(list) do
    if out.bytes > result.MAX_BYTES then
      break -- a shorter variant will be used
    elseif SMALL[node.kind] and #node.children == 0 then
      if node.kind ~= kind or #table.concat(run, ', ') > MAX_ROW then
        flush()
      end
      kind = node.kind
      if opts.small ~= false then
        table.insert(run, ('%s %d'):format(clean(node.name), node.line))
      end
    else
      flush()
      local text = indent .. row(node, line_of, opts)
      table.insert(out, text)
      out.bytes = out.bytes + #text + 1
      if not opts.depth or level + 1 < opts.depth then
        add(node.children, line_of, opts, out, level + 1)
      end
    end
  end
  flush()
end

--- Returns the outline of a file, with little more than an answer can hold.
---@param tree mcp-tools.SymbolNode[]
---@param lines_of mcp-tools.LinesOf
---@param opts mcp-tools.OutlineOpts
---@return string[] rows with `bytes`, their size
function M.rows(tree, lines_of, opts)
  local out = { bytes = 0 } ---@type table
  add(tree, M.line_reader(lines_of), opts, out, 0)
  return out
end

--- Returns the source that all symbols of an answer have in common, so that it is named once.
---@param list { by: string? }[]
---@return string? by nil: different ones
function M.common_by(list)
  local by
  for _, each in ipairs(list) do
    if by and each.by and each.by ~= by then
      return nil
    end
    by = by or each.by
  end
  return by
end

return M

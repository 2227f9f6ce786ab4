--- Symbols of a text by the look of its lines: what begins a definition, and how far lines are indented.
---
--- Receives: lines.
--- Sends: a tree of symbols; a guess.
--- Does not know about: languages, buffers.

local nodes = require('mcp-tools.editor.symbol.nodes')
local symbols = require('mcp-tools.editor.symbols')
local syntax = require('mcp-tools.editor.syntax')
local turns = require('mcp-tools.util.turns')

local M = {}

--- Lines that are looked at in one go; of each so many symbols are found at most.
local STEP = 20

--- Words before the name that tell what it is.
local KINDS = { 'class', 'struct', 'interface', 'enum', 'trait', 'impl', 'module', 'namespace', 'type' }

---@param line string
---@return integer?
local function indent_of(line)
  local white = line:match('^(%s*)%S')
  return white and #white:gsub('\t', '        ') or nil
end

--- Does a line as far out as the definition still belong to it?
---@param line string
local function closes(line)
  return line:find('^%s*[%]})]') ~= nil or line:find('^%s*end%f[^%w_]') ~= nil or line:find('^%s*{%s*$') ~= nil
end

---@param head string
---@return string
local function kind_of(head)
  for _, kind in ipairs(KINDS) do
    if head:find('%f[%w_]' .. kind .. '%f[^%w_]') then
      return kind
    end
  end
  return 'function'
end

--- The last line of what begins on a line.
---@param lines string[]
---@param first integer
---@return integer
local function end_of(lines, first)
  local own, last = indent_of(lines[first]) or 0, first
  for number = first + 1, #lines do
    local indent = indent_of(lines[number])
    if indent and indent <= own then
      if indent == own and closes(lines[number]) then
        last = number
        if not lines[number]:find('[:{(,]%s*$') then
          return last
        end
      else
        return last
      end
    elseif indent then
      last = number
    end
  end
  return last
end

---@param lines string[]
---@param found mcp-tools.Symbol
---@return mcp-tools.SymbolNode
local function node_of(lines, found)
  local line = lines[found.line]
  local last = end_of(lines, found.line)
  local at = line:find(found.name, 1, true) or 1
  return {
    name = found.name,
    kind = kind_of(line:sub(1, at - 1)),
    line = found.line,
    end_line = last,
    range = { found.line - 1, #line:match('^%s*'), last - 1, #lines[last] },
    at = { found.line - 1, at - 1 },
    units = 'utf-8',
    children = {},
  }
end

--- Finds the symbols, in slices. `cb` is called on the main loop, perhaps before this returns.
---@param lines string[]
---@param cb fun(tree: mcp-tools.SymbolNode[])
---@param now? boolean in one go, before this returns
function M.ask(lines, cb, now)
  local list, first = {}, 1
  syntax.walk(function()
    local last = math.min(first + STEP - 1, #lines)
    for _, found in ipairs(symbols.of_lines(vim.list_slice(lines, first, last))) do
      found.line = found.line + first - 1
      table.insert(list, node_of(lines, found))
    end
    first = last + 1
    return first <= #lines
  end, function()
    turns.run(function(pause)
      cb(nodes.nest(list, pause))
    end, now)
  end, now)
end

return M

--- Symbols of a text by the look of its lines: what begins a definition, and how far lines are indented.
---
--- Receives: lines.
--- Sends: a tree of symbols; a guess.
--- Does not know about: languages, buffers.

local nodes = require('mcp-tools.editor.symbol.nodes')
local time_slice = require('mcp-tools.util.time_slice')
local treesitter = require('mcp-tools.editor.treesitter')

local M = {}

--- Lines that are looked at, and bytes of them; a larger file was not written by hand.
M.MAX_LINES, M.MAX_BYTES = 20000, 1024 * 1024
--- Lines between two looks at the clock.
local STEP = 20
--- Of a line; what it defines stands at its beginning.
local MAX_LINE = 200

--- What begins a definition in languages that people use; the capture is its name. With blanks that are single ones,
--- as they are made before, none of them takes longer than a line is long.
local FORMS = {
  '^%s*local%s+function%s+([%w_.:]+)',
  '^%s*function%s+([%w_.:]+)',
  '^%s*([%w_.:]+)%s*=%s*function',
  '^%s*async%s+def%s+([%w_]+)',
  '^%s*def%s+([%w_.?!]+)',
  '^%s*class%s+([%w_]+)',
  '^%s*export%s+[%w%s]-function%*?%s+([%w_$]+)',
  '^%s*export%s+[%w%s]-class%s+([%w_$]+)',
  '^%s*async%s+function%*?%s+([%w_$]+)',
  '^%s*export%s+const%s+([%w_$]+)',
  '^%s*const%s+([%w_$]+)%s*=%s*[%w%s]*%(',
  '^%s*pub[%w()%s]-fn%s+([%w_]+)',
  '^%s*fn%s+([%w_]+)',
  '^%s*pub[%w()%s]-struct%s+([%w_]+)',
  '^%s*struct%s+([%w_]+)',
  '^%s*func%s+%b()%s*([%w_]+)',
  '^%s*func%s+([%w_]+)',
  '^%s*type%s+([%w_]+)',
  '^[%a_][%w_%s*]-[%s*]([%w_]+)%s*%([^;]*$',
}

--- What looks like the head of a function in C, and is none.
local STATEMENTS = { ['return'] = true, ['if'] = true, ['else'] = true, ['while'] = true, ['for'] = true }

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

--- What a line defines.
---@param line string
---@return string? name
local function name_in(line)
  line = line:sub(1, MAX_LINE):gsub('%s+', ' ')
  for _, form in ipairs(FORMS) do
    local name = line:match(form)
    if name and not STATEMENTS[line:match('^%a*')] then
      return name
    end
  end
end

---@param lines string[]
---@param number integer
---@param name string
---@return mcp-tools.SymbolNode
local function node_of(lines, number, name)
  local line, last = lines[number], end_of(lines, number)
  local at = line:find(name, 1, true) or 1
  return {
    name = name,
    kind = kind_of(line:sub(1, at - 1)),
    line = number,
    end_line = last,
    range = { number - 1, #line:match('^%s*'), last - 1, #lines[last] },
    at = { number - 1, at - 1 },
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
  treesitter.walk(function()
    local last = math.min(first + STEP - 1, #lines)
    for number = first, last do
      local name = name_in(lines[number])
      if name then
        table.insert(list, node_of(lines, number, name))
      end
    end
    first = last + 1
    return first <= #lines
  end, function()
    time_slice.run(function(pause)
      cb(nodes.nest(list, pause))
    end, now)
  end, now)
end

return M

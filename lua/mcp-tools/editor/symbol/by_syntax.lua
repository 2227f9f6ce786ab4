--- Symbols of a text from its syntax tree.
---
--- Grammars use similar names for definitions: `function_declaration`, `class_definition`, `struct_item`. The query for
--- a grammar is made from those that it has; exceptions are in `MORE`.

local symbol_tree = require('mcp-tools.editor.symbol_tree')
local time_slice = require('mcp-tools.util.time_slice')
local treesitter = require('mcp-tools.editor.treesitter')
local trim = require('mcp-tools.util.trim')

local M = {}

local WORDS = vim.split(
  'function method constructor class struct union enum interface trait impl module mod namespace type type_alias'
    .. ' protocol object macro record singleton_method',
  ' '
)
local ENDS = { 'declaration', 'definition', 'item', 'specifier', 'def', 'spec' }

--- Words that are replaced in answers.
local KINDS = {
  mod = 'module',
  type_alias = 'type',
  singleton_method = 'method',
  preproc_def = 'macro',
  preproc_function_def = 'macro',
}

---@type table<string, string> type → kind
local TYPES = { preproc_def = 'macro', preproc_function_def = 'macro' }
for _, word in ipairs(WORDS) do
  TYPES[word] = KINDS[word] or word
  for _, ending in ipairs(ENDS) do
    TYPES[word .. '_' .. ending] = KINDS[word] or word
  end
end

local FUNCTION_VALUE = '(variable_declarator name: (identifier) @name value: [(arrow_function) (function_expression)])'
--- Definitions that node types alone do not show.
local MORE = {
  lua = {
    '(assignment_statement (variable_list name: (_) @name) (expression_list value: (function_definition))) @function',
    '(field name: (_) @name value: (function_definition)) @function',
  },
  javascript = { FUNCTION_VALUE .. ' @function' },
  typescript = { FUNCTION_VALUE .. ' @function' },
  tsx = { FUNCTION_VALUE .. ' @function' },
  c = { '(type_definition declarator: (_) @name) @type' },
  cpp = { '(type_definition declarator: (_) @name) @type' },
  markdown = { '(section . (atx_heading heading_content: (_) @name)) @section' },
  vimdoc = { '(h1) @section', '(h2) @section', '(h3) @section' },
}

---@type table<string, vim.treesitter.Query|false>
local queries = {}

---@param lang string
---@param sources string[]
---@return vim.treesitter.Query|false
local function parse(lang, sources)
  local ok, query = pcall(vim.treesitter.query.parse, lang, table.concat(sources, '\n'))
  return ok and query or false
end

--- Returns the node types of a grammar that define something. `symbols` is a list of {name, named} in Neovim 0.10, and
--- later maps names to whether they are named.
---@param lang string
---@return string[]
local function types_of(lang)
  local found = {}
  for key, value in pairs(vim.treesitter.language.inspect(lang).symbols) do
    local name, named = key, value
    if type(value) == 'table' then
      name, named = value[1], value[2]
    end
    if named and TYPES[name] and not vim.list_contains(found, name) then
      table.insert(found, name)
    end
  end
  table.sort(found)
  return found
end

---@param lang string
---@return vim.treesitter.Query|false
local function query_of(lang)
  if queries[lang] == nil then
    local sources = {}
    for _, name in ipairs(types_of(lang)) do
      table.insert(sources, ('(%s) @%s'):format(name, TYPES[name]))
    end
    for _, source in ipairs(MORE[lang] or {}) do
      if parse(lang, { source }) then -- grammars change between versions
        table.insert(sources, source)
      end
    end
    queries[lang] = #sources > 0 and parse(lang, sources)
  end
  return queries[lang]
end

local field = treesitter.field

--- Returns the node of a name. In C it is the innermost declarator.
---@param node TSNode
---@return TSNode?
local function name_of(node)
  local found = field(node, 'name') or (node:type():find('^impl') and field(node, 'type'))
  local at = not found and field(node, 'declarator') or nil
  while at do
    found = at
    at = field(at, 'declarator')
  end
  return found
end

---@param text string
---@return string
local function one_line(text)
  return trim((text:gsub('%s+', ' '))):sub(1, 120)
end

--- Removes rules and tags from a heading.
---@param text string
---@return string
local function title(text)
  text = text:gsub('^[=%-]+%s*', '')
  text = text:gsub('%s*%*%S+%*', '') -- bounded: `one_line` has cut the text
  text = text:gsub('%s*[=~%-]+$', '') -- bounded: as above
  return (text:gsub('/', ' '))
end

---@param node TSNode
---@param kind string
---@param name TSNode?
---@param source integer|string
---@return mcp-tools.SymbolNode?
local function symbol_of(node, kind, name, source)
  if node:type():find('_specifier$') and not field(node, 'body') then
    return nil -- `struct name` as a type
  end
  name = name or name_of(node)
  local whole = node
  local parent = node:parent()
  if parent and parent:type() == 'function_definition' and node:type() == 'function_declaration' then
    whole = parent -- in Vim script, `function_declaration` is only the first line
  end
  if not name and kind == 'section' then
    name = node
  elseif not name then
    return nil
  end
  local row, col, end_row, end_col = whole:range()
  local name_row, name_col = name:range()
  local text = one_line(vim.treesitter.get_node_text(name, source))
  if end_col == 0 and end_row > row then -- the range includes the last line break
    end_row, end_col = end_row - 1, math.huge --[[@as integer]]
  end
  return {
    name = kind == 'section' and title(text) or text,
    kind = kind,
    line = row + 1,
    end_line = end_row + 1,
    range = {
      row,
      col,
      end_row,
      end_col --[[@as integer]],
    },
    at = { name_row, name_col },
    units = 'utf-8',
    children = {},
  }
end

--- Extends each heading up to the next one, for grammars in which a heading node is only its line.
---@param list mcp-tools.SymbolNode[]
---@param last integer
local function extend_headings(list, last)
  for i, node in ipairs(list) do
    local following = list[i + 1]
    node.end_line = following and following.line - 1 or last
    node.range = { node.line - 1, 0, node.end_line - 1, math.huge }
  end
end

--- Finds the symbols in a tree.
---@param source integer|string
---@param lang string
---@param query vim.treesitter.Query
---@param root TSNode
---@param pause fun()
---@return mcp-tools.SymbolNode[]
local function search(source, lang, query, root, pause)
  local list, seen = {}, {}
  for _, match in query:iter_matches(root, source, 0, -1, { all = true }) do
    local node, kind, name ---@type TSNode?, string, TSNode?
    for id, captured in pairs(match) do
      local first = type(captured) == 'table' and captured[1] or captured --[[@as TSNode]]
      if query.captures[id] == 'name' then
        name = first
      else
        node, kind = first, query.captures[id]
      end
    end
    local symbol = node and symbol_of(node, kind, name, source)
    local key = symbol and symbol.at[1] .. ' ' .. symbol.at[2]
    if symbol and not seen[key] then
      seen[key] = true
      table.insert(list, symbol)
    end
    pause()
  end
  if lang == 'vimdoc' then
    local _, _, last = root:range()
    table.sort(list, function(a, b)
      return a.line < b.line
    end)
    extend_headings(list, last)
  end
  return symbol_tree.nest(list, pause)
end

--- Finds the symbols of a text.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param source integer|string a loaded buffer, or text
---@param filetype string
---@return mcp-tools.SymbolNode[]? tree
---@return string lang_or_why
function M.ask(ctx, source, filetype)
  local lang, why = treesitter.language(filetype)
  local query = lang and query_of(lang)
  if not lang or not query then
    return nil, why or ('no definitions are known for the grammar %s'):format(lang)
  end
  local root, fault = treesitter.parse_narrow(ctx, source, lang)
  if not root then
    return nil, fault --[[@as string]]
  end
  -- A buffer may be changed or closed during a pause.
  local ok, tree = pcall(search, source, lang, query, root, time_slice.of(ctx))
  if not ok then
    return nil, ('treesitter: %s'):format(tostring(tree))
  end
  return tree, lang
end

return M

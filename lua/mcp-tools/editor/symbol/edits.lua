--- Finds the extent of a definition in a text, and creates edits that replace or delete it, or insert text beside it.
---
--- Decorators, `export`, `template` and comments come from the syntax tree. Without a tree only line comments are
--- recognized. If another line directly above may belong to the definition, some edits are refused.

local strings = require('mcp-tools.util.strings')
local trim = require('mcp-tools.util.trim')

local M = {}

---@class mcp-tools.TextRange rows and bytes from 0
---@field row integer
---@field col integer
---@field end_row integer
---@field end_col integer

---@class mcp-tools.SymbolPlace
---@field levels mcp-tools.TextRange[] the definition, then the nodes around it: its statement, decorators, `export`
---@field statement integer level of the statement, such as `const f = …` around `f = …`
---@field whole mcp-tools.TextRange the last level
---@field top integer first row of the whole, including comments above
---@field name_row integer row of the name
---@field body mcp-tools.TextRange? the body of a function or class, braces included
---@field doubt integer? row directly above that may or may not belong to the definition

--- Nodes that wrap one definition and its modifiers, with the field of the definition; false: it has no field.
local WRAPPERS = {
  decorated_definition = 'definition',
  export_statement = 'declaration',
  template_declaration = false,
  ambient_declaration = false,
}
--- Nodes that belong to a definition if it is their only child.
local STATEMENTS = {}
for kind in ('lexical variable type const var'):gmatch('%l+') do
  STATEMENTS[kind .. '_declaration'] = true
end
STATEMENTS.expression_statement = true

--- Siblings directly above a definition that belong to it.
local ATTACHED = { 'comment', 'decorator', 'annotation', '^attribute' }
--- Maximum number of them. To find the one above it, a node goes through all of its siblings.
local MAX_ATTACHED = 100
--- Beginning of a line comment, by filetype.
---@type table<string, string>
local LINE_COMMENTS = {}
for comment, filetypes in pairs({
  ['#'] = 'python sh bash zsh fish ruby perl elixir r julia tcl nim crystal',
  ['//'] = 'c cpp objc cuda cs java kotlin scala groovy swift dart zig go rust php'
    .. ' javascript javascriptreact typescript typescriptreact',
  ['--'] = 'lua haskell sql ada elm',
  [';'] = 'lisp scheme clojure racket',
  ['%'] = 'erlang matlab',
  ['"'] = 'vim',
}) do
  for filetype in filetypes:gmatch('%S+') do
    LINE_COMMENTS[filetype] = comment
  end
end
--- A comment at the top of a file is about the file if it contains one of these.
local HEADERS = { '^#!', 'copyright', 'licen[cs]e', 'spdx' }

---@param line string?
local function is_blank(line)
  return line == nil or not line:find('%S')
end

---@param line string?
---@return string
local function indent_of(line)
  return line and line:match('^%s*') or ''
end

--- Removes the white space at both ends of a range.
---@param lines string[]
---@param at mcp-tools.TextRange
---@return mcp-tools.TextRange
local function trimmed(lines, at)
  local row, col, end_row, end_col = at.row, at.col, at.end_row, at.end_col
  while row < end_row and not (lines[row + 1] or ''):find('%S', col + 1) do
    row, col = row + 1, 0
  end
  col = ((lines[row + 1] or ''):find('%S', col + 1) or col + 1) - 1
  while end_row > row and is_blank(lines[end_row + 1]:sub(1, end_col)) do
    end_row, end_col = end_row - 1, math.huge
  end
  end_col = #((lines[end_row + 1] or ''):sub(1, end_col):match('^.*%S') or '')
  return { row = row, col = col, end_row = end_row, end_col = end_col }
end

---@param lines string[]
---@param node TSNode
---@return mcp-tools.TextRange
local function range_of(lines, node)
  local row, col, end_row, end_col = node:range()
  if end_col == 0 and end_row > row then
    end_row, end_col = end_row - 1, math.huge
  end
  return { row = row, col = col, end_row = end_row, end_col = math.min(end_col, #(lines[end_row + 1] or '')) }
end

--- Returns the node of a definition: it begins at the same position, and below it only blank lines may follow.
---@param lines string[]
---@param root TSNode
---@param at mcp-tools.TextRange
---@return TSNode?
local function node_at(lines, root, at)
  local node = root:named_descendant_for_range(at.row, at.col, at.end_row, at.end_col)
  if not node or node:type() == 'ERROR' then
    return nil
  end
  local found = range_of(lines, node)
  local is_same = found.row == at.row and found.col == at.col
  for row = at.end_row + 1, is_same and found.end_row or -1 do
    is_same = is_same and is_blank(lines[row + 1])
  end
  return is_same and node or nil
end

--- Returns the definition inside wrappers and statements.
---@param node TSNode
---@return TSNode
local function inner_of(node)
  while true do
    local kind, child = node:type(), nil
    local field, count = WRAPPERS[kind], node:named_child_count()
    if field then
      child = node:field(field)[1]
    elseif field == false or STATEMENTS[kind] and count == 1 then
      child = node:named_child(count - 1)
    end
    if not child then
      return node
    end
    node = child
  end
end

--- Returns a definition and the nodes that wrap only it, from the inside.
---@param node TSNode
---@return TSNode[]
---@return integer statement index of the last one that is not a wrapper
local function levels_of(node)
  local list, statement, parent = { node }, 1, node:parent()
  while parent do
    local kind = parent:type()
    local is_statement = STATEMENTS[kind] and parent:named_child_count() == 1
    if WRAPPERS[kind] == nil and not is_statement then
      break
    end
    table.insert(list, parent)
    statement = is_statement and #list or statement
    parent = parent:parent()
  end
  return list, statement
end

--- Returns the sibling before a node, or before an ancestor that begins at the same position.
---@param node TSNode
---@return TSNode?
local function previous_sibling(node)
  local sibling, parent = node:prev_sibling(), node:parent()
  while not sibling and parent do
    local row, col = node:start()
    local parent_row, parent_col = parent:start()
    if row ~= parent_row or col ~= parent_col then
      break
    end
    node = parent
    sibling, parent = node:prev_sibling(), node:parent()
  end
  return sibling
end

---@param kind string
local function is_attached(kind)
  return vim.iter(ATTACHED):any(function(form)
    return kind:find(form) ~= nil
  end)
end

--- Returns the first row of a definition, including comments and decorators above it.
---@param lines string[]
---@param node TSNode
---@return integer row
---@return integer? doubt row directly above that may belong to it: there are too many
local function top_of(lines, node)
  local first = node:start()
  local top, sibling, count = first, previous_sibling(node), 0
  while sibling and is_attached(sibling:type()) do
    local at = range_of(lines, sibling)
    if at.end_row ~= top - 1 or not is_blank(lines[at.row + 1]:sub(1, at.col)) then
      break
    elseif count == MAX_ATTACHED then
      return first, first - 1
    end
    top, sibling, count = at.row, previous_sibling(sibling), count + 1
  end
  return top
end

--- Returns the row of the definition if the comment above it is about the file, otherwise `top`.
---@param lines string[]
---@param top integer
---@param row integer of the definition
---@return integer top
local function below_header(lines, top, row)
  for i = 1, top == 0 and row or 0 do
    for _, form in ipairs(HEADERS) do
      if lines[i]:lower():find(form) and (i == 1 or form ~= HEADERS[1]) then
        return row
      end
    end
  end
  return top
end

--- Returns the first row of the block comment that ends on a row, if no code is beside the comment.
---@param lines string[]
---@param last integer from 0
---@param indent string
---@return integer? row
local function block_start(lines, last, indent)
  if not lines[last + 1]:find('%*/%s*$') then
    return nil
  end
  local row = last
  while row >= 0 and not lines[row + 1]:find('/*', 1, true) do
    row = row - 1
  end
  local text = table.concat(lines, '\n', math.max(row, 0) + 1, last + 1)
  if row < 0 or not text:find('^%s*/%*') or indent_of(lines[row + 1]) ~= indent then
    return nil
  elseif text:find('*/', 1, true) ~= #text:match('^.*%S') - 1 then
    return nil
  end
  -- It may be inside another comment that begins above.
  for above = row, 1, -1 do
    local opened, closed = lines[above]:match('^.*()/%*'), lines[above]:match('^.*()%*/')
    if opened or closed then
      return (closed or 0) > (opened or 0) and row or nil
    end
  end
  return row
end

--- Finds the comments above a definition, without a syntax tree.
---@param lines string[]
---@param at mcp-tools.TextRange
---@param filetype string
---@param ends table<integer, true> rows on which neighbors end
---@return integer top first row, including comments
---@return integer? doubt row directly above that may or may not belong to the definition
local function comments_above(lines, at, filetype, ends)
  local line = lines[at.row + 1] or ''
  if not is_blank(line:sub(1, at.col)) then
    return at.row, at.row
  end
  local indent, comment, top = indent_of(line), LINE_COMMENTS[filetype], at.row
  while comment and top > 0 do
    local text = lines[top]
    if indent_of(text) == indent and vim.startswith(text:sub(#indent + 1), comment) then
      top = top - 1
    else
      local first = comment == '//' and block_start(lines, top - 1, indent)
      if not first then
        break
      end
      top = first
    end
  end
  local line_above = lines[top]
  local is_certain = top == 0 or is_blank(line_above) or #indent_of(line_above) < #indent or ends[top - 1]
  return top, not is_certain and top - 1 or nil
end

--- Returns the body of a definition.
---@param lines string[]
---@param node TSNode
---@return mcp-tools.TextRange?
local function body_of(lines, node)
  local body = node:field('body')[1]
  local value = not body and node:field('value')[1]
  body = body or value and value:field('body')[1]
  return body and trimmed(lines, range_of(lines, body)) or nil
end

--- Returns the body of a Python definition without a syntax tree: the lines after the colon that ends the signature.
---@param lines string[]
---@param at mcp-tools.TextRange
---@param name_row integer
---@return mcp-tools.TextRange?
local function python_body(lines, at, name_row)
  local depth = 0
  for row = name_row, at.end_row - 1 do
    local text = strings.trim_end(lines[row + 1]:match('^[^#]*'))
    for bracket in text:gmatch('[%(%)%[%]{}]') do
      depth = depth + (bracket:find('[%(%[{]') and 1 or -1)
    end
    if depth == 0 and text:sub(-1) == ':' then
      return trimmed(lines, vim.tbl_extend('force', at, { row = row + 1, col = 0 }))
    end
  end
end

--- Returns the extent of a definition.
---@param lines string[]
---@param at mcp-tools.TextRange the range from the server or the syntax tree
---@param opts { root: TSNode?, filetype: string, name_row: integer, ends: table<integer, true> }
---@return mcp-tools.SymbolPlace
function M.extent(lines, at, opts)
  at = trimmed(lines, at)
  local node = opts.root and node_at(lines, opts.root, at)
  local place ---@type table
  if node then
    local inner = inner_of(node)
    local list, statement = levels_of(inner)
    local levels = vim.tbl_map(function(level)
      return range_of(lines, level)
    end, list)
    local top, doubt = top_of(lines, list[#list])
    place = { levels = levels, statement = statement, whole = levels[#levels], top = top, doubt = doubt }
    place.body = body_of(lines, inner)
  else
    local top, doubt = comments_above(lines, at, opts.filetype, opts.ends)
    place = { levels = { at }, statement = 1, whole = at, top = top, doubt = doubt }
    place.body = opts.filetype == 'python' and python_body(lines, at, opts.name_row) or nil
  end
  place.top = below_header(lines, place.top, place.whole.row)
  place.name_row = opts.name_row
  return place --[[@as mcp-tools.SymbolPlace]]
end

--- Returns the first line of code of a definition, below comments and a docstring: a debugger may move a breakpoint in
--- those to a line above the definition.
---@param lines string[]
---@param place mcp-tools.SymbolPlace
---@param filetype string
---@return integer
function M.code_line(lines, place, filetype)
  local comment = LINE_COMMENTS[filetype]
  local row, last = place.body and place.body.row or place.name_row, place.whole.end_row
  while row < last do
    local line = lines[row + 1]
    local text = trim(line)
    local quote = filetype == 'python' and (text:match('^[rRuU]?(""")') or text:match("^[rRuU]?(''')"))
    if quote then
      local from = select(2, line:find(quote, 1, true)) + 1
      while row < last and not lines[row + 1]:find(quote, from, true) do
        row, from = row + 1, 1
      end
    elseif text ~= '' and text ~= '{' and not (comment and vim.startswith(text, comment)) then
      break
    end
    row = row + 1
  end
  return math.min(row, last) + 1
end

---@param text string
---@return string[]
local function split(text)
  return vim.split(strings.trim_end(text:gsub('\r\n', '\n'):gsub('^\n+', '')), '\n', { plain = true })
end

--- Returns the smallest indent of lines after the first.
---@param lines string[]
---@return integer?
local function rest_indent(lines)
  local least
  for i = 2, #lines do
    if not is_blank(lines[i]) then
      least = math.min(least or math.huge, #indent_of(lines[i]))
    end
  end
  return least
end

--- Indents lines, unless all of them, or all but the first, already have the indent.
---@param lines string[]
---@param indent string
---@param rest integer? minimum indent that lines after the first must already have; default: more than `indent`
---@return string[]
local function indented(lines, indent, rest)
  local own, out = indent_of(lines[1]), {}
  if own == indent then
    return lines
  end
  local least = rest_indent(lines)
  if own == '' and least and least >= (rest or #indent + 1) then
    out = vim.list_slice(lines)
    out[1] = indent .. out[1]
    return out
  end
  for i, line in ipairs(lines) do
    if is_blank(line) then
      out[i] = ''
    elseif vim.startswith(line, own) then
      out[i] = indent .. line:sub(#own + 1)
    else
      out[i] = line
    end
  end
  return out
end

---@param row integer
---@param col integer
---@param end_row integer
---@param end_col integer
---@param text string
---@return mcp-tools.Edit[]
local function edit(row, col, end_row, end_col, text)
  return { { start_line = row, start_col = col, end_line = end_row, end_col = end_col, text = text } }
end

---@param text string
---@return string
local function first_token(text)
  return text:match('^%s*([%w_$]+)') or text:match('^%s*(%S?)')
end

--- Returns the range that a new definition replaces: the outermost level that begins with the same token, such as
--- `export` or `@`; otherwise the statement, so that its modifiers are kept.
---@param lines string[]
---@param place mcp-tools.SymbolPlace
---@param new string[]
---@return mcp-tools.TextRange
local function replaced_range(lines, place, new)
  local token, level = first_token(new[1]), nil
  for i, at in ipairs(place.levels) do
    if first_token(lines[at.row + 1]:sub(at.col + 1)) == token then
      level = i
    end
  end
  local at = place.levels[level or place.statement]
  if not level and place.name_row > at.row and lines[at.row + 1]:find('^@', at.col + 1) then
    local line = lines[place.name_row + 1]
    return vim.tbl_extend('force', at, { row = place.name_row, col = #indent_of(line) })
  end
  return at
end

--- Replaces a definition.
---@param lines string[]
---@param place mcp-tools.SymbolPlace
---@param text string
---@return mcp-tools.Edit[]
function M.replace(lines, place, text)
  local new = split(text)
  local at = replaced_range(lines, place, new)
  local first = lines[at.row + 1] or ''
  if first:sub(1, at.col):find('%S') then
    return edit(at.row, at.col, at.end_row, at.end_col, table.concat(new, '\n'))
  end
  local old = vim.list_slice(lines, at.row + 1, at.end_row + 1)
  new = indented(new, first:sub(1, at.col), rest_indent(old))
  return edit(at.row, 0, at.end_row, at.end_col, table.concat(new, '\n'))
end

--- Whether a new body begins with the signature, so that it is a whole definition.
---@param lines string[]
---@param place mcp-tools.SymbolPlace
---@param text string
---@return boolean
function M.has_signature(lines, place, text)
  local head = trim(lines[place.name_row + 1] or ''):match('^[^%(:={]+')
  local wanted, own = head and trim(head), trim(text)
  return wanted ~= nil and vim.startswith(own, wanted) and not own:sub(#wanted + 1, #wanted + 1):find('^[%w_]')
end

--- Removes the braces that enclose the whole text.
---@param text string
---@return string
local function without_braces(text)
  local depth = 0
  for brace, at in text:gmatch('([{}])()') do
    depth = depth + (brace == '{' and 1 or -1)
    if depth == 0 and at <= #text then
      return text -- the first brace is closed before the end
    end
  end
  return text:match('^{(.*)}$') or text
end

--- Replaces the body of a definition, and keeps the signature.
---@param lines string[]
---@param place mcp-tools.SymbolPlace
---@param text string
---@return mcp-tools.Edit[]?
---@return string? problem
function M.replace_body(lines, place, text)
  local at = place.body
  if not at then
    return nil, 'its body was not found; pass `definition`'
  elseif trim(text) == '' then
    return nil, '`body` is blank'
  end
  local row, col, end_row, end_col = at.row, at.col, at.end_row, at.end_col
  local outer = indent_of(lines[place.whole.row + 1])
  local is_braced = lines[row + 1]:sub(col + 1, col + 1) == '{' and lines[end_row + 1]:sub(end_col, end_col) == '}'
  if is_braced then
    col, end_col = col + 1, end_col - 1
    text = without_braces(trim(text))
  end
  local head, tail = lines[row + 1]:sub(1, col), lines[end_row + 1]:sub(end_col + 1)
  local first_row = is_braced and row < end_row and row + 1 or row
  local inner = not (head:find('%S') and first_row == row) and indent_of(lines[first_row + 1]) or ''
  if #inner <= #outer then
    inner = outer .. (outer:find('\t') and '\t' or '    ')
  end
  local new = split(text)
  local least = math.min(#indent_of(new[1]), rest_indent(new) or math.huge)
  new = vim.tbl_map(function(line)
    return is_blank(line) and '' or inner .. line:sub(least + 1)
  end, new)
  local own_line = not head:find('%S')
  local before_it = own_line and '' or '\n'
  local after_it = tail:find('%S') and '\n' .. outer or ''
  if after_it ~= '' then
    end_col = end_col + #tail:match('^%s*')
  end
  local first = own_line and 0 or #strings.trim_end(head)
  return edit(row, first, end_row, end_col, before_it .. table.concat(new, '\n') .. after_it)
end

---@param row integer
---@return string
local function doubt_text(row)
  return ('it is unclear whether line %d belongs to it: there is no syntax tree, or too many comments'):format(row + 1)
end

--- Counts blank lines from a row on.
---@param lines string[]
---@param row integer from 0
---@param step integer
---@return integer count
---@return boolean at_edge they reach the beginning or end of the text
local function blanks(lines, row, step)
  local count = 0
  while lines[row + 1] and is_blank(lines[row + 1]) do
    count, row = count + 1, row + step
  end
  return count, lines[row + 1] == nil
end

--- Counts blank lines up to the neighbor of a symbol.
---@param lines string[]
---@param row integer from 0, the first one outside the symbol
---@param step integer
---@param indent string of the symbol
---@return integer count
---@return boolean is_sibling
local function distance(lines, row, step, indent)
  local count, at_edge = blanks(lines, row, step)
  return count, not at_edge and #indent_of(lines[row + step * count + 1]) >= #indent
end

--- Inserts text before or after a symbol, with as many blank lines as between the symbol and its siblings.
---@param lines string[]
---@param place mcp-tools.SymbolPlace
---@param text string
---@param where 'before'|'after'
---@return mcp-tools.Edit[]?
---@return string? doubt
function M.insert(lines, place, text, where)
  local at, top = place.whole, place.top
  if where == 'before' and place.doubt then
    return nil, doubt_text(place.doubt)
  end
  local indent = indent_of(lines[at.row + 1])
  local new = indented(split(text), indent, nil)
  local here, is_sibling = distance(lines, top - 1, -1, indent)
  local opposite, is_other_sibling = distance(lines, at.end_row + 1, 1, indent)
  if where == 'after' then
    here, is_sibling, opposite, is_other_sibling = opposite, is_other_sibling, here, is_sibling
  end
  local gap = is_sibling and here or is_other_sibling and opposite or math.min(here, opposite)
  if at.row ~= at.end_row or #new > 1 then
    gap = math.max(gap, 1)
  end
  gap = math.min(gap, 2)
  local space = ('\n'):rep(gap)
  if where == 'before' then
    return edit(top, 0, top, 0, table.concat(new, '\n') .. '\n' .. space)
  end
  local last = #lines[at.end_row + 1]
  return edit(at.end_row, last, at.end_row, last, '\n' .. space .. table.concat(new, '\n'))
end

--- Deletes a symbol with its comments and modifiers, and blank lines that become superfluous.
---@param lines string[]
---@param place mcp-tools.SymbolPlace
---@return mcp-tools.Edit[]?
---@return string? doubt
function M.delete(lines, place)
  local at, top = place.whole, place.top
  local head, tail = lines[at.row + 1]:sub(1, at.col), lines[at.end_row + 1]:sub(at.end_col + 1)
  if place.doubt then
    return nil, doubt_text(place.doubt)
  elseif head:find('%S') or tail:find('^[;,%s]*[^;,%s/#%-]') then
    return nil, ('line %d has other code'):format(head:find('%S') and at.row + 1 or at.end_row + 1)
  end
  local before_it, at_top = blanks(lines, top - 1, -1)
  local after_it, at_end = blanks(lines, at.end_row + 1, 1)
  local first, last = top, at.end_row
  local is_first = not at_top and #indent_of(lines[top - before_it]) < #indent_of(lines[at.row + 1])
  if at_end then
    first = top - before_it
  elseif at_top or is_first and before_it == 0 or after_it > 0 and after_it <= before_it then
    last = last + after_it
  elseif before_it > 0 and before_it < after_it then
    first = top - before_it
  end
  return edit(first, 0, last + 1, 0, '')
end

return M

--- Outlines: the symbols of a file as text, one a line, what stands in what by its indent.
---
--- Receives: trees of symbols, and the lines that they are of.
--- Sends: lines such as `Ledger [class] 25-67` and `  post_entry(account, amount) 33`.
--- Does not know about: files, limits of answers.

local fit = require('mcp-tools.editor.result.fit')
local position = require('mcp-tools.editor.lsp.position')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- What is called has its parameters instead of its kind.
local CALLED = { ['function'] = true, method = true, constructor = true }
--- What has nothing in it; several in a row share a line.
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
--- In these languages the type stands before the name.
local TYPE_FIRST = { c = true, cpp = true, java = true, cs = true, objc = true, cuda = true }
--- The object itself is no argument of a call.
local SELF = { self = true, cls = true, this = true }
--- Lines and bytes that a list of parameters may take.
local MAX_LINES, MAX_TEXT = 20, 2000
--- Bytes of a line, and of a name.
local MAX_ROW, MAX_NAME = 160, 100

---@alias mcp-tools.LinesOf fun(first: integer, last: integer): string[] from 1

---@param part string
---@param type_first boolean
---@return string?
local function parameter(part, type_first)
  part = trim(part:gsub('@[%w_.]+%b()', ''):gsub('@[%w_.]+', ''))
  if part == '' or part == '/' or part == '*' then
    return part == '*' and '*' or nil
  elseif part:find('^[{%[]') then
    return part:sub(1, 1) == '{' and '{…}' or '[…]'
  end
  local head = trim(part:match('^[^=:]*'))
  local stars, name = head:match('^([*.&]*)([%w_$\128-\255]+)')
  if type_first then
    head = head:gsub('%b[]', '') -- bounded: MAX_TEXT
    name = head:match('%(%s*%*%s*([%w_$]+)%s*%)') or trim(head):match('^.*[^%w_$](.+)$') or name
  else
    for _, word in ipairs({ 'mut', 'public', 'private', 'protected', 'readonly', 'final' }) do
      name = name == word and head:match('^' .. word .. '%s+([%w_$]+)') or name
    end
  end
  if not name then
    return part:find('^%.%.%.') and '...' or nil
  end
  return not SELF[name] and (stars or '') .. name or nil
end

--- The names in a list of parameters.
---@param inner string
---@param type_first boolean
---@return string
local function parameters(inner, type_first)
  local names, depth, from, quote = {}, 0, 1, nil
  for at = 1, #inner + 1 do
    local char = inner:sub(at, at)
    if quote then
      quote = char ~= quote and quote or nil
    elseif char == '"' or char == "'" then
      quote = char
    elseif char:find('[%(%[{<]') then
      depth = depth + 1
    elseif char:find('[%)%]}]') or char == '>' and not inner:sub(at - 1, at - 1):find('[-=]') then
      depth = depth - 1
    elseif char == '' or char == ',' and depth <= 0 then
      table.insert(names, parameter(inner:sub(from, at - 1), type_first))
      from = at + 1
    end
  end
  return table.concat(names, ', ')
end

--- What stands in brackets; those in quotes do not count.
---@param text string
---@param from integer of the first one
---@return string? inner
local function brackets(text, from)
  local depth, quote = 0, nil
  for at = from, #text do
    local char = text:sub(at, at)
    if quote then
      quote = char ~= quote and quote or nil
    elseif char == '"' or char == "'" then
      quote = char
    elseif char == '(' then
      depth = depth + 1
    elseif char == ')' then
      depth = depth - 1
      if depth == 0 then
        return text:sub(from + 1, at - 1)
      end
    end
  end
end

--- The parameters behind the name of a function, in brackets.
---@param node mcp-tools.SymbolNode
---@param lines_of mcp-tools.LinesOf
---@param filetype string
---@return string
function M.signature(node, lines_of, filetype)
  local lines = lines_of(node.at[1] + 1, math.min(node.at[1] + MAX_LINES, math.max(node.end_line, node.at[1] + 1)))
  if not lines[1] then
    return '()'
  end
  local at = position.byte(lines[1], node.at[2], node.units)
  local text = table.concat(lines, '\n'):sub(at + 1, at + MAX_TEXT)
  local name = node.name:match('^.*[.:](.+)$') or node.name
  local _, last = text:find(name, 1, true)
  if last and not text:sub(1, last):find('\n') then
    text = text:sub(last + 1)
  end
  local from = text:match('^%s*%b<>%s*()%(')
    or text:match('^%s*()%(')
    or text:match('^%s*[:=]?=?%s*function%s*()%(')
    or text:match('^%s*=%s*a?s?y?n?c?%s*()%(')
  local list = from and brackets(text, from)
  if not list then
    return '()'
  end
  return '(' .. parameters(list, TYPE_FIRST[filetype] == true) .. ')'
end

---@param node mcp-tools.SymbolNode
---@return boolean
function M.is_called(node)
  return CALLED[node.kind] == true
end

--- Its lines: `25-67`.
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
---@field depth integer? levels; all when left out
---@field small boolean? false: without variables, fields and the like
---@field filetype string
---@field signatures boolean? false: without parameters

--- One symbol in one line.
---@param node mcp-tools.SymbolNode
---@param lines_of mcp-tools.LinesOf
---@param opts mcp-tools.OutlineOpts
---@return string
local function row(node, lines_of, opts)
  if CALLED[node.kind] then
    local signature = opts.signatures ~= false and M.signature(node, lines_of, opts.filetype) or '()'
    local where = #node.children > 0 and M.lines(node) or tostring(node.line)
    return ('%s%s %s'):format(clean(node.name), utf8.cut(signature, MAX_ROW), where)
  end
  return ('%s [%s] %s'):format(clean(node.name), node.kind, M.lines(node))
end

---@param list mcp-tools.SymbolNode[]
---@param lines_of mcp-tools.LinesOf
---@param opts mcp-tools.OutlineOpts
---@param out string[]|{ bytes: integer }
---@param level integer
local function add(list, lines_of, opts, out, level)
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
    if out.bytes > fit.MAX_BYTES then
      break -- it is going to be told in a shorter way
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
      local text = indent .. row(node, lines_of, opts)
      table.insert(out, text)
      out.bytes = out.bytes + #text + 1
      if not opts.depth or level + 1 < opts.depth then
        add(node.children, lines_of, opts, out, level + 1)
      end
    end
  end
  flush()
end

--- The outline of a file, as far as an answer can hold it and a little more.
---@param tree mcp-tools.SymbolNode[]
---@param lines_of mcp-tools.LinesOf
---@param opts mcp-tools.OutlineOpts
---@return string[] rows
function M.rows(tree, lines_of, opts)
  local out = { bytes = 0 }
  add(tree, lines_of, opts, out, 0)
  return out
end

M.row = row

return M

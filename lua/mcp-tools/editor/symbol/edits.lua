--- Edits that replace, insert beside or delete a symbol.
---
--- Receives: the lines of a file, where a symbol stands in them.
--- Sends: edits with positions from 0, columns in bytes.
--- Does not know about: buffers, how the symbol was found.

local strings = require('mcp-tools.util.strings')

local M = {}

---@param line string?
---@return string
local function indent_of(line)
  return line and line:match('^%s*') or ''
end

---@param line string?
local function is_blank(line)
  return line ~= nil and not line:find('%S')
end

---@param text string
---@return string[]
local function split(text)
  return vim.split(strings.trim_end(text:gsub('\r\n', '\n'):gsub('^\n+', '')), '\n', { plain = true })
end

--- The least indent of lines after the first.
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

--- Lines as they stand at an indent. They may come with it, without it, or without it in the first line alone.
---@param lines string[]
---@param indent string
---@param rest integer? the least indent of lines after the first, where they have theirs
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

--- The range that a new definition replaces: that level of the old one that begins alike, such as `export` or `@`;
--- else decorators and the like stay.
---@param lines string[]
---@param place mcp-tools.SymbolPlace
---@param new string[]
---@return mcp-tools.TextRange
local function replaced(lines, place, new)
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

--- Puts another definition in the place of a symbol.
---@param lines string[]
---@param place mcp-tools.SymbolPlace
---@param text string
---@return mcp-tools.Edit[]
function M.replace(lines, place, text)
  local new = split(text)
  local at = replaced(lines, place, new)
  local first = lines[at.row + 1] or ''
  if first:sub(1, at.col):find('%S') then
    return edit(at.row, at.col, at.end_row, at.end_col, table.concat(new, '\n'))
  end
  local old = vim.list_slice(lines, at.row + 1, at.end_row + 1)
  new = indented(new, first:sub(1, at.col), rest_indent(old))
  return edit(at.row, 0, at.end_row, at.end_col, table.concat(new, '\n'))
end

---@param row integer
---@return string
local function doubt_of(row)
  return ('without a syntax tree it is not known whether line %d belongs to it'):format(row + 1)
end

--- Blank lines from a row on.
---@param lines string[]
---@param row integer from 0
---@param step integer
---@return integer count
---@return boolean at_edge nothing comes behind them
local function blanks(lines, row, step)
  local count = 0
  while is_blank(lines[row + 1]) do
    count, row = count + 1, row + step
  end
  return count, lines[row + 1] == nil
end

--- Blank lines up to what is beside a symbol, in its parent or behind it.
---@param lines string[]
---@param row integer from 0, the first one that is not of the symbol
---@param step integer
---@param indent string of the symbol
---@return integer count
---@return boolean is_sibling
local function distance(lines, row, step, indent)
  local count, at_edge = blanks(lines, row, step)
  return count, not at_edge and #indent_of(lines[row + step * count + 1]) >= #indent
end

--- Writes text before or after a symbol, as far from it as its siblings are.
---@param lines string[]
---@param place mcp-tools.SymbolPlace
---@param text string
---@param where 'before'|'after'
---@return mcp-tools.Edit[]?
---@return string? doubt
function M.insert(lines, place, text, where)
  local at, top = place.whole, place.top
  if where == 'before' and place.doubt then
    return nil, doubt_of(place.doubt)
  end
  local indent = indent_of(lines[at.row + 1])
  local new = indented(split(text), indent, nil)
  local near, is_near = distance(lines, top - 1, -1, indent)
  local far, is_far = distance(lines, at.end_row + 1, 1, indent)
  if where == 'after' then
    near, is_near, far, is_far = far, is_far, near, is_near
  end
  local gap = is_near and near or is_far and far or math.min(near, far)
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

--- Deletes a symbol, with what belongs to it above and the blank lines that would be left over.
---@param lines string[]
---@param place mcp-tools.SymbolPlace
---@return mcp-tools.Edit[]?
---@return string? doubt
function M.delete(lines, place)
  local at, top = place.whole, place.top
  local head, tail = lines[at.row + 1]:sub(1, at.col), lines[at.end_row + 1]:sub(at.end_col + 1)
  if place.doubt then
    return nil, doubt_of(place.doubt)
  elseif head:find('%S') or tail:find('^[;,%s]*[^;,%s/#%-]') then
    return nil, ('line %d has other code'):format(head:find('%S') and at.row + 1 or at.end_row + 1)
  end
  local above, at_top = blanks(lines, top - 1, -1)
  local below, at_end = blanks(lines, at.end_row + 1, 1)
  local first, last = top, at.end_row
  local opener = not at_top and #indent_of(lines[top - above]) < #indent_of(lines[at.row + 1])
  if at_end then
    first = top - above
  elseif at_top or opener and above == 0 or below > 0 and below <= above then
    last = last + below
  elseif above > 0 and above < below then
    first = top - above
  end
  return edit(first, 0, last + 1, 0, '')
end

return M

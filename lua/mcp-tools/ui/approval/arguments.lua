--- Formats the arguments of a call for a question. No argument can hide another or imitate other lines.

local json = require('mcp-tools.util.json')
local sanitize = require('mcp-tools.util.sanitize')

local M = {}

--- Maximum number of bytes of all arguments together; layout takes time.
M.MAX_BYTES = 64 * 1024
--- Last line of an argument that was cut.
M.CUT = '    … CUT'
--- Minimum of bytes for each argument, so that a long one cannot hide others.
local MIN_SHARE = 256
local MAX_DEPTH = 100
--- A line counts as at least this many bytes, which limits the number of empty lines.
local MIN_LINE = 32
--- Maximum width of a list in one line.
local MAX_ROW = 60
--- Maximum number of lines that are counted.
local MAX_COUNTED = 10000

---@class mcp-tools.ApprovalLines
---@field lines string[]
---@field bytes integer
---@field max integer
---@field cut boolean?
---@field one_line boolean? the lines will be joined, so a text with line breaks must not become several

---@param out mcp-tools.ApprovalLines
---@param line string
---@return boolean added false if the limit is reached
local function add(out, line)
  if out.bytes > out.max then
    out.cut = true
    return false
  end
  if #line > out.max then
    line = line:sub(1, out.max):gsub('[\192-\255]?[\128-\191]*$', '') .. '…'
    out.cut = true
  end
  out.bytes = out.bytes + math.max(#line, MIN_LINE) + 1
  table.insert(out.lines, line)
  return true
end

--- Bytes that are sanitized at once: the text may become eight times as long.
local PIECE = 4096

--- Sanitizes a line, or as much of it as is shown.
---@param line string
---@param max integer bytes
---@param sanitize_piece fun(text: string): string
---@return string
local function sanitized(line, max, sanitize_piece)
  local out, size, at = {}, 0, 1
  while at <= #line and size <= max do
    local last = math.min(at + PIECE - 1, #line)
    last = last + vim.str_utf_end(line, last)
    out[#out + 1] = sanitize_piece(line:sub(at, last))
    size, at = size + #out[#out], last + 1
  end
  return table.concat(out)
end

--- Adds the lines of a text behind a bar, so that they cannot imitate other lines.
---@param out mcp-tools.ApprovalLines
---@param text string
---@param margin string
local function add_block(out, text, margin)
  for line in vim.gsplit(text:sub(1, out.max + 1), '\n', { plain = true }) do
    if not add(out, ('%s│ %s'):format(margin, sanitized(line, out.max, sanitize.text))) then
      break
    end
  end
  out.cut = out.cut or #text > out.max
end

--- Returns the lines of a text behind a bar.
---@param text string
---@param max integer bytes
---@return string[] lines
---@return boolean cut
function M.block(text, max)
  local out = { lines = {}, bytes = 0, max = max }
  add_block(out, text, '  ')
  return out.lines, out.cut == true
end

local function sorted_keys(value)
  local keys = vim.tbl_keys(value)
  table.sort(keys, function(a, b)
    if type(a) == type(b) and type(a) == 'number' then
      return a < b
    end
    return tostring(a) < tostring(b)
  end)
  return keys
end

--- Formats a value that is neither a string nor a table, with all digits.
---@param value any
---@return string
local function plain(value)
  if value == vim.NIL then
    return 'null'
  end
  return type(value) == 'number' and json.encode(value) or sanitize.line(tostring(value))
end

--- Formats a name, quoted if it is not a plain word.
---@param key any
---@return string
function M.label(key)
  local text = type(key) == 'string' and sanitize.line(key) or plain(key)
  return text:find('^[%w_%-.]+$') and text or '"' .. text:gsub('["\\]', '\\%0') .. '"'
end

--- Counts the lines of a text.
---@param text string
---@return integer count
---@return boolean more there are more than MAX_COUNTED
local function count_lines(text)
  local count, at = 1, text:find('\n', 1, true)
  while at and count < MAX_COUNTED do
    count, at = count + 1, text:find('\n', at + 1, true)
  end
  return count, at ~= nil
end

---@param text string
---@return string
local function quoted(text)
  return ('"%s"'):format((text:gsub('["\\]', '\\%0')))
end

--- Formats a short list of plain values in one line, such as the words of a command.
---@param value table
---@param room integer cells
---@return string? row nil if it does not fit or contains other values
local function row_of(value, room)
  if not vim.islist(value) then
    return nil
  end
  local parts = {}
  for i, item in ipairs(value) do
    if i > room or type(item) == 'table' or type(item) == 'string' and (#item > room or item:find('\n', 1, true)) then
      return nil
    end
    parts[i] = type(item) == 'string' and quoted(sanitize.line(item)) or plain(item)
  end
  local row = '[' .. table.concat(parts, ', ') .. ']'
  return vim.api.nvim_strwidth(row) <= room and row or nil
end

---@param out mcp-tools.ApprovalLines
---@param label string with a colon, or empty
---@param value any
---@param margin string
---@param depth integer
local function add_value(out, label, value, margin, depth)
  local start = margin .. label
  if type(value) == 'string' then
    if value:find('\n', 1, true) and not out.one_line then
      local count, more = count_lines(value)
      add(out, ('%stext of %s%d lines'):format(start, more and 'more than ' or '', count))
      return add_block(out, value, margin .. '  ')
    end
    local cut = #value > out.max
    local line = sanitized(value:sub(1, out.max), out.max, sanitize.line):sub(1, out.max + 1)
    add(out, start .. quoted(line))
    out.cut = out.cut or cut
  elseif type(value) == 'table' and next(value) == nil then
    add(out, start .. (vim.islist(value) and '[]' or '{}'))
  elseif type(value) == 'table' and depth < MAX_DEPTH then
    local row = row_of(value, MAX_ROW - #start)
    if row then
      return add(out, start .. row)
    elseif label ~= '' and not add(out, start) then
      return
    end
    local list = vim.islist(value)
    for _, key in ipairs(sorted_keys(value)) do
      if out.cut then
        return
      end
      add_value(out, (list and '- [%s] ' or '%s: '):format(M.label(key)), value[key], margin .. '  ', depth + 1)
    end
  else
    add(out, start .. plain(value))
  end
end

---@class mcp-tools.ApprovalArgument
---@field lines string[]
---@field label_bytes integer label in the first line, including margin and colon
---@field rank integer for sorting: by size, then by position

--- Formats arguments, the shortest first. Arguments that the tool declares have precedence, so that others cannot use
--- up the limit.
---@param args table
---@param known table<string, any> arguments that the tool declares
---@param summary? { max: integer, min_share: integer } for one line: maximum bytes of all arguments together, and bytes
---  that each gets in any case
---@return mcp-tools.ApprovalArgument[] list
---@return string heading says how many were cut
---@return integer left number of arguments that are not in the list
function M.format(args, known, summary)
  local max = summary and summary.max or M.MAX_BYTES
  local keys, others = {}, {}
  for _, key in ipairs(sorted_keys(args)) do
    table.insert(known[key] ~= nil and keys or others, key)
  end
  vim.list_extend(keys, others)
  local share = math.max(summary and summary.min_share or MIN_SHARE, math.floor(max / math.max(1, #keys)))
  local list, bytes, cut, left = {}, 0, 0, 0
  for i, key in ipairs(keys) do
    local out = { lines = {}, bytes = 0, max = share, one_line = summary ~= nil }
    local label = M.label(key) .. ': '
    add_value(out, label, args[key], '  ', 1)
    bytes = bytes + out.bytes
    if out.cut then
      cut = cut + 1
      table.insert(out.lines, M.CUT)
    end
    list[i] = { lines = out.lines, label_bytes = math.min(#label + 2, #out.lines[1]), rank = out.bytes * #keys + i }
    if bytes > 2 * max and i < #keys then
      left = #keys - i
      cut = cut + left
      break
    end
  end
  table.sort(list, function(a, b)
    return a.rank < b.rank
  end)
  local heading = cut > 0 and (', CUT: %d of %d are too long to show completely'):format(cut, #keys) or ''
  return list, 'arguments' .. heading, left
end

return M

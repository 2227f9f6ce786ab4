--- Tool results: pages of lists, ranges of lines, valid UTF-8, and texts that are reduced to fit.

local errors = require('mcp-tools.errors')
local strings = require('mcp-tools.util.strings')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum size of a result in bytes, about 6,000 tokens.
M.MAX_BYTES = 24000
--- Maximum size of the text of a range of lines, in bytes.
M.MAX_TEXT = 256 * 1024

--- One representation of a result.
---@class mcp-tools.Variant
---@field text string|string[]|(fun(): string|string[])|nil text or lines; nil: not available
---@field without string? what it omits, compared with the first

--- Returns the first variant that fits, otherwise the last one.
---@param variants mcp-tools.Variant[]
---@param narrow string advice which arguments reduce the result
---@param max? integer bytes
---@return string
function M.longest(variants, narrow, max)
  max = max or M.MAX_BYTES
  local text, note
  for i, variant in ipairs(variants) do
    local candidate = variant.text
    candidate = type(candidate) == 'function' and candidate() or candidate
    if candidate then
      text = type(candidate) == 'table' and table.concat(candidate, '\n') or candidate
      note = variant.without and ('(too large to show %s; %s)'):format(variant.without, narrow) or nil
      if #text <= max or i == #variants then
        break
      end
    end
  end
  if #text > max then
    text = strings.whole_lines(text:sub(1, max)) .. '…'
  end
  return note and text .. '\n' .. note or text
end

--- Returns a number with its noun: `1 file`, `2 files`.
---@param number integer
---@param noun string singular
---@param plural? string default: with an s
---@return string
function M.count(number, noun, plural)
  return ('%d %s'):format(number, number == 1 and noun or plural or noun .. 's')
end

--- Adds what the user did in a review of an edit.
---@param rows string[]
---@param answer { rejected: mcp-tools.Rejected[]?, edited_by_user: boolean? }
function M.add_review(rows, answer)
  for _, one in ipairs(answer.rejected or {}) do
    local reason = one.reason and ': ' .. one.reason or ''
    table.insert(rows, ('rejected by the user: %s:%d%s'):format(one.path, one.line, reason))
  end
  if answer.edited_by_user then
    table.insert(rows, 'the user changed the proposed text; read it before you continue')
  end
end

--- Adds to the first line of a text which part of a list is shown.
---@param head string
---@param args { limit: integer, offset: integer }
---@param total integer
---@return string
function M.with_range(head, args, total)
  local last = math.min(args.offset + args.limit, total)
  if args.offset == 0 and last == total then
    return head
  end
  head = ('%s; %d-%d shown'):format(head, math.min(args.offset + 1, last), last)
  return head .. (last < total and (', offset=%d continues'):format(last) or '')
end

---@class mcp-tools.ListPage
---@field total integer
---@field next_offset integer?
---@field [string] any[] the items, added by the tool

--- Returns a page of a list and the offset of the next one.
---@param list any[]
---@param args { limit: integer, offset: integer }
---@return any[] items
---@return mcp-tools.ListPage about
function M.page(list, args)
  local items = vim.list_slice(list, args.offset + 1, math.min(#list, args.offset + args.limit))
  local next_offset = args.offset + #items
  return items, { total = #list, next_offset = #items > 0 and next_offset < #list and next_offset or nil }
end

---@generic T
---@param value T
---@return T copy
---@return boolean lossy whether invalid bytes were replaced
local function clean(value)
  if type(value) == 'string' then
    return utf8.repair(value)
  elseif type(value) ~= 'table' then
    return value, false
  end
  local copy, lossy = setmetatable({}, getmetatable(value)), false
  for key, item in pairs(value) do
    local new_key, key_lossy = clean(key)
    local new_item, item_lossy = clean(item)
    copy[new_key] = new_item
    lossy = lossy or key_lossy or item_lossy
  end
  return copy, lossy
end

--- Returns a copy in valid UTF-8. Its field `lossy` is set if invalid bytes were replaced.
---@param data table
---@return table
function M.utf8(data)
  local copy, lossy = clean(data)
  copy.lossy = lossy or copy.lossy
  return copy
end

--- Returns the end of a text, starting at a whole line.
---@param text string
---@param max integer bytes
---@return string
---@return boolean cut
function M.tail(text, max)
  if #text <= max then
    return text, false
  end
  text = text:sub(-max)
  return text:match('^[^\n]*\n(.+)$') or text, true
end

--- Returns a range of lines as fields of a result: as many as fit, and the number of the next one.
---@param lines string[] the requested range
---@param about table other fields of the result; modified in place
---@param args { start_line: integer, end_line: integer? } the requested range
---@param total integer
---@return table
function M.lines(lines, about, args, total)
  local bytes, count = 0, 0
  for i, line in ipairs(lines) do
    bytes = bytes + #line + 1
    if bytes > M.MAX_TEXT and i > 1 then
      break
    end
    count = i
  end
  local text = table.concat(lines, '\n', 1, count)
  local is_cut = #text > M.MAX_TEXT
  local last = args.start_line + count - 1
  local whole, lossy = utf8.repair(text:sub(1, M.MAX_TEXT))
  about.text = whole
  about.lines, about.start_line, about.end_line = total, args.start_line, last
  about.next_line = last < math.min(args.end_line or total, total) and last + 1 or nil
  about.truncated = (is_cut or count < #lines) and true or nil
  about.lossy = lossy or nil
  return about
end

--- Returns why a range is not valid for the text.
---@param args { start_line: integer, end_line: integer? }
---@param total integer
---@return mcp-tools.Error?
function M.range_fault(args, total)
  if args.end_line and args.end_line < args.start_line then
    return errors.new('validation_error', 'end_line: must not be before start_line')
  elseif args.start_line > math.max(total, 1) then
    local text = ('start_line: line %d is beyond the end (%d lines)'):format(args.start_line, total)
    return errors.new('validation_error', text)
  end
end

--- Returns the last requested line.
---@param args { start_line: integer, end_line: integer?, limit: integer }
---@param total number
---@return number
function M.last_line(args, total)
  return math.min(args.end_line or total, args.start_line + args.limit - 1, total)
end

return M

--- Tool results: pages of lists, valid UTF-8, and texts that are reduced to fit.

local strings = require('mcp-tools.util.strings')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum size of a result in bytes, about 6,000 tokens.
M.MAX_BYTES = 24000

--- One representation of a result.
---@class mcp-tools.Variant
---@field text fun(): string? nil: not available
---@field without string? what it leaves out, compared with the first

--- Returns the first variant that fits, otherwise the last one.
---@param variants mcp-tools.Variant[]
---@param narrow string advice which arguments reduce the result
---@param max? integer bytes
---@return string
function M.longest(variants, narrow, max)
  max = max or M.MAX_BYTES
  local text, note
  for i, variant in ipairs(variants) do
    local candidate = variant.text()
    if candidate then
      text = candidate
      note = variant.without and ('(too much for %s; %s)'):format(variant.without, narrow) or nil
      if #candidate <= max or i == #variants then
        break
      end
    end
  end
  if #text > max then
    text = strings.whole_lines(text:sub(1, max)) .. '…'
  end
  return note and text .. '\n' .. note or text
end

---@class mcp-tools.ListPage
---@field total integer
---@field next_offset integer?

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

return M

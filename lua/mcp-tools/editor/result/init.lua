--- Results of tools: pages of lists, valid UTF-8, and texts that become smaller instead of failing.

local strings = require('mcp-tools.util.strings')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Bytes: some 6 000 tokens. Longer answers push out of a model's context what it needs.
M.MAX_BYTES = 24000

--- One way to tell a result.
---@class mcp-tools.Variant
---@field text fun(): string? nil: there is no such way
---@field without string? what it leaves out of the first

--- The longest text that fits; the last one is taken in any case.
---@param variants mcp-tools.Variant[]
---@param narrow string which arguments make it less
---@param max? integer bytes
---@return string
function M.longest(variants, narrow, max)
  max = max or M.MAX_BYTES
  local text, note
  for i, variant in ipairs(variants) do
    local told = variant.text()
    if told then
      text = told
      note = variant.without and ('(too much for %s; %s)'):format(variant.without, narrow) or nil
      if #told <= max or i == #variants then
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

--- Some items of a list, and where the next page begins.
---@param list any[]
---@param args { limit: integer, offset: integer }
---@return any[] items
---@return mcp-tools.ListPage about
function M.page(list, args)
  local items = vim.list_slice(list, args.offset + 1, math.min(#list, args.offset + args.limit))
  local behind = args.offset + #items
  return items, { total = #list, next_offset = #items > 0 and behind < #list and behind or nil }
end

---@generic T
---@param value T
---@return T copy
---@return boolean lossy something was replaced
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

--- A copy in UTF-8. `lossy` is set in it where something was replaced.
---@param data table
---@return table
function M.utf8(data)
  local copy, lossy = clean(data)
  copy.lossy = lossy or copy.lossy
  return copy
end

--- The end of a text, from a whole line on.
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

--- Fit: results that become smaller instead of failing: all, then without what is around it, then counts, then a total.
---
--- Receives: ways to tell the same, from the longest to the shortest.
--- Sends: the first that there is room for, with a word of what was left out and which argument narrows it.
--- Does not know about: what is told.

local strings = require('mcp-tools.util.strings')

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

return M

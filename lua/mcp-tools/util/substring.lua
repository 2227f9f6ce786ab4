--- Substring search in linear time (Knuth, Morris and Pratt).
---
--- `string.find` is quadratic: it searches 400 kB of one letter in 3 MB of it for minutes.

local ffi = require('mcp-tools.util.optional').load('ffi')

local M = {}

--- Maximum needle size for `string.find`, in bytes.
local SHORT = 64

--- Returns a function that finds `needle` from a byte of a text on and returns its first and last byte, or nil.
---@param needle string not empty
---@return fun(text: string, from: integer): integer?, integer?
function M.finder(needle)
  local size = #needle
  if size <= SHORT then
    return function(text, from)
      return text:find(needle, from, true)
    end
  end
  local byte = string.byte
  -- The failure function: length of the longest border of each prefix.
  local ends = ffi.new('int32_t[?]', size + 1)
  local matched = 0
  for i = 2, size do
    local b = byte(needle, i)
    while matched > 0 and byte(needle, matched + 1) ~= b do
      matched = ends[matched]
    end
    if byte(needle, matched + 1) == b then
      matched = matched + 1
    end
    ends[i] = matched
  end
  return function(text, from)
    local done = 0
    if #text - from + 1 < size then
      return nil
    end
    for i = from, #text do
      local b = byte(text, i)
      while done > 0 and byte(needle, done + 1) ~= b do
        done = ends[done]
      end
      if byte(needle, done + 1) == b then
        done = done + 1
        if done == size then
          return i - size + 1, i
        end
      end
    end
  end
end

return M

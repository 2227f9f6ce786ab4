--- Line diff of two texts: what `vim.diff` finds, where that takes no time that anybody notices.
---
--- Receives: two texts.
--- Sends: their differences; one from the first that differs to the last where they have too little in common.
--- Does not know about: buffers, files.
---
--- `vim.diff` holds up the editor for seconds on hundreds of thousands of lines of which tens of thousands differ.

local M = {}

--- It has moved in Neovim 0.12.
local diff = vim.text and vim.text.diff or vim.diff

--- Bytes of both texts that are compared, whatever they say.
local SMALL = 64 * 1024
--- Lines that may differ, as a rough look counts them.
local MAX_CHANGED = 20000
--- Bytes that are compared at once, after so many lines that are the same.
local BLOCK, RUN = 4096, 64
--- Lines looked ahead, and bytes that have to be the same there.
local AHEAD, SAME = 4, 24
--- Bytes of a line and what follows it that are looked for, how far, and in all.
local PROBE, WINDOW, MAX_LOOKED = 64, 256 * 1024, 8 * 1024 * 1024

---@param text string
---@param from integer
---@return integer byte behind the line
local function behind(text, from)
  return (text:find('\n', from, true) or #text) + 1
end

---@param text string
---@return integer lines; one without an end counts
local function count(text)
  local _, ends = text:gsub('\n', '')
  return ends + (text ~= '' and text:sub(-1) ~= '\n' and 1 or 0)
end

---@param text string
---@param from integer
---@return integer[] where this line and those after it begin, from 0
local function starts(text, from)
  local list = { [0] = from }
  for i = 1, AHEAD do
    list[i] = behind(text, list[i - 1])
  end
  return list
end

--- Where one of two places goes on in the other text, a few lines further.
---@return integer? i, integer? j, integer? lines that lie between
local function near(one, two, at, other)
  for lines = 1, 2 * AHEAD do
    for a = math.max(0, lines - AHEAD), math.min(lines, AHEAD) do
      local i, j = at[a], other[lines - a]
      if one:sub(i, i + SAME - 1) == two:sub(j, j + SAME - 1) then
        return i, j, lines
      end
    end
  end
end

--- Where a text is found in another, further on.
---@param text string
---@param from integer
---@param other string
---@param place integer
---@return integer? place
---@return integer? lines that lie between
local function far(text, from, other, place)
  local probe = text:sub(from, from + PROBE - 1)
  local passed = other:sub(place, place + WINDOW)
  local found = #probe == PROBE and passed:find(probe, 1, true)
  if found then
    return place + found - 1, count(passed:sub(1, found - 1)) + 1
  end
end

--- Do two texts differ in more lines than can be compared at once? Counts them roughly, and rather too many.
---@param one string
---@param two string
---@return boolean
function M.is_far(one, two)
  if #one + #two <= SMALL then
    return false
  end
  local i, j, changed, run, looked = 1, 1, 0, RUN, 0
  while i <= #one and j <= #two do
    local next_i, next_j = behind(one, i), behind(two, j)
    if run >= RUN and one:sub(i, i + BLOCK - 1) == two:sub(j, j + BLOCK - 1) then
      i, j = i + BLOCK, j + BLOCK
    elseif next_i - i == next_j - j and one:sub(i, next_i - 1) == two:sub(j, next_j - 1) then
      i, j, run = next_i, next_j, run < RUN and run + 1 or 0
    else
      local at, other = starts(one, i), starts(two, j)
      local new_i, new_j, lines = near(one, two, at, other)
      if not new_i and looked < MAX_LOOKED then
        local added_j, added = far(one, at[1], two, j)
        local removed_i, removed = far(two, other[1], one, i)
        if added and (not removed or added <= removed) then
          new_i, new_j, lines = at[1], added_j, added
        elseif removed then
          new_i, new_j, lines = removed_i, other[1], removed
        end
        looked = looked + (new_i and (new_i - i) + (new_j - j) or 2 * WINDOW)
      end
      i, j = new_i or at[AHEAD], new_j or other[AHEAD]
      changed, run = changed + (lines or 2 * AHEAD), 0
      if changed > MAX_CHANGED then
        return true
      end
    end
  end
  return changed + count(one:sub(i)) + count(two:sub(j)) > MAX_CHANGED
end

--- Bytes that two texts have in common, in whole lines.
---@param one string
---@param two string
---@return integer at the beginning
local function common_start(one, two)
  local at, most = 1, math.min(#one, #two)
  while at <= most and one:sub(at, at + BLOCK - 1) == two:sub(at, at + BLOCK - 1) do
    at = at + BLOCK
  end
  local start = at
  while start > 1 and one:byte(start - 1) ~= 10 do
    start = start - 1
  end
  while start <= most do
    local stop = behind(one, start)
    if one:sub(start, stop - 1) ~= two:sub(start, stop - 1) or one:byte(stop - 1) ~= 10 then
      break
    end
    start = stop
  end
  return start - 1
end

---@param one string
---@param two string
---@param from integer bytes at the beginning that are not looked at
---@return integer at the end
local function common_end(one, two, from)
  local most, length = math.min(#one, #two) - from, 0
  while length + BLOCK <= most and one:sub(-length - BLOCK, -length - 1) == two:sub(-length - BLOCK, -length - 1) do
    length = length + BLOCK
  end
  while length < most and one:byte(-length - 1) == two:byte(-length - 1) do
    length = length + 1
  end
  -- Back to where a line begins in both.
  while length > 0 and (one:byte(-length - 1) ~= 10 or two:byte(-length - 1) ~= 10) do
    length = length - 1
  end
  return length
end

--- Lines of a unified diff.
---@param text string
---@param sign '+'|'-'
---@return string
local function signed(text, sign)
  if text == '' then
    return ''
  elseif text:sub(-1) ~= '\n' then
    return sign .. text:gsub('\n', '\n' .. sign) .. '\n\\ No newline at end of file\n'
  end
  return sign .. text:sub(1, -2):gsub('\n', '\n' .. sign) .. '\n'
end

--- The difference of two texts that have too little in common: one.
---@param one string
---@param two string
---@param opts table
---@return integer[][]|string
local function coarse(one, two, opts)
  local first = common_start(one, two)
  local last = common_end(one, two, first)
  local old, new = one:sub(first + 1, #one - last), two:sub(first + 1, #two - last)
  local before, removed, added = count(one:sub(1, first)), count(old), count(new)
  local hunk = { before + math.min(removed, 1), removed, before + math.min(added, 1), added }
  if opts.result_type == 'indices' then
    return { hunk }
  end
  return ('@@ -%d,%d +%d,%d @@\n'):format(unpack(hunk)) .. signed(old, '-') .. signed(new, '+')
end

--- The differences.
---@param one string
---@param two string
---@param opts table of `vim.diff`: `result_type`, `ctxlen`
---@return integer[][]|string as `vim.diff` gives them
function M.of(one, two, opts)
  return M.is_far(one, two) and coarse(one, two, opts) or diff(one, two, opts)
end

return M

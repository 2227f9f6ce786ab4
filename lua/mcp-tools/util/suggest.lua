--- Suggests the nearest valid word for a mistyped one, by edit distance.

--- Edits (insert, delete or replace one byte, swap two neighbors) that turn `a` into `b`.
---@param a string
---@param b string
---@param most integer counting stops above this number
---@return integer edits at least `most + 1` if there are more
local function distance(a, b, most)
  local before, last, row = {}, {}, {}
  for j = 0, #b do
    last[j] = j
  end
  for i = 1, #a do
    local least, byte = i, a:byte(i)
    row[0] = i
    for j = 1, #b do
      local other = b:byte(j)
      local edits = math.min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (byte == other and 0 or 1))
      if i > 1 and j > 1 and byte == b:byte(j - 1) and a:byte(i - 1) == other then
        edits = math.min(edits, before[j - 2] + 1)
      end
      row[j] = edits
      least = math.min(least, edits)
    end
    if least > most + 1 then -- a swap may reduce it by one
      return least
    end
    before, last, row = last, row, before
  end
  return last[#b]
end

--- Maximum length of a compared word, since the comparison is quadratic.
local MAX_LENGTH = 64
--- Minimum length of an abbreviation.
local MIN_START = 3

--- Returns the shortest candidate that starts with `word` or is a prefix of it: `column` for `col`.
---@param word string
---@param candidates string[]
---@return string? candidate
local function abbreviated(word, candidates)
  local best
  for _, each in ipairs(candidates) do
    local low = each:lower()
    local starts = vim.startswith(low, word) or vim.startswith(word, low)
    if starts and math.min(#low, #word) >= MIN_START and (not best or #each < #best) then
      best = each
    end
  end
  return best
end

--- Returns the candidate closest to `word`, nil if none is close enough.
---@param word string
---@param candidates string[]
---@return string? near
---@return integer? edits edit distance
return function(word, candidates)
  if #word > MAX_LENGTH then
    return nil
  end
  local best, best_distance
  local lower = word:lower()
  -- With more than about half of the letters changed it is a different word.
  local most = math.max(1, math.floor(#word / 2))
  for _, candidate in ipairs(candidates) do
    -- A difference in length alone excludes most candidates.
    local limit = best_distance or most
    if math.abs(#candidate - #word) <= limit then
      local d = distance(lower, candidate:lower(), limit)
      if d <= limit and (not best or d < best_distance or (d == best_distance and candidate < best)) then
        best, best_distance = candidate, d
      end
    end
  end
  if not best then
    best = abbreviated(lower, candidates)
    best_distance = best and math.abs(#best - #word)
  end
  return best, best_distance
end

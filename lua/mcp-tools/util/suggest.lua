--- Suggestion for a mistyped word: the nearest of those that would have been right, by edit distance.
---
--- Receives: a word and candidates.
--- Sends: the closest one, or nil.
--- Does not know about: what the words name.

--- Edits (insert, delete or replace one byte, swap two neighbours) that turn `a` into `b`.
---@param a string
---@param b string
---@return integer
local function distance(a, b)
  local rows = { [0] = {} }
  for j = 0, #b do
    rows[0][j] = j
  end
  for i = 1, #a do
    local row = { [0] = i }
    rows[i] = row
    for j = 1, #b do
      local cost = a:byte(i) == b:byte(j) and 0 or 1
      row[j] = math.min(rows[i - 1][j] + 1, row[j - 1] + 1, rows[i - 1][j - 1] + cost)
      if i > 1 and j > 1 and a:byte(i) == b:byte(j - 1) and a:byte(i - 1) == b:byte(j) then
        row[j] = math.min(row[j], rows[i - 2][j - 2] + 1)
      end
    end
  end
  return rows[#a][#b]
end

--- A longer word is no slip of one of ours: comparing takes the product of both lengths.
local MAX_LENGTH = 64

--- The candidate closest to `word`; nil when none is near enough to be what was meant.
---@param word string
---@param candidates string[]
---@return string? near
---@return integer? edits that lie between
return function(word, candidates)
  if #word > MAX_LENGTH then
    return nil
  end
  local best, best_distance
  local lower = word:lower()
  for _, candidate in ipairs(candidates) do
    local d = #candidate <= MAX_LENGTH and distance(lower, candidate:lower()) or math.huge
    if not best_distance or d < best_distance or (d == best_distance and candidate < best) then
      best, best_distance = candidate, d
    end
  end
  -- More than about half of the letters changed is a different word, not a slip.
  if best and best_distance <= math.max(2, math.floor(#word / 2)) then
    return best, best_distance
  end
end

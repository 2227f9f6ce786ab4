--- Suggestion for a mistyped word: the nearest of those that would have been right, by edit distance.

--- Edits (insert, delete or replace one byte, swap two neighbours) that turn `a` into `b`.
---@param a string
---@param b string
---@param most integer more are of no interest
---@return integer edits at least `most + 1` when there are more
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
    if least > most + 1 then -- a swap may take one back
      return least
    end
    before, last, row = last, row, before
  end
  return last[#b]
end

--- A longer word is no slip of one of ours: comparing takes the product of both lengths.
local MAX_LENGTH = 64
--- Letters that a short form has at least.
local MIN_START = 3

--- The shortest candidate that begins with `word`, or that it begins with: `col` for `column`.
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
  -- More than about half of the letters changed is a different word, not a slip.
  local most = math.max(1, math.floor(#word / 2))
  for _, candidate in ipairs(candidates) do
    -- The lengths alone lie that far apart: most candidates need no comparing.
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

--- Sorts long lists with pauses.

--- Number of items sorted or merged between two pauses.
local PIECE = 1000

---@param list any[]
---@param before fun(a: any, b: any): boolean
---@return boolean
local function is_sorted(list, before)
  for i = 2, #list do
    if before(list[i], list[i - 1]) then
      return false
    end
  end
  return true
end

--- Merges two sorted ranges of a list, `first` to `middle` and the rest to `last`, into another list.
local function merge(from, to, first, middle, last, before, pause)
  local one, two = first, middle + 1
  for i = first, last do
    if one <= middle and (two > last or not before(from[two], from[one])) then
      to[i], one = from[one], one + 1
    else
      to[i], two = from[two], two + 1
    end
    if i % PIECE == 0 then
      pause()
    end
  end
end

---@generic T
---@param list T[] may be changed
---@param before fun(a: T, b: T): boolean
---@param pause fun()
---@return T[] sorted
return function(list, before, pause)
  if is_sorted(list, before) then
    return list
  end
  local sorted = {}
  for first = 1, #list, PIECE do
    local piece = vim.list_slice(list, first, first + PIECE - 1)
    table.sort(piece, before)
    vim.list_extend(sorted, piece)
    pause()
  end
  local width = PIECE
  while width < #list do
    local to = {}
    for first = 1, #list, 2 * width do
      local last = math.min(first + 2 * width - 1, #list)
      merge(sorted, to, first, math.min(first + width - 1, last), last, before, pause)
    end
    sorted, width = to, 2 * width
  end
  return sorted
end

-- Measures the longest block of the main thread, by the delay of a timer of 1 ms. Time in which the thread waited for
-- a processor is subtracted, so that load changes little; waiting for files is not. The start of a process, which
-- forks the whole editor and cannot be split, is measured separately: the longest one of each block.

local uv = vim.uv

local M = {}

local MS = 1e6
local file = assert(uv.fs_open('/proc/self/schedstat', 'r', 0))
local longest, whole, last, own = 0, 0, nil, 0
--- The longest start of a process since the last check, and since the last reset, ns.
local started, longest_start = 0, 0

--- Returns the times of the main thread since it began.
---@return number ran ns on a processor
---@return number waited ns for a processor
local function used()
  local ran, waited = assert(uv.fs_read(file, 64, 0)):match('^(%d+) (%d+)')
  return tonumber(ran), tonumber(waited)
end

local function look()
  local begun = uv.hrtime()
  local _, waited = used()
  local now = begun - waited
  whole = math.max(whole, now - last)
  longest, last, started = math.max(longest, now - last - started), now, 0
  own = own + uv.hrtime() - begun
end

--- Measures the start of each process.
local function measure_starts()
  local spawn = uv.spawn
  uv.spawn = function(...) -- luacheck: ignore 122
    local begun, _, waited = uv.hrtime(), used()
    local result = vim.F.pack_len(spawn(...))
    local ended, _, waited_then = uv.hrtime(), used()
    started = math.max(started, ended - begun - (waited_then - waited))
    longest_start = math.max(longest_start, started)
    return vim.F.unpack_len(result)
  end
end

--- Starts the measurement.
function M.watch()
  measure_starts()
  local _, waited = used()
  last = uv.hrtime() - waited
  M.timer = assert(uv.new_timer())
  M.timer:start(1, 1, look)
end

--- Resets the measurement.
---@return number ran ms on a processor so far, without the measurement
function M.reset()
  longest, whole, longest_start = 0, 0, 0
  return ((used()) - own) / MS
end

--- Returns the longest block since the reset.
---@return number ms without the start of one process
---@return number ran ms on a processor so far
---@return number whole ms, the longest block with it
---@return number start ms, the longest start of a process
function M.longest()
  return longest / MS, ((used()) - own) / MS, whole / MS, longest_start / MS
end

return M

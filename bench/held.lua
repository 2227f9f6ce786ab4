-- How long the main thread is held at a stretch: a timer of 1 ms looks how late it comes. What the system kept the
-- thread waiting for a processor does not count, so that a busy machine changes little; waiting for files does.
-- Receives: when to begin. Sends: ms. Does not know about: what holds it.

local uv = vim.uv

local M = {}

local MS = 1e6
local file = assert(uv.fs_open('/proc/self/schedstat', 'r', 0))
local longest, last, own = 0, nil, 0

--- Of the main thread, since it began.
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
  longest, last = math.max(longest, now - last), now
  own = own + uv.hrtime() - begun
end

--- Watches from now on.
function M.watch()
  local _, waited = used()
  last = uv.hrtime() - waited
  M.timer = assert(uv.new_timer())
  M.timer:start(1, 1, look)
end

--- Forgets what was before.
---@return number ran ms on a processor so far, without what watching takes
function M.reset()
  longest = 0
  return ((used()) - own) / MS
end

--- The longest stretch since then.
---@return number ms
---@return number ran ms on a processor so far
function M.longest()
  return longest / MS, ((used()) - own) / MS
end

return M

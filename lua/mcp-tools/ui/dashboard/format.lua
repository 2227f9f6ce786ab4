--- Formats of the dashboard: durations, sizes and bars.

local M = {}

local BARS = { '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█' }

---@param is_open boolean
---@return string
function M.fold(is_open)
  return is_open and '▾' or '▸'
end

--- Formats a duration in at most six cells.
---@param ms number
---@return string
function M.ms(ms)
  if ms < 10 then
    return ('%.1f ms'):format(ms)
  elseif ms < 1000 then
    return ('%.0f ms'):format(ms)
  elseif ms < 60e3 then
    return ('%.1f s'):format(ms / 1e3)
  end
  return M.age(ms * 1e6)
end

--- Formats an age in whole units, so that it rarely changes.
---@param ns integer
---@return string
function M.age(ns)
  local seconds = math.floor(ns / 1e9)
  if seconds < 60 then
    return ('%d s'):format(seconds)
  elseif seconds < 3600 then
    return ('%d min'):format(math.floor(seconds / 60))
  end
  return ('%d h'):format(math.floor(seconds / 3600))
end

--- Formats bytes as tokens of a model, four bytes each.
---@param bytes integer
---@return string
function M.tokens(bytes)
  local tokens = math.ceil(bytes / 4)
  return tokens < 1000 and ('%d'):format(tokens) or ('%.1fk'):format(tokens / 1000)
end

--- Formats values as bars of one cell, relative to the largest.
---@param values number[]
---@return string
function M.sparkline(values)
  local most = 0
  for _, value in ipairs(values) do
    most = math.max(most, value)
  end
  local out = {}
  for i, value in ipairs(values) do
    local step = most > 0 and math.ceil(value / most * #BARS) or 1
    out[i] = BARS[math.max(1, math.min(#BARS, step))]
  end
  return table.concat(out)
end

--- Formats a progress bar.
---@param share number 0 to 1
---@param cells integer
---@return string
function M.bar(share, cells)
  local full = math.floor(math.max(0, math.min(1, share)) * cells + 0.5)
  return ('█'):rep(full) .. ('░'):rep(cells - full)
end

return M

--- JSON with comments and trailing commas, as editors keep their settings.
---
--- Receives: text.
--- Sends: the value, or why it is none.
--- Does not know about: what it is for.

local M = {}

--- The text without comments and trailing commas; strings stay as they are, and lines where they were.
---@param text string
---@return string
local function plain(text)
  local out, at = {}, 1
  while at <= #text do
    local from = text:find('["/,]', at)
    if not from then
      break
    end
    table.insert(out, text:sub(at, from - 1))
    local char = text:sub(from, from)
    local stop
    if char == '"' then
      stop = from + 1
      while true do
        local found = text:find('["\\]', stop)
        if not found then
          stop = #text
          break
        elseif text:sub(found, found) == '"' then
          stop = found
          break
        end
        stop = found + 2
      end
      table.insert(out, text:sub(from, stop))
    elseif char == ',' then
      -- Comments may stand before the bracket, too.
      local rest = from + 1
      while true do
        local _, blank = text:find('^%s*', rest)
        local _, line = text:find('^//[^\n]*', blank + 1)
        local _, block = text:find('^/%*.-%*/', blank + 1)
        if not line and not block then
          rest = blank + 1
          break
        end
        rest = (line or block) + 1
      end
      stop = from
      table.insert(out, text:find('^[%]}]', rest) and '' or ',')
    else
      local _, line = text:find('^//[^\n]*', from)
      local _, block = text:find('^/%*.-%*/', from)
      stop = line or block or from
      table.insert(out, (line or block) and ' ' or '/')
    end
    at = stop + 1
  end
  table.insert(out, text:sub(at))
  return table.concat(out)
end

--- The value of a text.
---@param text string
---@return any value
---@return string? fault
function M.decode(text)
  local ok, value = pcall(vim.json.decode, plain((text:gsub('^\239\187\191', ''))), { luanil = { object = true } })
  if not ok then
    return nil, tostring(value)
  end
  return value
end

return M

--- JSON as people read it.
---
--- Receives: compact JSON text.
--- Sends: it as people read it: a line for each value, keys in order; scalars stay as they are written, so that no
--- digit changes.
--- Does not know about: values; the text is taken to be JSON.

local INDENT = '  '

---@param text string
---@param at integer of the opening quote
---@return integer after the closing one
local function after_string(text, at)
  local from = at + 1
  while true do
    local found = text:find('["\\]', from)
    if not found then
      return #text + 1
    elseif text:byte(found) == 34 then
      return found + 1
    end
    from = found + 2
  end
end

local read

--- The items between brackets, each as text.
---@param text string
---@param at integer of the opening bracket
---@param margin string
---@return string shown
---@return integer after
local function read_items(text, at, margin)
  local is_object, inner = text:byte(at) == 123, margin .. INDENT
  local items = {}
  at = text:find('%S', at + 1) or #text + 1
  while at <= #text and not text:find('^[%]}]', at) do
    local key, item
    if is_object then
      local stop = after_string(text, at)
      key = text:sub(at, stop - 1)
      at = (text:find(':', stop, true) or #text) + 1
    end
    item, at = read(text, text:find('%S', at) or #text + 1, inner)
    items[#items + 1] = { key = key or '', text = inner .. (key and key .. ': ' or '') .. item }
    at = text:find('[^%s,]', at) or #text + 1
  end
  local open, close = is_object and '{' or '[', is_object and '}' or ']'
  if #items == 0 then
    return open .. close, at + 1
  end
  if is_object then
    table.sort(items, function(a, b)
      return a.key < b.key
    end)
  end
  local lines = {}
  for i, entry in ipairs(items) do
    lines[i] = entry.text
  end
  return ('%s\n%s\n%s%s'):format(open, table.concat(lines, ',\n'), margin, close), at + 1
end

---@param text string
---@param at integer
---@param margin string
---@return string shown
---@return integer after
read = function(text, at, margin)
  local byte = text:byte(at)
  if byte == 123 or byte == 91 then
    return read_items(text, at, margin)
  elseif byte == 34 then
    local stop = after_string(text, at)
    return text:sub(at, stop - 1), stop
  end
  local stop = text:find('[%s,%]}]', at + 1) or #text + 1
  return text:sub(at, stop - 1), stop
end

---@param text string
---@return string
return function(text)
  return (read(text, text:find('%S') or 1, ''))
end

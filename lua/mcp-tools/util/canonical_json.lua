--- One text for one value, in whatever order its tables hold their keys: what is hashed.
---
--- Receives: arguments and definitions.
--- Sends: JSON with sorted keys and nothing left out, and its SHA-256.
--- Does not know about: who compares. What clients get is written by util/json.lua.

local M = {}

--- Nesting beyond what any client may send; a table that holds itself ends here too.
local MAX_DEPTH = 128

--- Strings of this length are quoted when the text is needed: it takes 20 ns a byte, and strings do not change.
local LONG = 32
--- From here on the encoder is the faster way to quote, as far as it writes the same.
local ENCODED = 256
--- Bytes that are quoted in one go.
local CHUNK = 64 * 1024

local EMPTY_DICT = getmetatable(vim.empty_dict())
local concat, floor, format, sort = table.concat, math.floor, string.format, table.sort

local SHORT = { ['"'] = '\\"', ['\\'] = '\\\\', ['\b'] = '\\b', ['\f'] = '\\f', ['\n'] = '\\n', ['\r'] = '\\r' }
SHORT['\t'] = '\\t'

local function escape(char)
  return SHORT[char] or format('\\u%04x', char:byte())
end

---@param text string
---@return string
local function quote(text)
  if #text >= ENCODED then
    -- A pattern takes 12 ns a character, the encoder far less. It escapes the same but for these two.
    local encoded = vim.json.encode(text)
    if #encoded == #text + 2 or not text:find('[/\127]') then
      return encoded
    end
  end
  return text:find('[%z\1-\31"\\]') and '"' .. text:gsub('[%z\1-\31"\\]', escape) .. '"' or '"' .. text .. '"'
end

---@param value number
---@return string the shortest that is this number
local function number(value)
  if value == floor(value) and value < 2 ^ 63 and value > -2 ^ 63 then
    return format('%d', value)
  end
  for digits = 15, 16 do
    local text = format('%.' .. digits .. 'g', value)
    if tonumber(text) == value then
      return text
    end
  end
  return format('%.17g', value)
end

--- The same for a text of any length.
---@param text string
---@param pause fun()
---@return string
local function quote_long(text, pause)
  if #text <= CHUNK then
    return quote(text)
  end
  local out = {}
  for at = 1, #text, CHUNK do
    out[#out + 1] = quote(text:sub(at, at + CHUNK - 1)):sub(2, -2)
    pause()
  end
  return '"' .. concat(out) .. '"'
end

local write

--- The length of a list; nil for anything that has other keys.
local function list_length(value)
  local count = 0
  for key in pairs(value) do
    if type(key) ~= 'number' then
      return nil
    end
    count = count + 1
  end
  return count == #value and (count > 0 or getmetatable(value) ~= EMPTY_DICT) and count or nil
end

local function write_table(out, value, depth)
  if depth > MAX_DEPTH then
    error('nested too deep to be hashed', 0)
  end
  local length = list_length(value)
  if length then
    out[#out + 1] = '['
    for i = 1, length do
      out[#out + 1] = i > 1 and ',' or nil
      write(out, value[i], depth + 1)
    end
    out[#out + 1] = ']'
    return
  end
  local names, items = {}, {}
  for key, item in pairs(value) do
    -- A number as a key beside others is no JSON; it must not look like the same text as a key.
    local name = type(key) == 'string' and key or '\0' .. tostring(key)
    names[#names + 1], items[name] = name, item
  end
  sort(names)
  out[#out + 1] = '{'
  for i, name in ipairs(names) do
    out[#out + 1] = (i > 1 and ',' or '') .. quote(name) .. ':'
    write(out, items[name], depth + 1)
  end
  out[#out + 1] = '}'
end

--- Leaves the text of a value for later.
local function put_raw(out, value)
  local raw, n = out.raw, #out + 1
  if not raw then
    raw = {}
    out.raw = raw
  end
  out[n], raw[#raw + 1] = value, n
end

write = function(out, value, depth)
  local kind = type(value)
  if kind == 'string' then
    if #value < LONG then
      out[#out + 1] = quote(value)
    else
      put_raw(out, value)
    end
  elseif kind == 'number' then
    if value == floor(value) then
      out[#out + 1] = number(value)
    else
      put_raw(out, value)
    end
  elseif kind == 'table' then
    write_table(out, value, depth)
  elseif kind == 'boolean' then
    out[#out + 1] = tostring(value)
  else
    out[#out + 1] = (value == nil or value == vim.NIL) and 'null' or format('"<%s>"', kind)
  end
end

--- What is needed to make the text later, whatever happens to the value meanwhile. Raises for what is nested without
--- end.
---@param value any
---@return table snapshot
function M.snapshot(value)
  local out = {}
  write(out, value, 1)
  return out
end

local function nothing() end

--- The text of a snapshot.
---@param snapshot table
---@param pause? fun() called between pieces of work
---@return string
function M.text_of(snapshot, pause)
  pause = pause or nothing
  local out, raw = snapshot, snapshot.raw
  if raw then
    out = {}
    for n = 1, #snapshot do
      out[n] = snapshot[n]
    end
    for i = 1, #raw do
      local value = out[raw[i]]
      out[raw[i]] = type(value) == 'string' and quote_long(value, pause) or number(value)
      if i % 100 == 0 then
        pause()
      end
    end
  end
  return concat(out)
end

--- The first bytes of the text of a snapshot.
---@param snapshot table
---@param bytes integer
---@return string
function M.head(snapshot, bytes)
  local out, size, raw, next_raw = {}, 0, snapshot.raw or {}, 1
  for n = 1, #snapshot do
    local part = snapshot[n]
    if raw[next_raw] == n then
      part = type(part) == 'string' and quote(part:sub(1, bytes)) or number(part)
      next_raw = next_raw + 1
    end
    out[n], size = part, size + #part
    if size >= bytes then
      break
    end
  end
  return concat(out):sub(1, bytes)
end

--- Have both the same text? Neither is made for that.
---@param a table a snapshot
---@param b table
---@return boolean
function M.same(a, b)
  local raw, others = a.raw or {}, b.raw or {}
  if #a ~= #b or #raw ~= #others then
    return false
  end
  for i = 1, #raw do
    if raw[i] ~= others[i] then
      return false
    end
  end
  for i = 1, #a do
    if a[i] ~= b[i] then
      return false
    end
  end
  return true
end

--- The text of a value.
---@param value any
---@return string
function M.text(value)
  return M.text_of(M.snapshot(value))
end

--- What a person trusts when they trust a tool: everything that they and the model read of it.
---@param definition mcp-tools.Definition
---@return string sha256, made once for each definition
function M.fingerprint(definition)
  local known = definition.fingerprint
  if not known then
    known = vim.fn.sha256(M.text({
      name = definition.name,
      title = definition.title,
      description = definition.description,
      input_schema = definition.input_schema,
      output_schema = definition.output_schema,
      annotations = definition.annotations,
    }))
    definition.fingerprint = known
  end
  return known
end

return M

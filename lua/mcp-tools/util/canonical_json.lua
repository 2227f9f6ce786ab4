--- Canonical JSON for hashing and comparing: independent of the order of keys.
---
--- A snapshot captures a value immediately; long strings are quoted only when the text is needed. Results for clients
--- are written by util/json.lua.

local M = {}

--- Maximum nesting, more than a client may send. It also stops at a table that contains itself.
local MAX_DEPTH = 128
--- Size in bytes of a string that is quoted later, and of its pieces: quoting takes 12 ns per byte.
local LONG, CHUNK = 512, 64 * 1024

local EMPTY_DICT = getmetatable(vim.empty_dict())
local byte, floor, format = string.byte, math.floor, string.format

local ESCAPES = { ['"'] = '\\"', ['\\'] = '\\\\', ['\b'] = '\\b', ['\f'] = '\\f', ['\n'] = '\\n', ['\r'] = '\\r' }
ESCAPES['\t'] = '\\t'
for code = 0, 31 do
  ESCAPES[string.char(code)] = ESCAPES[string.char(code)] or format('\\u%04x', code)
end

--- A loop: searching for a character class is 15 times slower, and most texts need no escape.
---@param text string
---@return string
local function quote(text)
  local at, size = 1, #text
  while at <= size do
    local code = byte(text, at)
    if code < 32 or code == 34 or code == 92 then
      break
    end
    at = at + 1
  end
  if at > size then
    return '"' .. text .. '"'
  end
  return '"' .. text:gsub('[%z\1-\31"\\]', ESCAPES) .. '"'
end

--- Returns the shortest text of a number that is read back as that number.
---@param value number
---@return string
function M.number(value)
  if value == floor(value) and value < 2 ^ 63 and value > -2 ^ 63 then
    return value == 0 and 1 / value < 0 and '-0' or format('%d', value)
  end
  local short = format('%.16g', value)
  return tonumber(short) == value and short or format('%.17g', value)
end

--- Returns the length of a list, nil for tables with other keys.
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

--- Appends the parts of a value's text: strings, or tables that contain a long string.
---@param out table list of strings and `{ string }`; `has_long` is set with the first of those
---@param value any
---@param depth integer
local function write(out, value, depth)
  local kind = type(value)
  if kind == 'string' then
    local is_long = #value >= LONG
    out[#out + 1], out.has_long = is_long and { value } or quote(value), out.has_long or is_long
  elseif kind == 'number' then
    out[#out + 1] = M.number(value)
  elseif kind ~= 'table' then
    local is_null = value == nil or value == vim.NIL
    out[#out + 1] = kind == 'boolean' and tostring(value) or is_null and 'null' or format('"<%s>"', kind)
  elseif depth > MAX_DEPTH then
    error('nested too deep to be hashed', 0)
  elseif list_length(value) then
    out[#out + 1] = '['
    for i, item in ipairs(value) do
      out[#out + 1] = i > 1 and ',' or nil
      write(out, item, depth + 1)
    end
    out[#out + 1] = ']'
  else
    local names, items = {}, {}
    for key, item in pairs(value) do
      -- A number as a key must not look like the same text as a key.
      local name = type(key) == 'string' and key or '\0' .. tostring(key)
      names[#names + 1], items[name] = name, item
    end
    if #names > 1 then
      table.sort(names)
    end
    out[#out + 1] = '{'
    for i, name in ipairs(names) do
      out[#out + 1] = (i > 1 and ',' or '') .. quote(name) .. ':'
      write(out, items[name], depth + 1)
    end
    out[#out + 1] = '}'
  end
end

--- Captures a value, so that its text can be created later even if the value changes. Raises if nested too deeply.
---@param value any
---@return table snapshot
function M.snapshot(value)
  local out = { nil, nil, nil, nil, nil, nil, nil, nil, has_long = false } -- preallocated for common arguments
  write(out, value, 1)
  return out
end

--- Returns the text of a snapshot.
---@param snapshot table
---@param pause? fun() called between pieces of work
---@return string
function M.text_of(snapshot, pause)
  if not snapshot.has_long then
    return table.concat(snapshot)
  end
  local out = {}
  for _, part in ipairs(snapshot) do
    if type(part) == 'string' then
      out[#out + 1] = part
    else
      out[#out + 1] = '"'
      for at = 1, #part[1], CHUNK do
        out[#out + 1] = quote(part[1]:sub(at, at + CHUNK - 1)):sub(2, -2)
        if pause then
          pause()
        end
      end
      out[#out + 1] = '"'
    end
  end
  return table.concat(out)
end

--- Returns the first bytes of a snapshot's text.
---@param snapshot table
---@param bytes integer
---@return string
function M.head(snapshot, bytes)
  local out, size = {}, 0
  for i, part in ipairs(snapshot) do
    out[i] = type(part) == 'string' and part or quote(part[1]:sub(1, bytes))
    size = size + #out[i]
    if size >= bytes then
      break
    end
  end
  return table.concat(out):sub(1, bytes)
end

--- Returns the text of a value.
---@param value any
---@return string
function M.text(value)
  return M.text_of(M.snapshot(value))
end

--- Returns a hash of everything that the user and the model read about a tool, which the user's trust is bound to.
---@param definition mcp-tools.Definition
---@return string sha256 cached per definition
function M.fingerprint(definition)
  definition.fingerprint = definition.fingerprint
    or vim.fn.sha256(M.text({
      name = definition.name,
      title = definition.title,
      description = definition.description,
      input_schema = definition.input_schema,
      output_schema = definition.output_schema,
      annotations = definition.annotations,
    }))
  return definition.fingerprint
end

return M

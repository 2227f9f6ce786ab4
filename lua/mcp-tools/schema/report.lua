--- The faults of a value, collected in a second pass: a list of `{field, message}` without duplicates, of bounded
--- length and with bounded texts, whatever a client sends.

local join = require('mcp-tools.schema.keywords').join
local utf8 = require('mcp-tools.util.utf8')

--- More faults than this are counted, not listed; and no longer looked for when as many again were counted.
local MAX_ERRORS = 100
--- Bytes of one name in a path, of a path, and of a message.
local MAX_NAME, MAX_PATH, MAX_MESSAGE = 80, 250, 4096

---@class mcp-tools.schema.Report
---@field keys (string|integer)[] the way from the root to the value being checked
---@field depth integer
---@field errors mcp-tools.Fault[]
---@field seen table<string, true>
---@field left_out integer
---@field full boolean nothing more is looked for
local Report = {}
Report.__index = Report

---@return mcp-tools.schema.Report
function Report.new()
  return setmetatable({ keys = {}, depth = 0, errors = {}, seen = {}, left_out = 0, full = false }, Report)
end

--- Goes into a property or item.
---@param key string|integer Lua index for items
function Report:enter(key)
  self.depth = self.depth + 1
  self.keys[self.depth] = key
end

function Report:leave()
  self.keys[self.depth] = nil
  self.depth = self.depth - 1
end

--- One step of a path; of a name that a client made up, its beginning.
local function step(path, key)
  return join(path, type(key) == 'number' and key or utf8.cut(tostring(key), MAX_NAME))
end

--- Where the check is, or one of its properties.
---@param key? string
---@return string
function Report:path(key)
  local path = ''
  for i = 1, self.depth do
    path = step(path, self.keys[i])
  end
  path = key and step(path, key) or path
  if #path > MAX_PATH then
    -- Both ends say more than the middle.
    path = utf8.cut(path, MAX_PATH / 2) .. path:sub(-MAX_PATH / 2):gsub('^[\128-\191]+', '')
  end
  return path == '' and '(root)' or path
end

--- Notes a fault of the current value, or of one of its properties.
---@param message string
---@param key? string
function Report:add(message, key)
  if not self.full then
    self:put(self:path(key), message)
  end
end

--- Notes a fault with its whole path.
---@param field string
---@param message string
function Report:put(field, message)
  local id = field .. '\0' .. message
  if self.seen[id] then
    return
  end
  self.seen[id] = true
  if #self.errors < MAX_ERRORS then
    self.errors[#self.errors + 1] = { field = field, message = utf8.cut(message, MAX_MESSAGE) }
  else
    self.left_out = self.left_out + 1
    self.full = self.left_out >= MAX_ERRORS
  end
end

--- All faults, in the order they were found.
---@return mcp-tools.Fault[]
function Report:list()
  local list = vim.list_slice(self.errors)
  if self.left_out > 0 then
    local count = (self.full and 'at least %d more faults' or '%d more faults'):format(self.left_out)
    list[#list + 1] = { field = '(root)', message = count }
  end
  return list
end

return Report

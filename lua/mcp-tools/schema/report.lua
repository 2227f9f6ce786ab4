--- Collects the faults of a value: a list of `{field, message}` without duplicates, with a limited number of entries of
--- limited length.

local join = require('mcp-tools.schema.keywords').join
local utf8 = require('mcp-tools.util.utf8')

--- Maximum number of listed faults. Further faults are only counted, and after as many again the check stops.
local MAX_ERRORS = 100
--- Maximum bytes of a name in a path, of a path, and of a message.
local MAX_NAME, MAX_PATH, MAX_MESSAGE = 80, 250, 4096

---@class mcp-tools.schema.Report
---@field keys (string|integer)[] path of the current value
---@field depth integer
---@field errors mcp-tools.Fault[]
---@field seen table<string, true>
---@field left_out integer
---@field full boolean the check can stop
local Report = {}
Report.__index = Report

---@return mcp-tools.schema.Report
function Report.new()
  return setmetatable({ keys = {}, depth = 0, errors = {}, seen = {}, left_out = 0, full = false }, Report)
end

--- Enters a property or item.
---@param key string|integer Lua index for items
function Report:enter(key)
  self.depth = self.depth + 1
  self.keys[self.depth] = key
end

function Report:leave()
  self.keys[self.depth] = nil
  self.depth = self.depth - 1
end

--- Appends a key to a path. Long names are cut.
local function step(path, key)
  return join(path, type(key) == 'number' and key or utf8.cut(tostring(key), MAX_NAME))
end

--- Returns the path of the current value, or of one of its properties.
---@param key? string
---@return string
function Report:path(key)
  local path = ''
  for i = 1, self.depth do
    path = step(path, self.keys[i])
  end
  path = key and step(path, key) or path
  if #path > MAX_PATH then
    -- The middle is the least useful part.
    path = utf8.cut(path, MAX_PATH / 2) .. path:sub(-MAX_PATH / 2):gsub('^[\128-\191]+', '')
  end
  return path == '' and '(root)' or path
end

--- Adds a fault of the current value, or of one of its properties.
---@param message string
---@param key? string
function Report:add(message, key)
  if not self.full then
    self:put(self:path(key), message)
  end
end

--- Adds a fault with its full path.
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

--- Returns all faults in the order in which they were found.
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

--- Faults of a value: their paths and messages, and the error that ends a check early.

local keywords = require('mcp-tools.schema.keywords')
local utf8 = require('mcp-tools.util.utf8')
local value = require('mcp-tools.schema.value')

local M = {}

--- The error that `give_up` throws.
---@class mcp-tools.schema.GaveUp: mcp-tools.Fault
M.GaveUp = {}

--- Ends the check; only `Compiler:run` catches this error.
---@param field string
---@param message string
function M.give_up(field, message)
  error(setmetatable({ field = field, message = message }, M.GaveUp), 0)
end

--- Records a fault, if there is a report. The message is formatted only then.
---@param report mcp-tools.schema.Report?
---@param key string? the property that has the fault; nil: the value itself
---@param message string
---@param ... any for the message
---@return false
function M.fail(report, key, message, ...)
  if report then
    report:add(message:format(...), key)
  end
  return false
end

--- Maximum number of faults; the check stops after them.
local MAX_ERRORS = 100
--- Maximum bytes of a name in a path, of a path, and of a message.
local MAX_NAME, MAX_PATH, MAX_MESSAGE = 80, 250, 4096

---@class mcp-tools.schema.Report
---@field keys (string|integer)[] path of the current value
---@field depth integer
---@field errors mcp-tools.Fault[]
---@field seen table<string, true>
local Report = {}
Report.__index = Report

---@return mcp-tools.schema.Report
function M.new()
  return setmetatable({ keys = {}, depth = 0, errors = {}, seen = {} }, Report)
end

--- Returns the message of the first fault of another value.
---@param check mcp-tools.schema.Check
---@param v any
---@return string?
function Report:first_of(check, v)
  local inner = M.new()
  check(v, inner)
  return inner.errors[1] and inner.errors[1].message
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
  return keywords.join(path, type(key) == 'number' and key or utf8.cut(tostring(key), MAX_NAME))
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
  self:put(self:path(key), message)
  if #self.errors == MAX_ERRORS then
    M.give_up('(root)', 'has more faults; only the first are listed')
  end
end

--- Adds a fault with its full path.
---@param field string
---@param message string
function Report:put(field, message)
  local id = field .. '\0' .. message
  if not self.seen[id] then
    self.seen[id] = true
    self.errors[#self.errors + 1] = { field = field, message = utf8.cut(message, MAX_MESSAGE) }
  end
end

--- Reports why a value matches no branch of a union: the faults of the only branch for its type, if there is one.
---@param branches (table|boolean)[] without references
---@param checks mcp-tools.schema.Check[] of the branches
---@param v any
function Report:add_union(branches, checks, v)
  local types, likely, count = {}, nil, 0
  for i, branch in ipairs(branches) do
    local names = type(branch) == 'table' and keywords.types_of(branch) or nil
    for _, name in ipairs(names or {}) do
      if not vim.list_contains(types, name) then
        table.insert(types, name)
      end
    end
    if branch ~= false and (not names or value.is_one_of(names, v)) then
      likely, count = checks[i], count + 1
    end
  end
  if count == 1 then
    likely(v, self)
  elseif count == 0 then
    self:add(('must be %s, got %s'):format(table.concat(types, ' or '), value.describe(v)))
  else
    self:add(('fits none of %d alternatives'):format(#branches))
  end
end

return M

--- Registrations of one place (a file, a module, a process, an option): what it has given to the registry, and gives no
--- longer.

local kinds = require('mcp-tools.registry.kinds')
local source = require('mcp-tools.registry.source')

local M = {}

---@class mcp-tools.Registrations
---@field kind mcp-tools.Kind one of those that share an option
---@field root (fun(): string)?
---@field held table<string, table> key → what the registry made of it
---@field given table<string, table> key → the definition as it was given
---@field kept table<string, true>? the keys of the pieces of a list so far, while it comes in pieces
local Registrations = {}
Registrations.__index = Registrations

--- Makes one for a place that has given nothing yet.
---@param kind mcp-tools.Kind
---@param root? fun(): string the project, to say who has taken a name
---@return mcp-tools.Registrations
function M.new(kind, root)
  return setmetatable({ kind = kind, root = root, held = {}, given = {} }, Registrations)
end

--- What somebody else has registered under the key of a definition.
---@param registry mcp-tools.Registry
---@param def any
---@return table? theirs
function Registrations:taken_by(registry, def)
  local row, key = kinds.sort(self.kind, def)
  local there = type(key) == 'string' and registry:known(row.kind, key) or nil
  return there ~= self.held[key or false] and there or nil
end

--- Takes out what the place gave before under a name that clients cannot tell from a new one: it was renamed.
---@param registry mcp-tools.Registry
---@param def any
---@param kept table<string, true> keys that the place has still
function Registrations:drop_renamed(registry, def, kept)
  local row, key = kinds.sort(self.kind, def)
  local twin = type(key) == 'string' and registry:twin(row.kind, key) or nil
  local made = twin and self.held[twin]
  if made and not kept[twin] and registry:known(row.kind, twin) == made then
    self.held[twin], self.given[twin] = nil, nil
    registry:remove(row.kind, twin)
  end
end

--- Gives a definition to the registry. One that it has given already is left as it is.
---@param registry mcp-tools.Registry
---@param def any
---@param from mcp-tools.Source
---@return string? key when the place has something under it now: this, or what it gave before when this has a fault
---@return string? fault
function Registrations:add(registry, def, from)
  local row, key = kinds.sort(self.kind, def)
  local theirs = self:taken_by(registry, def)
  if theirs then
    local text = "%s '%s': %s: it is taken by %s"
    return nil, text:format(row.what, key, row.key, source.describe(theirs, self.root()))
  end
  local there = self.held[key or false]
  if there and self.given[key] == def and registry:known(row.kind, key) then
    return key
  end
  local made, fault = registry:add(self.kind, def, from)
  if made then
    self.held[key], self.given[key] = made, def
  end
  return (made or there) and key or nil, fault
end

--- Takes out what the place no longer has.
---@param registry mcp-tools.Registry
---@param kept? table<string, true> the keys that it still has; none when left out
function Registrations:keep(registry, kept)
  local rows = kinds.of_option(kinds.row(self.kind).option) -- of thousands of keys
  for key, made in pairs(self.held) do
    if not (kept and kept[key]) then
      self.held[key], self.given[key] = nil, nil
      for _, row in ipairs(rows) do
        if registry:known(row.kind, key) == made then
          registry:remove(row.kind, key)
        end
      end
    end
  end
end

---@class mcp-tools.Piece of a list that is too long to be taken in at a stretch
---@field first boolean? the list begins with it
---@field last boolean? and ends: what was there before and is in no piece, is there no longer

--- Gives definitions in place of all that the place gave before. One that fails takes no other with it.
---@param registry mcp-tools.Registry
---@param list any[]
---@param source_of fun(): mcp-tools.Source
---@param piece? mcp-tools.Piece the whole list when left out
---@return string[] faults
function Registrations:replace(registry, list, source_of, piece)
  piece = piece or { first = true, last = true }
  local kept, faults = not piece.first and self.kept or {}, {}
  for _, def in ipairs(list) do
    -- A definition may be a table that throws when it is read, or one that never ends.
    local ok, key, fault = xpcall(function()
      self:drop_renamed(registry, def, kept)
      return self:add(registry, def, source_of())
    end, debug.traceback)
    if not ok then
      key, fault = nil, 'a definition cannot be read: ' .. tostring(key)
    end
    if key then
      kept[key] = true
    end
    table.insert(faults, fault)
  end
  if piece.last then
    self:keep(registry, kept)
  end
  self.kept = not piece.last and kept or nil
  return faults
end

--- The keys that it holds, in order.
---@return string[]
function Registrations:keys()
  local list = vim.tbl_keys(self.held)
  table.sort(list)
  return list
end

return M

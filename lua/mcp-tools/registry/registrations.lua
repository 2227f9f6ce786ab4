--- The definitions that one owner (a file, a module, a process, an option) has registered, so that they can be replaced
--- and removed.

local kinds = require('mcp-tools.registry.kinds')
local source = require('mcp-tools.registry.source')

local M = {}

---@class mcp-tools.Registrations
---@field kind mcp-tools.Kind one of those that share an option
---@field root (fun(): string)?
---@field held table<string, table> key → normalized definition
---@field given table<string, table> key → original definition
---@field kept table<string, true>? keys so far, while a list arrives in pieces
local Registrations = {}
Registrations.__index = Registrations

--- Creates an empty owner.
---@param kind mcp-tools.Kind
---@param root? fun(): string project root, for the message about a name that is taken
---@return mcp-tools.Registrations
function M.new(kind, root)
  return setmetatable({ kind = kind, root = root, held = {}, given = {} }, Registrations)
end

--- Returns the definition that another owner has registered under the same key.
---@param registry mcp-tools.Registry
---@param def any
---@return table? other
function Registrations:taken_by(registry, def)
  local row, key = kinds.row_of(self.kind, def)
  local known = type(key) == 'string' and registry:known(row.kind, key) or nil
  return known ~= self.held[key or false] and known or nil
end

--- Removes the owner's definition under a name that clients cannot distinguish from the new one: it was renamed.
---@param registry mcp-tools.Registry
---@param def any
---@param kept table<string, true> keys that the owner still has
function Registrations:drop_renamed(registry, def, kept)
  local row, key = kinds.row_of(self.kind, def)
  local twin = type(key) == 'string' and registry:twin(row.kind, key) or nil
  local made = twin and self.held[twin]
  if made and not kept[twin] and registry:known(row.kind, twin) == made then
    self.held[twin], self.given[twin] = nil, nil
    registry:remove(row.kind, twin)
  end
end

--- Registers a definition, unless it is already registered.
---@param registry mcp-tools.Registry
---@param def any
---@param from mcp-tools.Source
---@return string? key of the owner's definition: of this one, or of its earlier one if this is invalid
---@return string? fault
function Registrations:add(registry, def, from)
  local row, key = kinds.row_of(self.kind, def)
  local other = self:taken_by(registry, def)
  if other then
    local text = "%s '%s': %s: it is taken by %s"
    return nil, text:format(row.what, key, row.key, source.describe(other, self.root()))
  end
  local before = self.held[key or false]
  if before and self.given[key] == def and registry:known(row.kind, key) then
    return key
  end
  local made, fault = registry:add(self.kind, def, from)
  if made then
    self.held[key], self.given[key] = made, def
  end
  return (made or before) and key or nil, fault
end

--- Removes the owner's other definitions.
---@param registry mcp-tools.Registry
---@param kept? table<string, true> the keys that it still has (default: none)
function Registrations:keep(registry, kept)
  local rows = kinds.of_option(kinds.row(self.kind).option) -- once, for thousands of keys
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

---@class mcp-tools.DefinitionPiece part of a list that is too long to register without a pause
---@field first boolean? it begins the list
---@field last boolean? it ends the list: earlier definitions that are in no piece are removed

--- Replaces all definitions of the owner. An invalid definition does not affect the others.
---@param registry mcp-tools.Registry
---@param list any[]
---@param source_of fun(): mcp-tools.Source
---@param piece? mcp-tools.DefinitionPiece (default: the whole list)
---@return string[] faults
function Registrations:replace(registry, list, source_of, piece)
  piece = piece or { first = true, last = true }
  local kept, faults = not piece.first and self.kept or {}, {}
  for _, def in ipairs(list) do
    -- Reading a definition may throw, because of metatables.
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

--- Returns whether one of the owner's definitions is wanted. An owner without definitions is judged by its group.
---@param group string
---@param wanted fun(group: string, name: string): boolean
---@return boolean
function Registrations:any(group, wanted)
  return next(self.held) == nil and wanted(group, '')
    or vim.iter(vim.tbl_keys(self.held)):any(function(name)
      return wanted(group, name)
    end)
end

--- Returns the keys of the owner's definitions, sorted.
---@return string[]
function Registrations:keys()
  local list = vim.tbl_keys(self.held)
  table.sort(list)
  return list
end

return M

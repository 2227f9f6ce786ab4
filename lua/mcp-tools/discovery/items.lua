--- Everything that is offered or could be: by kind, name and group.
---
--- Receives: the registry; what lies in the bundled folders.
--- Sends: one list to who switches and shows names.
--- Does not know about: how anything is switched or loaded.

local bundled_files = require('mcp-tools.discovery.bundled_files')
local kinds = require('mcp-tools.registry.kinds')
local source = require('mcp-tools.registry.source')

local M = {}

---@class mcp-tools.Item what can be offered
---@field kind mcp-tools.OfferKind
---@field name string
---@field group string? of tools
---@field on boolean is it offered?
---@field loadable boolean is there a file that it can be loaded from?

--- All of them, by kind and name.
---@param registry mcp-tools.Registry
---@return mcp-tools.Item[]
function M.all(registry)
  local list, seen = {}, {}
  for _, option in ipairs(kinds.options()) do
    seen[option] = {}
  end
  local function add(kind, name, group, on, loadable)
    seen[kind][name] = true
    table.insert(list, { kind = kind, name = name, group = group, on = on, loadable = loadable })
  end
  for _, row in ipairs(kinds.rows) do
    for on, entries in pairs({ [true] = registry.entries[row.kind], [false] = registry.shelf[row.kind] }) do
      for _, entry in pairs(entries) do
        local from = entry.source or {}
        local loadable = from.found_in ~= nil or from.origin ~= 'registered'
        add(row.option, entry.name, row.grouped and source.group(entry) or nil, on, loadable)
      end
    end
  end
  for kind, known in pairs(seen) do
    for _, file in ipairs(bundled_files.of(kind)) do
      if not known[file.name] then
        add(kind, file.name, file.group, false, true)
      end
    end
  end
  table.sort(list, function(a, b)
    return a.kind ~= b.kind and a.kind > b.kind or a.kind == b.kind and a.name < b.name
  end)
  return list
end

--- What a name of a kind stands for: one thing, or the members of a group.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.OfferKind
---@param name? string all of the kind when left out
---@return mcp-tools.Item[]
function M.members(registry, kind, name)
  return vim.tbl_filter(function(item)
    return item.kind == kind and (name == nil or item.name == name or item.group == name)
  end, M.all(registry))
end

return M

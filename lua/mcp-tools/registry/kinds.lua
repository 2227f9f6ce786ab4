--- Kinds: what can be offered to a client (tools, resources, templates, prompts), a row each.
---
--- A kind that has a row is registered, switched, listed to clients and to people, and counted. Its bundled files, if
--- any, lie in the folder of its option.

local M = {}

---@alias mcp-tools.Kind
---| 'tools'      # by name
---| 'resources'  # by URI
---| 'templates'  # resources with variables in their URI, by the template's text
---| 'prompts'    # by name

--- The options that say what is offered; several kinds may share one.
---@alias mcp-tools.OfferKind 'tools'|'resources'|'prompts'

---@class mcp-tools.KindRow
---@field kind mcp-tools.Kind
---@field option mcp-tools.OfferKind the option that switches it
---@field key string the field of a definition that it is known by; of kinds that share an option it tells them apart
---@field what string one of it, in messages
---@field heading string all of them, in lists
---@field label string how what was refused is named, by its key
---@field definition string the module that takes definitions in (`normalise`) and shows them to clients (`published`)
---@field grouped boolean? its things have groups, by which they are switched, too
---@field alike? fun(key: string): string keys that are the same in this form cannot stand side by side

--- The form of a name in which clients can no longer tell two apart.
---@param name string
---@return string
local function folded(name)
  return (name:gsub('[.%-/]', '_'))
end

---@type mcp-tools.KindRow[] in the order in which people see them
M.rows = {
  {
    kind = 'tools',
    option = 'tools',
    key = 'name',
    what = 'tool',
    heading = 'tools',
    label = '%s',
    definition = 'mcp-tools.registry.definition.tool',
    grouped = true,
    alike = folded,
  },
  {
    kind = 'resources',
    option = 'resources',
    key = 'uri',
    what = 'resource',
    heading = 'resources',
    label = "resource '%s'",
    definition = 'mcp-tools.registry.definition.resource',
  },
  {
    kind = 'templates',
    option = 'resources',
    key = 'uri_template',
    what = 'resource',
    heading = 'resource templates',
    label = "resource '%s'",
    definition = 'mcp-tools.registry.definition.resource',
  },
  {
    kind = 'prompts',
    option = 'prompts',
    key = 'name',
    what = 'prompt',
    heading = 'prompts',
    label = "prompt '%s'",
    definition = 'mcp-tools.registry.definition.prompt',
  },
}

--- The row of a kind.
---@param kind mcp-tools.Kind
---@return mcp-tools.KindRow
function M.row(kind)
  for _, row in ipairs(M.rows) do
    if row.kind == kind then
      return row
    end
  end
  error(("there is no kind '%s'"):format(tostring(kind)), 2)
end

--- The rows that an option switches.
---@param option mcp-tools.OfferKind
---@return mcp-tools.KindRow[]
function M.of_option(option)
  return vim.tbl_filter(function(row)
    return row.option == option
  end, M.rows)
end

--- The options, in the order of their kinds.
---@return mcp-tools.OfferKind[]
function M.options()
  local list = {}
  for _, row in ipairs(M.rows) do
    if not vim.list_contains(list, row.option) then
      table.insert(list, row.option)
    end
  end
  return list
end

--- Which of the kinds that share an option a definition is of: a resource whose URI has variables is a template.
---@param kind mcp-tools.Kind any of them
---@param def any
---@return mcp-tools.KindRow row
---@return any key nil when the definition has none
function M.sort(kind, def)
  local first = M.row(kind)
  if type(def) ~= 'table' then
    return first
  end
  for _, row in ipairs(M.rows) do
    if row.option == first.option and def[row.key] ~= nil and def[row.key] ~= vim.NIL then
      return row, def[row.key]
    end
  end
  return first
end

return M

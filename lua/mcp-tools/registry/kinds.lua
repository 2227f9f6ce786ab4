--- The kinds of definitions: tools, resources, resource templates, prompts.
---
--- Every kind with a row here can be registered, switched on or off, and listed. The directory of its bundled files has
--- the name of its option.

local M = {}

---@alias mcp-tools.Kind
---| 'tools'      # by name
---| 'resources'  # by URI
---| 'templates'  # resources with variables in their URI, by URI template
---| 'prompts'    # by name

--- The options that switch definitions on or off; several kinds may share one.
---@alias mcp-tools.KindOption 'tools'|'resources'|'prompts'

---@class mcp-tools.KindRow
---@field kind mcp-tools.Kind
---@field option mcp-tools.KindOption the option that switches it
---@field key string the field with the key of a definition; differs between kinds that share an option
---@field what string singular, in messages
---@field heading string plural, in lists
---@field definition string the module that checks definitions (`normalize`) and converts them for clients (`published`)
---@field grouped boolean? definitions have groups, which can be switched on or off, and names that clients change

---@type table[]
local rows = {
  { kind = 'tools', option = 'tools', key = 'name', what = 'tool', heading = 'tools', grouped = true },
  { kind = 'resources', option = 'resources', key = 'uri', what = 'resource', heading = 'resources' },
  { kind = 'templates', option = 'resources', key = 'uri_template', what = 'resource', heading = 'resource templates' },
  { kind = 'prompts', option = 'prompts', key = 'name', what = 'prompt', heading = 'prompts' },
}
for _, row in ipairs(rows) do
  row.definition = 'mcp-tools.registry.definition.' .. row.what
end
---@type mcp-tools.KindRow[] ordered as they are shown
M.rows = rows

--- Returns the row of a kind.
---@param kind mcp-tools.Kind
---@return mcp-tools.KindRow
function M.row(kind)
  for _, row in ipairs(M.rows) do
    if row.kind == kind then
      return row
    end
  end
  error(("unknown kind '%s'"):format(tostring(kind)), 2)
end

--- Returns the rows of an option.
---@param option mcp-tools.KindOption
---@return mcp-tools.KindRow[]
function M.of_option(option)
  return vim.tbl_filter(function(row)
    return row.option == option
  end, M.rows)
end

--- Returns the options, in the order of their kinds.
---@return mcp-tools.KindOption[]
function M.options()
  local list = {}
  for _, row in ipairs(M.rows) do
    if not vim.list_contains(list, row.option) then
      table.insert(list, row.option)
    end
  end
  return list
end

--- Returns the row and the key of a definition. Its key distinguishes the kinds that share an option: a resource with a
--- `uri_template` is a template.
---@param kind mcp-tools.Kind any kind of the option
---@param def any
---@return mcp-tools.KindRow row
---@return any key nil if the definition has none
function M.row_of(kind, def)
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

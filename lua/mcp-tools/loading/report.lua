--- Reports all definitions, their sources, failures, and unknown names in options. Plain data for `:checkhealth`,
--- `:McpTools tools` and the dashboard.

local bundled = require('mcp-tools.loading.bundled')
local config = require('mcp-tools.config')
local discovery = require('mcp-tools.loading')
local kinds = require('mcp-tools.registry.kinds')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local selection = require('mcp-tools.loading.selection')
local source = require('mcp-tools.registry.source')
local suggest = require('mcp-tools.util.suggest')

local M = {}

-- All definitions, on or off ----------------------------------------------------------------------------------------

---@class mcp-tools.Item
---@field kind mcp-tools.KindOption
---@field name string
---@field group string? of tools
---@field on boolean
---@field loadable boolean whether there is a file to load it from

--- Calls a function for each registered definition and each bundled file.
---@param registry mcp-tools.Registry
---@param fn fun(kind: mcp-tools.KindOption, name: string, group: string?, on: boolean, entry: table?)
local function each(registry, fn)
  for _, row in ipairs(kinds.rows) do
    for on, entries in pairs({ [true] = registry.entries[row.kind], [false] = registry.disabled[row.kind] }) do
      for _, entry in pairs(entries) do
        fn(row.option, entry.name, row.grouped and source.group(entry) or nil, on, entry)
      end
    end
  end
  for _, kind in ipairs(kinds.options()) do
    for _, file in ipairs(bundled.files(kind)) do
      fn(kind, file.name, file.group, false)
    end
  end
end

--- Returns all items, sorted by kind and name.
---@param registry mcp-tools.Registry
---@return mcp-tools.Item[]
function M.items(registry)
  local list, seen = {}, {}
  each(registry, function(kind, name, group, on, entry)
    local from = entry and entry.source or {}
    local loadable = from.found_in ~= nil or from.origin ~= 'registered'
    if entry or not seen[kind .. ' ' .. name] then
      seen[kind .. ' ' .. name] = true
      table.insert(list, { kind = kind, name = name, group = group, on = on, loadable = loadable })
    end
  end)
  table.sort(list, function(a, b)
    return a.kind ~= b.kind and a.kind > b.kind or a.kind == b.kind and a.name < b.name
  end)
  return list
end

--- Returns what a name represents: one item, or the members of a group.
---@param registry mcp-tools.Registry
---@param kind mcp-tools.KindOption
---@param name? string (default: all of the kind)
---@return mcp-tools.Item[]
function M.members(registry, kind, name)
  return vim.tbl_filter(function(item)
    return item.kind == kind and (name == nil or item.name == name or item.group == name)
  end, M.items(registry))
end

-- Unknown names in the options ----------------------------------------------------------------------------------------

---@class mcp-tools.UnknownName
---@field option string
---@field name string
---@field near string? a similar known name

--- Returns names in options for which there is no definition yet, sorted by option and name.
---@param registry mcp-tools.Registry
---@return mcp-tools.UnknownName[]
function M.unknown_names(registry)
  local options, known = config.get(), {}
  local approval = options.approval
  local given =
    { ['approval.tools'] = vim.tbl_keys(approval.tools), ['approval.groups'] = vim.tbl_keys(approval.groups) }
  for _, kind in ipairs(kinds.options()) do
    given[kind] = selection.selection(kind).names
    known[kind] = { all = true, recommended = kinds.row(kind).grouped }
  end
  local tools, groups = {}, {}
  each(registry, function(kind, name, group)
    known[kind][name], known[kind][group or name] = true, true
    if kind == 'tools' then
      tools[name], groups[group] = true, true
    end
  end)
  known['approval.tools'], known['approval.groups'] = tools, groups
  local list = {}
  for option, names in vim.spairs(given) do
    table.sort(names)
    for _, name in ipairs(names) do
      if not known[option][name] then
        local prefix = options.tool_prefix
        local bare = prefix ~= '' and vim.startswith(name, prefix) and name:sub(#prefix + 1)
        local near = bare and known[option][bare] and bare or suggest(name, vim.tbl_keys(known[option]))
        table.insert(list, { option = option, name = name, near = near })
      end
    end
  end
  return list
end

---@param item mcp-tools.UnknownName
---@return string
function M.describe(item)
  local text = ("%s: unknown name '%s'"):format(item.option, item.name)
  return item.near and ("%s (did you mean '%s'?)"):format(text, item.near) or text
end

--- Notifies the user of unknown names that are close to a known one, once; others may be registered later.
---@param registry mcp-tools.Registry
function M.notify_unknown(registry)
  for _, item in ipairs(M.unknown_names(registry)) do
    if item.near then
      notify.once(('unknown name %s %s'):format(item.option, item.name), 'warn', M.describe(item))
    end
  end
end

-- Report --------------------------------------------------------------------------------------------------------------

--- Returns definitions that could not be loaded or were refused, and unknown names in the options `tools`, `resources`
--- and `prompts`.
---@param registry mcp-tools.Registry
---@return mcp-tools.Failure[]
function M.failures(registry)
  local list = bundled.failures()
  for _, item in ipairs(M.unknown_names(registry)) do
    if vim.list_contains(kinds.options(), item.option) then
      table.insert(list, { source = ('setup{%s}'):format(item.option), error = M.describe(item) })
    end
  end
  vim.list_extend(list, discovery.failures())
  for name, fault in vim.spairs(registry.refused) do
    table.insert(list, { source = name, error = fault })
  end
  return list
end

---@param entry table normalized definition
---@return mcp-tools.Offered
local function summary(entry)
  local from = entry.source or {}
  return {
    name = entry.key or entry.name,
    origin = from.origin,
    group = from.group,
    file = from.found_in or from.file,
    notes = #entry.lint > 0 and entry.lint or nil,
  }
end

---@class mcp-tools.Offered one definition that is on
---@field name string of a resource: its URI
---@field origin 'bundled'|'registered'|'python'|'mounted'
---@field group string? of bundled tools
---@field file string? the file with the definition or its handler
---@field notes string[]? what should be changed in its definition

---@class mcp-tools.Report
---@field tools mcp-tools.Offered[]
---@field resources mcp-tools.Offered[]
---@field templates mcp-tools.Offered[]
---@field prompts mcp-tools.Offered[]
---@field failures mcp-tools.Failure[]
---@field sources mcp-tools.SourceReport[]
---@field revisions table<mcp-tools.Kind, integer> number of changes of each kind
---@field no_bundled_tools boolean the option `tools` switches none on
---@field tool_prefix string of published names

--- Returns the full report.
---@param registry mcp-tools.Registry
---@return mcp-tools.Report
function M.of(registry)
  local report = {} ---@type table
  for _, row in ipairs(kinds.rows) do
    report[row.kind] = vim.tbl_map(summary, registry:list(row.kind))
  end
  report.failures = M.failures(registry)
  report.sources = discovery.report()
  report.revisions = vim.deepcopy(registry.revisions)
  report.no_bundled_tools = selection.is_empty('tools')
  report.tool_prefix = config.get().tool_prefix
  return report --[[@as mcp-tools.Report]]
end

--- Calls `fn` whenever the report may have changed.
---@param registry mcp-tools.Registry
---@param fn fun()
---@return fun() stop
function M.on_change(registry, fn)
  local function changed()
    log.guard('a listener to changes of the report', fn)
  end
  local stop_registry, stop_scans = registry:on_change(changed), discovery.on_scan(changed)
  return function()
    stop_registry()
    stop_scans()
  end
end

return M

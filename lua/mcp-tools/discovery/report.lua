--- A report of what is offered, where it comes from, and what could not be loaded and why.
---
--- Receives: the registry; what every source of definitions knows.
--- Sends: plain data for people: health, `:McpTools tools`, the resource `nvim://discovery`.
--- Does not know about: who reads it.

local bundled = require('mcp-tools.discovery.bundled')
local bundled_files = require('mcp-tools.discovery.bundled_files')
local config = require('mcp-tools.config')
local discovery = require('mcp-tools.discovery')
local items = require('mcp-tools.discovery.items')
local kinds = require('mcp-tools.registry.kinds')
local log = require('mcp-tools.log')
local selection = require('mcp-tools.discovery.selection')

local M = {}

--- Definitions that could not be loaded or were refused.
---@param registry mcp-tools.Registry
---@return mcp-tools.Failure[]
function M.failures(registry)
  local list = bundled.failures(function(kind, name)
    return #items.members(registry, kind, name) > 0
  end)
  vim.list_extend(list, discovery.failures())
  for name, fault in vim.spairs(registry.refused) do
    table.insert(list, { source = name, error = fault })
  end
  return list
end

---@param entry table normalised definition
---@return mcp-tools.Offered
local function offered(entry)
  local source = entry.source or {}
  local notes = vim.list_extend(vim.list_slice(entry.typos), entry.lint)
  return {
    name = entry.key or entry.name,
    origin = source.origin,
    group = source.group,
    file = source.found_in or source.file,
    notes = #notes > 0 and notes or nil,
  }
end

---@class mcp-tools.Offered one thing that clients are offered
---@field name string of a resource its URI
---@field origin 'bundled'|'registered'|'python'|'mounted'
---@field group string? of bundled tools
---@field file string? where it was found, or its handler stands
---@field notes string[]? what should be changed in its definition

---@class mcp-tools.Report
---@field tools mcp-tools.Offered[]
---@field resources mcp-tools.Offered[]
---@field templates mcp-tools.Offered[]
---@field prompts mcp-tools.Offered[]
---@field failures mcp-tools.Failure[] what could not be loaded
---@field sources mcp-tools.SourceReport[] where tools are looked for
---@field cache_age_ms table<string, integer> by kind, since the folder of bundled things was read
---@field revisions table<mcp-tools.Kind, integer> how often each kind has changed
---@field no_bundled_tools boolean the option `tools` asks for none
---@field tool_prefix string that names of tools are published with

--- All of it.
---@param registry mcp-tools.Registry
---@return mcp-tools.Report
function M.of(registry)
  local report, ages = {}, {}
  for _, row in ipairs(kinds.rows) do
    report[row.kind] = vim.tbl_map(offered, registry:list(row.kind))
  end
  for _, option in ipairs(kinds.options()) do
    local at = bundled_files.read_at(option)
    ages[option] = at and math.floor((vim.uv.hrtime() - at) / 1e6) or nil
  end
  report.failures = M.failures(registry)
  report.sources = discovery.report()
  report.cache_age_ms = ages
  report.revisions = vim.deepcopy(registry.revisions)
  report.no_bundled_tools = selection.is_unset('tools')
  report.tool_prefix = config.get().tool_prefix
  return report
end

--- Calls `fn` whenever the report may be another.
---@param registry mcp-tools.Registry
---@param fn fun()
---@return fun() stop
function M.on_change(registry, fn)
  local function tell()
    log.guard('who listens to changes of what is offered', fn)
  end
  local stop_registry, stop_looks = registry:on_change(tell), discovery.on_look(tell)
  return function()
    stop_registry()
    stop_looks()
  end
end

return M

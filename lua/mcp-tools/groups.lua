--- Switches definitions on and off and reloads them, one at a time or by group.
---
--- Names: a group of tools, a tool, `resources/<name>`, `prompts/<name>`; `resources` and `prompts` mean all bundled
--- ones.

local bundled = require('mcp-tools.loading.bundled')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local loading = require('mcp-tools.loading')
local errors = require('mcp-tools.errors')
local kinds = require('mcp-tools.registry.kinds')
local report = require('mcp-tools.loading.report')
local selection = require('mcp-tools.loading.selection')
local suggest = require('mcp-tools.util.suggest')
local validate = require('mcp-tools.util.validate')

local M = {}

--- Returns all definitions, on or off, sorted by kind and name.
---@return mcp-tools.Item[]
function M.items()
  return report.items(core.get().registry)
end

---@param kind mcp-tools.KindOption
---@param name? string (default: all of the kind)
---@return mcp-tools.Item[]
local function members_of(kind, name)
  return report.members(core.get().registry, kind, name)
end

--- Returns every valid name, sorted.
---@param accept? fun(item: mcp-tools.Item): boolean only names that represent one of these
---@return string[]
function M.names(accept)
  local set = {}
  for _, item in ipairs(M.items()) do
    if not accept or accept(item) then
      if kinds.row(item.kind).grouped then
        set[item.name], set[item.group] = true, true
      else
        set[item.kind .. '/' .. item.name], set[item.kind] = true, true
      end
    end
  end
  local list = vim.tbl_keys(set)
  table.sort(list)
  return list
end

---@param what string
---@return mcp-tools.KindOption kind, string? name, mcp-tools.Item[] members
local function find(what)
  validate('name', what, 'string')
  for _, kind in ipairs(kinds.options()) do
    local name = what:match('^' .. kind .. '/(.+)$')
    if not kinds.row(kind).grouped and (name or what == kind) then
      return kind, name, members_of(kind, name)
    end
  end
  local prefix = config.get('tool_prefix')
  local bare = vim.startswith(what, prefix) and what:sub(#prefix + 1)
  local members = members_of('tools', what)
  if #members == 0 and bare then
    return 'tools', bare, members_of('tools', bare)
  end
  return 'tools', what, members
end

---@param what string
---@param candidates string[]
---@param text string
---@return nil
---@return mcp-tools.Error
local function unknown(what, candidates, text)
  local near = suggest(what, candidates)
  -- The suggestion comes first, because a narrow screen cuts the end.
  return nil, errors.new('not_found', (near and ('did you mean %s? '):format(near) or '') .. text:format(what))
end

---@param members mcp-tools.Item[]
---@return string[]
local function names_of(members)
  return vim.tbl_map(function(item)
    return item.name
  end, members)
end

---@param what string
---@param on boolean
---@return string[]? names, mcp-tools.Error? err
local function switch(what, on)
  local kind, name, members = find(what)
  if #members == 0 then
    return unknown(what, M.names(), "there is no group or tool '%s'")
  elseif name then
    selection.switch(kind, name, on, names_of(members))
  else
    config.change({ [kind] = on })
  end
  return names_of(vim.tbl_filter(function(item)
    return item.on == on
  end, members_of(kind, name)))
end

--- Switches a group or a definition on.
---@param what string
---@return string[]? names those of it that are on now
---@return mcp-tools.Error? err if the name is unknown
function M.enable(what)
  return switch(what, true)
end

--- Switches a group or a definition off, even if a plugin registered it.
---@param what string
---@return string[]? names those of it that are off now
---@return mcp-tools.Error? err if the name is unknown
function M.disable(what)
  return switch(what, false)
end

---@param cb? fun(failures: mcp-tools.Failure[])
local function answer(cb)
  return function()
    if cb then
      cb(report.failures(core.get().registry))
    end
  end
end

--- Loads the files of a group, a definition, or everything again. If a file fails, its earlier definition stays.
---@param what? string
---@param cb? fun(failures: mcp-tools.Failure[]) gets all failures at the end
---@return true? ok
---@return mcp-tools.Error? err if the name is unknown or has no file
function M.reload(what, cb)
  local options, name = kinds.options(), nil
  if what then
    local kind, members
    kind, name, members = find(what)
    options = { kind }
    if #members == 0 then
      return unknown(what, M.names(), "there is no group or tool '%s'")
    elseif not vim.iter(members):any(function(item)
      return item.loadable
    end) then
      local text = "'%s' has no file to load; it must be registered again"
      return nil, errors.new('not_found', text:format(what))
    end
  end
  local function wanted(group, each)
    return name == nil or group == name or each == name
  end
  local registry = core.get().registry
  for _, kind in ipairs(options) do
    bundled.reload(registry, kind, wanted)
  end
  if vim.list_contains(options, 'tools') then -- only tools come from other sources
    loading.refresh(registry, nil, answer(cb), wanted)
  else
    answer(cb)()
  end
  return true
end

--- Scans one source of tools or all.
---@param source? string one of `loading.SOURCES`
---@param cb? fun(failures: mcp-tools.Failure[]) gets all failures at the end
---@return true? ok
---@return mcp-tools.Error? err if the source is unknown
function M.refresh(source, cb)
  validate('source', source, 'string', true)
  if source and not vim.list_contains(loading.SOURCES, source) then
    return unknown(source, loading.SOURCES, "there is no source of tools '%s'")
  end
  loading.refresh(core.get().registry, source, answer(cb))
  return true
end

return M

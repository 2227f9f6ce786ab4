--- `:McpTools call`: a workbench for tools.

local call_view = require('mcp-tools.ui.call_view')
local core = require('mcp-tools.core')
local notify = require('mcp-tools.notify')
local person = require('mcp-tools.hosts.person')
local report = require('mcp-tools.discovery.report')
local suggest = require('mcp-tools.util.suggest')

---@return mcp-tools.Registry
local function registry()
  return core.get().registry
end

---@param text string
---@return table? args, string? err
local function decode(text)
  if text == '' then
    return vim.empty_dict()
  end
  local ok, decoded = pcall(vim.json.decode, text)
  if not ok then
    return nil, (tostring(decoded):gsub('^.-:%d+: ', ''))
  elseif type(decoded) ~= 'table' or (vim.islist(decoded) and #decoded > 0) then
    return nil, 'they are of another type'
  end
  return decoded
end

---@return string[] bare names
local function names()
  return vim.tbl_map(function(tool)
    return tool.name
  end, registry():list('tools'))
end

--- More would push the error off the screen.
local MAX_FAILURES = 3

--- Why there may be no such tool: it is off, or files could not be loaded.
---@param name string
---@return string[]
local function unknown_tool(name)
  for _, item in ipairs(report.members(registry(), 'tools', name)) do
    if item.name == name then
      return { ('it is off: :McpTools tools enable %s offers it'):format(name) }
    end
  end
  local failures, hints = report.failures(registry()), { ':McpTools tools lists what there is' }
  for i = 1, math.min(#failures, MAX_FAILURES) do
    local failure = failures[i]
    local text = failure.error:match('[^\n]*')
    if not text:find((" '%s': "):format(failure.source), 1, true) then -- else it says by itself what it is about
      text = ('%s: %s'):format(vim.fn.fnamemodify(failure.source, ':~:.'), text)
    end
    table.insert(hints, 'not loaded: ' .. text)
  end
  if #failures > MAX_FAILURES then
    table.insert(hints, (':checkhealth mcp-tools tells %d more'):format(#failures - MAX_FAILURES))
  end
  return hints
end

--- Arguments that the tool does not know: it may take them all the same, and ignore them.
---@param definition mcp-tools.Definition
---@param args table
---@return string[]
local function unknown_arguments(definition, args)
  local schema, hints = definition.input_schema, {}
  if schema.additionalProperties ~= nil or schema.patternProperties then
    return hints -- it takes what it does not name, or refuses it and says so
  end
  local known = schema.properties or {}
  local candidates = vim.tbl_filter(function(name)
    return args[name] == nil
  end, vim.tbl_keys(known))
  for name in vim.spairs(args) do
    if not known[name] then
      local near = suggest(name, candidates)
      local hint = near and (', did you mean %s?'):format(near) or ''
      table.insert(hints, ('the tool has no argument %s%s'):format(name, hint))
    end
  end
  return hints
end

local SAMPLES = { integer = '1', number = '1', boolean = 'true', array = '[]', object = '{}' }

--- Arguments that the tool could be given, with one that it needs, if there is such.
---@param definition mcp-tools.Definition
---@return string JSON text
local function example(definition)
  local schema = definition.input_schema
  local known = schema.properties or {}
  local all = vim.tbl_keys(known)
  table.sort(all)
  local name = (schema.required or {})[1] or all[1]
  if not name then
    return '{}'
  end
  local property = type(known[name]) == 'table' and known[name] or {}
  local sample = name:find('path') and '"a.txt"' or SAMPLES[property.type] or '"text"'
  return ('{%s: %s}'):format(
    vim.json.encode(name),
    type(property.enum) == 'table' and vim.json.encode(property.enum[1]) or sample
  )
end

---@type mcp-tools.Subcommand
return {
  usage = 'TOOL [JSON]',
  description = 'run a tool; its progress, questions and result are shown as its client would get them, '
    .. 'and what it throws with its traceback',
  run = function(rest)
    local name, text = rest:match('^(%S+)%s*(.*)$')
    if not name then
      return notify.error('which tool? :McpTools call TOOL [JSON]')
    end
    local args, fault = decode(text)
    local definition = registry():find_tool(name)
    if not args then
      local lines = { 'The arguments are no JSON object: ' .. fault }
      table.insert(lines, definition and ('They look like %s; yours are'):format(example(definition)))
      table.insert(lines, '  ' .. text)
      return call_view.new(name, {}).refuse(lines)
    end
    local hints = definition and unknown_arguments(definition, args) or unknown_tool(name)
    local view = call_view.new(name, hints)
    if not person.call(name, args, view):ended() then
      view.waits()
    end
  end,
  complete = names,
}

--- Mistyped names in the options: what is said there of a tool or group that is none counts for nothing.
---
--- Receives: the options; the registry, and what is bundled.
--- Sends: each such name with the nearest one that is meant, perhaps; one message to the person.
--- Does not know about: what an option does with a name. A tool may be registered later, so the message is for names
--- that are near to one only.

local bundled = require('mcp-tools.discovery.bundled')
local bundled_files = require('mcp-tools.discovery.bundled_files')
local config = require('mcp-tools.config')
local items = require('mcp-tools.discovery.items')
local notify = require('mcp-tools.notify')
local source = require('mcp-tools.registry.source')
local suggest = require('mcp-tools.util.suggest')

local M = {}

---@class mcp-tools.Mistyped
---@field option string
---@field name string
---@field near string?

---@param registry mcp-tools.Registry
---@return table<string, table<string, true>> names by the options that take them
local function known_names(registry)
  local tools, groups = {}, {}
  for _, entries in ipairs({ registry.entries.tools, registry.shelf.tools }) do
    for name, definition in pairs(entries) do
      tools[name], groups[source.group(definition)] = true, true
    end
  end
  for _, file in ipairs(bundled_files.of('tools')) do
    tools[file.name], groups[file.group] = true, true
  end
  return { ['approval.tools'] = tools, ['approval.groups'] = groups }
end

---@param name string
---@param known table<string, true>
---@return string?
local function nearest(name, known)
  local prefix = config.get().tool_prefix
  local bare = prefix ~= '' and vim.startswith(name, prefix) and name:sub(#prefix + 1)
  return bare and known[bare] and bare or suggest(name, vim.tbl_keys(known))
end

--- Names that nothing has, or nothing yet.
---@param registry mcp-tools.Registry
---@return mcp-tools.Mistyped[] by option and name
function M.list(registry)
  local list, approval = {}, config.get().approval
  for option, known in vim.spairs(known_names(registry)) do
    for name in vim.spairs(approval[option:match('^.*%.(.*)$') or option]) do
      if not known[name] then
        table.insert(list, { option = option, name = name, near = nearest(name, known) })
      end
    end
  end
  return list
end

--- What is wrong with one, for people.
---@param item mcp-tools.Mistyped
---@return string
function M.describe(item)
  local text = ("%s: nothing is called '%s'"):format(item.option, item.name)
  -- The remedy first: a narrow screen cuts the end.
  return item.near and ("did you mean '%s'? %s"):format(item.near, text) or text
end

--- Tells the person of names that are near to one, once.
---@param registry mcp-tools.Registry
function M.tell(registry)
  for _, item in ipairs(vim.list_extend(M.list(registry), bundled.unknown())) do
    if item.near and #items.members(registry, item.option, item.name) == 0 then
      notify.once(('mistyped %s %s'):format(item.option, item.name), 'warn', M.describe(item))
    end
  end
end

return M

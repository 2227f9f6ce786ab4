--- What is particular to calling a tool.

local arguments = require('mcp-tools.calls.arguments')
local results = require('mcp-tools.calls.result')
local catalogue = require('mcp-tools.scope.tool_search')
local companions = require('mcp-tools.scope.agent_tools')
local errors = require('mcp-tools.errors')
local tool = require('mcp-tools.registry.definition.tool')
local suggest = require('mcp-tools.util.suggest')
local utf8 = require('mcp-tools.util.utf8')

--- Bytes of a name that is told back: a client may call anything.
local MAX_NAME = 200

--- Says which tool may have been meant, of those that the client sees: a model guesses names.
---@param registry mcp-tools.Registry
---@param name any
---@param view mcp-tools.View?
---@return string
local function unknown(registry, name, view)
  local text = ('Unknown tool: %s'):format(utf8.cut(tostring(name), MAX_NAME))
  if type(name) == 'string' then
    local prefix, names = registry.prefix(), {}
    prefix = vim.startswith(name, prefix) and prefix or '' -- told in the form in which it was asked for
    for each, definition in pairs(registry.entries.tools) do
      names[#names + 1] = (not view or view:allows(definition)) and each or nil
    end
    local near, edits = suggest(name:sub(#prefix + 1), names)
    if near and edits <= math.max(1, math.floor(#near / 3)) then -- else a model would take another tool for it
      text = ('%s; did you mean %s?'):format(text, tool.published_name(registry.entries.tools[near], prefix))
    end
    local why = registry.absence(name)
    text = why and ('%s: %s'):format(text, why) or text
  end
  return text
end

--- What the catalogue has under a name. For `tools_call` that is the tool which it calls, so that there is one call,
--- with that tool's annotations, approval, time and name in the audit log.
---@param registry mcp-tools.Registry
---@param name any
---@param args any
---@param view mcp-tools.View
---@return mcp-tools.Definition? definition
---@return mcp-tools.Error? err
---@return table? args of the tool that is called
local function of_catalogue(registry, name, args, view)
  local bare = catalogue.bare(registry, name)
  if bare ~= catalogue.CALL then
    return catalogue.bound(registry, view, bare)
  end
  local given, err = arguments.check(catalogue.get(bare), args, true)
  if not given then
    return nil, err
  end
  local definition = registry:find_tool(given.name)
  if not definition or not view:allows(definition) then
    -- Not `unknown_tool`, which says that this very call is malformed: models read results, and errors seldom.
    return nil, errors.new('not_found', 'name: ' .. unknown(registry, given.name, view))
  end
  return definition, nil, given.arguments or vim.empty_dict()
end

---@type mcp-tools.CallKind
return {
  find = function(registry, name, args, view)
    if view and view.catalogue == 'search' then
      local found, err, inner = of_catalogue(registry, name, args, view)
      if found or err then
        return found, err, inner
      end
    end
    local definition
    if view and view.companion then
      definition = companions.tool(view.companion, name)
    else
      definition = type(name) == 'string' and registry:find_tool(name)
    end
    if not definition or view and not view:allows(definition) then
      return nil, errors.new('unknown_tool', unknown(registry, name, view))
    end
    return definition
  end,
  arguments = arguments.check,
  decide = function(gateway, call, answer)
    gateway:decide(call, answer)
  end,
  payload = results.payload,
  limit = 'max_result',
}

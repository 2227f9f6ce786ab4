--- The call kind `tool`.

local arguments = require('mcp-tools.calls.arguments')
local results = require('mcp-tools.calls.result')
local errors = require('mcp-tools.errors')
local tool = require('mcp-tools.registry.definition.tool')
local suggest = require('mcp-tools.util.suggest')
local tool_search = require('mcp-tools.scope.tool_search')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum bytes of a requested name in a message.
local MAX_NAME = 200

--- Returns the message for an unknown tool, with a similar name from the client's scope if there is one.
---@param registry mcp-tools.Registry
---@param name any
---@param view mcp-tools.View?
---@return string
local function unknown_tool_message(registry, name, view)
  local text = ('Unknown tool: %s'):format(utf8.cut(tostring(name), MAX_NAME))
  if type(name) == 'string' then
    local prefix, names = registry.prefix(), {}
    prefix = vim.startswith(name, prefix) and prefix or '' -- suggests the same form, published or bare
    for each, definition in pairs(registry.entries.tools) do
      names[#names + 1] = (not view or view:allows(definition)) and each or nil
    end
    local near, edits = suggest(name:sub(#prefix + 1), names)
    if near and edits <= math.max(1, math.floor(#near / 3)) then -- a model would call even an unrelated tool
      text = ('%s; did you mean %s?'):format(text, tool.published_name(registry.entries.tools[near], prefix))
    end
    local why = registry.absence(name)
    text = why and ('%s: %s'):format(text, why) or text
  end
  return text
end

--- Finds a tool of tool search. For `tools_call` that is the tool which it calls, so that there is one call, with that
--- tool's annotations, approval, timeout and name in the audit log.
---@param registry mcp-tools.Registry
---@param name any
---@param args any
---@param view mcp-tools.View
---@return mcp-tools.Definition? definition
---@return mcp-tools.Error? err
---@return table? args of the called tool
local function find_for_search(registry, name, args, view)
  local bare = tool_search.bare(registry, name)
  if bare ~= tool_search.CALL then
    return tool_search.bound(registry, view, bare)
  end
  local given, err = arguments.check(tool_search.get(bare), args, true)
  if not given then
    return nil, err
  end
  local definition = registry:find_tool(given.name)
  if not definition or not view:allows(definition) then
    -- Not `unknown_tool`, which becomes a protocol error; models see only results.
    return nil, errors.new('not_found', 'name: ' .. unknown_tool_message(registry, given.name, view))
  end
  return definition, nil, given.arguments or vim.empty_dict()
end

---@type mcp-tools.CallKind
return {
  find = function(registry, name, args, view)
    if view and view.catalogue == 'search' then
      local found, err, inner = find_for_search(registry, name, args, view)
      if found or err then
        return found, err, inner
      end
    end
    local definition
    if view and view.agent then
      definition = view:agent_tool(name)
    else
      definition = type(name) == 'string' and registry:find_tool(name)
    end
    if not definition or view and not view:allows(definition) then
      return nil, errors.new('unknown_tool', unknown_tool_message(registry, name, view))
    end
    return definition
  end,
  arguments = arguments.check,
  payload = results.payload,
  limit = 'max_result',
}

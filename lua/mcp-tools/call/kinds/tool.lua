--- What is particular to calling a tool.
---
--- Receives: a registry and a name; what the caller and the handler gave.
--- Sends: the definition, arguments that fit, the decision, what crosses to the bridge.
--- Does not know about: states, timeouts, channels.

local arguments = require('mcp-tools.call.arguments')
local results = require('mcp-tools.call.result')
local errors = require('mcp-tools.errors')

---@type mcp-tools.CallKind
return {
  find = function(registry, name)
    local definition = type(name) == 'string' and registry:find_tool(name)
    if not definition then
      return nil, errors.new('unknown_tool', ('Unknown tool: %s'):format(tostring(name)))
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

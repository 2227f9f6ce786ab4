--- What is particular to calling a tool.
---
--- Receives: a registry and a name; what the caller and the handler gave.
--- Sends: the definition, arguments that fit, the decision, what crosses to the bridge.
--- Does not know about: states, timeouts, channels.

local arguments = require('mcp-tools.call.arguments')
local results = require('mcp-tools.call.result')
local errors = require('mcp-tools.errors')
local suggest = require('mcp-tools.util.suggest')
local utf8 = require('mcp-tools.util.utf8')

--- Bytes of a name that is told back: a client may call anything.
local MAX_NAME = 200

--- Says which tool may have been meant: a model guesses names.
---@param registry mcp-tools.Registry
---@param name any
---@return mcp-tools.Error
local function unknown(registry, name)
  local text = ('Unknown tool: %s'):format(utf8.cut(tostring(name), MAX_NAME))
  if type(name) == 'string' then
    local prefix = registry.prefix()
    prefix = vim.startswith(name, prefix) and prefix or '' -- told in the form in which it was asked for
    local near, edits = suggest(name:sub(#prefix + 1), vim.tbl_keys(registry.entries.tools))
    if near and edits <= math.max(1, math.floor(#near / 3)) then -- else a model would take another tool for it
      text = ('%s; did you mean %s?'):format(text, prefix .. near)
    end
  end
  return errors.new('unknown_tool', text)
end

---@type mcp-tools.CallKind
return {
  find = function(registry, name)
    local definition = type(name) == 'string' and registry:find_tool(name)
    if not definition then
      return nil, unknown(registry, name)
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

--- Kinds of calls: what can be called beside tools, by what `execute` is told.

--- What is particular to one kind of call; one file each beside this one.
---@class mcp-tools.CallKind
---@field find fun(registry: mcp-tools.Registry, name: string, args: any, view: mcp-tools.View?):
---  mcp-tools.Definition?, mcp-tools.Error?, table? the last: arguments that count in place of those given
---@field arguments fun(definition: mcp-tools.Definition, args: any, exact: boolean?): table?, mcp-tools.Error?
---@field decide fun(gateway: mcp-tools.Gateway, call: mcp-tools.Call, answer: fun(allowed: boolean, mcp-tools.Error?))
---@field payload fun(value: any, definition: table, limit: integer): mcp-tools.Payload?, mcp-tools.Error?
---@field limit 'max_result'|'max_resource' the setting that bounds what its handlers give
---@field asks_nothing boolean? it asks neither the client for inputs nor the user for approval
---@field named? fun(call: mcp-tools.Call): table, string? what names files in a call: values by their names, and the
---  URI of a resource; its arguments when left out

---@type table<string, mcp-tools.CallKind>
return {
  tool = require('mcp-tools.calls.kinds.tool'),
  resource = require('mcp-tools.calls.kinds.resource'),
  prompt = require('mcp-tools.calls.kinds.prompt'),
  completion = require('mcp-tools.calls.kinds.completion'),
}

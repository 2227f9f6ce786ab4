--- The kinds of calls, by the `kind` option of `Executor:execute`.

--- The behavior of one kind of call; each kind has a file in this directory.
---@class mcp-tools.CallKind
---@field find fun(registry: mcp-tools.Registry, name: string, args: any, view: mcp-tools.View?):
---  table?, mcp-tools.Error?, table? the definition, or a table with its fields; the last value replaces the arguments
---@field arguments fun(definition: mcp-tools.Definition, args: any, exact: boolean?): table?, mcp-tools.Error?
---@field payload fun(value: any, definition: table, limit: integer, call: mcp-tools.Call): mcp-tools.Payload?, any
---@field limit 'max_result'|'max_resource' the setting that limits the size of its results
---@field asks_nothing boolean? it asks neither the client for inputs nor the user for approval
---@field named? fun(call: mcp-tools.Call): table, string? returns the values in which approval looks for files
---  (default: the arguments), and the URI of a resource

---@type table<string, mcp-tools.CallKind>
return {
  tool = require('mcp-tools.calls.kinds.tool'),
  resource = require('mcp-tools.calls.kinds.resource'),
  prompt = require('mcp-tools.calls.kinds.prompt'),
  completion = require('mcp-tools.calls.kinds.completion'),
}

--- The call kind `completion`: completes an argument of a prompt or a variable of a resource template.

local errors = require('mcp-tools.errors')
local results = require('mcp-tools.calls.result')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum number of values in one MCP answer.
local MAX_VALUES = 100

--- Definition for an argument without completions.
---@type table
local NO_COMPLETIONS = {
  name = 'completion',
  style = 'execute',
  handler = function(ctx)
    ctx({})
  end,
}

---@param registry mcp-tools.Registry
---@param ref table
---@return table<string, function>? completions, table? definition
local function completions_of(registry, ref)
  if ref.type == 'prompt' or ref.type == 'ref/prompt' then
    local prompt = registry.entries.prompts[ref.name]
    if not prompt then
      return nil
    end
    local list = {}
    for _, arg in ipairs(prompt.args) do
      list[arg.name] = arg.complete
    end
    return list, prompt
  end
  local resource = registry.entries.templates[ref.uri] or registry.entries.resources[ref.uri]
  if resource then
    return resource.complete, resource
  end
end

---@type mcp-tools.CallKind
return {
  find = function(registry, _, args)
    local ref = type(args) == 'table' and type(args.ref) == 'table' and args.ref or {}
    local argument = type(args) == 'table' and type(args.argument) == 'table' and args.argument or {}
    if type(argument.name) ~= 'string' or type(argument.value) ~= 'string' then
      return nil, errors.new('validation_error', 'argument: must have a name and a value')
    end
    local completions, definition = completions_of(registry, {
      type = ref.type,
      name = type(ref.name) == 'string' and ref.name or '',
      uri = type(ref.uri) == 'string' and ref.uri or '',
    })
    if not completions then
      return nil, errors.new('not_found', 'there is no such prompt or resource template')
    end
    local complete = completions[argument.name]
    if not complete then
      return NO_COMPLETIONS -- has a fixed name, so that the history keeps no name that a client made up
    end
    return setmetatable({
      name = definition.key,
      label = ('%s of %s'):format(argument.name, definition.key),
      style = 'execute',
      handler = function(ctx, given)
        return complete(ctx, given.value, given.arguments)
      end,
    }, { __index = definition })
  end,
  arguments = function(_, args)
    local context = type(args.context) == 'table' and args.context or {}
    local arguments = type(context.arguments) == 'table' and context.arguments or {}
    return { name = args.argument.name, value = args.argument.value, arguments = arguments }
  end,
  named = function(call)
    local args = call.args
    return { { [args.name] = args.value }, args.arguments }
  end,
  payload = function(value)
    local has_values = type(value) == 'table' and type(value.values) == 'table'
    local values = has_values and value.values or value or {}
    if type(values) ~= 'table' or not vim.islist(values) then
      return nil, errors.new('invalid_output', 'a completion must be a list of strings: write `ctx({ "a", "b" })`')
    end
    local shown = {}
    for i = 1, math.min(#values, MAX_VALUES) do
      if type(values[i]) ~= 'string' then
        return nil, errors.new('invalid_output', ('value %d of a completion is a %s'):format(i, type(values[i])))
      end
      shown[i] = utf8.repair(values[i])
    end
    local total = has_values and value.total or #values
    return results.encoded({
      values = shown,
      total = total,
      hasMore = total > #shown or (has_values and value.has_more == true) or nil,
    })
  end,
  limit = 'max_result',
  asks_nothing = true,
}

-- Arguments for tools, by the names of their parameters: a new tool is measured without an entry here.

local M = {}

--- Tools that wait for the user.
M.left_out = { ask_user = true, test_async_prompt = true }

--- Values by parameter name; other required parameters get a value of their type.
---@param project { lua: string, json: string, python: string }
local function values(project)
  return {
    path = project.lua,
    line = 12496,
    column = 16,
    symbol = 'step_2500',
    query = 'step_2500',
    topic = 'api',
    expression = '1',
    timeout_ms = 300,
    wait_ms = 300,
  }
end

--- Values by tool, where a parameter of that name has another meaning; false: omitted.
---@param project { lua: string, json: string, python: string }
local function exceptions(project)
  return {
    file_read = { symbol = false },
    analyze_python = { path = project.python },
    file_json = { path = project.json, query = 'items.100' },
    plugin_info = { module = 'mcp-tools' },
    treesitter_query = { query = '(function_declaration) @each' },
  }
end

--- Returns a value that is valid for a schema.
local function any(schema)
  if schema.default ~= nil then
    return schema.default
  elseif schema.enum then
    return schema.enum[1]
  end
  local kind = type(schema.type) == 'table' and schema.type[1] or schema.type
  if kind == 'array' then
    return { any(schema.items or {}) }
  elseif kind == 'object' then
    local object = vim.empty_dict()
    for _, name in ipairs(schema.required or {}) do
      object[name] = any((schema.properties or {})[name] or {})
    end
    return object
  end
  return ({ boolean = true, integer = schema.minimum or 1, number = schema.minimum or 1 })[kind] or 'step'
end

--- Returns the argument variants of a tool: with the large file, and without a file.
---@param definition { name: string, input_schema: table }
---@param project { lua: string, json: string, python: string }
---@return table<string, table>
function M.of(definition, project)
  local schema, known = definition.input_schema or {}, values(project)
  local special, args, required = exceptions(project)[definition.name] or {}, vim.empty_dict(), {}
  for _, name in ipairs(schema.required or {}) do
    required[name] = true
  end
  for name, property in pairs(schema.properties or {}) do
    if special[name] ~= nil then
      args[name] = special[name] or nil
    elseif known[name] ~= nil and not (name == 'query' and property.type ~= 'string') then
      args[name] = known[name]
    elseif required[name] then
      args[name] = any(property)
    end
  end
  if args.path == nil or required.path or special.path then
    return { [''] = args }
  end
  local without = vim.deepcopy(args)
  without.path, without.line, without.column = nil, nil, nil
  return { [' file'] = args, [''] = without }
end

return M

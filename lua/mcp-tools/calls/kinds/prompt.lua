--- The call kind `prompt`: gets the messages of a prompt.

local content = require('mcp-tools.content')
local results = require('mcp-tools.calls.result')
local errors = require('mcp-tools.errors')
local invalid_arguments = require('mcp-tools.calls.kinds.tool').invalid_arguments
local utf8 = require('mcp-tools.util.utf8')

--- Maximum bytes of a requested name in a message.
local MAX_NAME = 200

local ROLES = { user = true, assistant = true }

---@param list table
---@param role any
---@param given any a content value, a string, or a list of them
---@param place string
---@return mcp-tools.Error? err
local function add(list, role, given, place)
  if not ROLES[role] then
    return errors.new('invalid_output', place .. '.role must be "user" or "assistant"')
  end
  local items = (content.is_block(given) or type(given) ~= 'table') and { given } or given
  for _, item in ipairs(items) do
    if type(item) == 'string' then
      item = content.text(item)
    elseif not content.is_block(item) then
      return errors.new(
        'invalid_output',
        place .. '.content must be a string or a content value, such as content.text(…)'
      )
    end
    list[#list + 1] = { role = role, content = item }
  end
end

--- Converts a handler's result to messages, each with a role and one content value.
---@param value any a text, content values, messages, or `{ description, messages }`
---@return table[]? messages, mcp-tools.Error? err
local function messages_of(value)
  local list, err = {}, nil
  if type(value) ~= 'table' or content.is_block(value) or content.is_block(value[1]) then
    err = add(list, 'user', value, 'result')
  else
    for i, message in ipairs(value) do
      local place = ('result[%d]'):format(i)
      if type(message) ~= 'table' then
        return nil, errors.new('invalid_output', place .. ' must be a message: { role = …, content = … }')
      end
      err = err or add(list, message.role, message.content, place)
    end
  end
  if not err and #list == 0 then
    err = errors.new('invalid_output', 'a prompt must have a message')
  end
  return not err and list or nil, err
end

---@type mcp-tools.CallKind
return {
  find = function(registry, name)
    local definition = registry.entries.prompts[name]
    if not definition then
      return nil, errors.new('not_found', ('Unknown prompt: %s'):format(utf8.cut(tostring(name), MAX_NAME)))
    end
    return definition
  end,
  arguments = function(definition, args)
    if args == nil or args == vim.NIL then
      args = {}
    end
    if type(args) ~= 'table' then
      return nil, invalid_arguments(definition.name, { { field = '(root)', message = 'must be an object' } })
    end
    local faults, known = {}, {}
    for _, arg in ipairs(definition.args) do
      local value = args[arg.name]
      if value ~= nil and value ~= vim.NIL and type(value) ~= 'string' then
        table.insert(faults, { field = arg.name, message = 'must be a string, got ' .. type(value) })
      elseif type(value) == 'string' and value:find('%S') then
        known[arg.name] = value
      elseif arg.required then
        table.insert(faults, { field = arg.name, message = 'is required' })
      end
    end
    if #faults > 0 then
      return nil, invalid_arguments(definition.name, faults)
    end
    return known
  end,
  payload = function(value, definition, limit)
    if content.is_raw(value) then
      return results.raw_payload(value, {}, limit, 'prompt')
    end
    local has_messages = type(value) == 'table' and value.messages ~= nil
    local messages, err = messages_of(has_messages and value.messages or value)
    if not messages then
      return nil, err
    end
    local size = 0
    for _, message in ipairs(messages) do
      local block, bytes = results.block(message.content)
      message.content, size = block, size + bytes
    end
    local description = has_messages and value.description or definition.description
    return results.encoded({ description = description, messages = messages }, size, limit, 'prompt')
  end,
  limit = 'max_result',
}

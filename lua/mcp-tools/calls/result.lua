--- Encodes a tool's result once, as the `kind` and `text` that are sent to the bridge.

local content = require('mcp-tools.content')
local errors = require('mcp-tools.errors')
local json = require('mcp-tools.util.json')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

---@param block mcp-tools.Block
---@return table mcp
---@return integer size
local function encode_block(block)
  if block.type == 'text' then
    return { type = 'text', text = block.text }, #block.text
  end
  if block.type == 'resource' then
    local blob = block.bytes and vim.base64.encode(block.bytes)
    local resource = { uri = block.resource.uri, mimeType = block.resource.mimeType, text = block.resource.text }
    resource.blob, resource._meta = blob, block.resource._meta
    return { type = 'resource', resource = resource }, #(blob or resource.text)
  end
  if block.bytes then
    local data = vim.base64.encode(block.bytes)
    return { type = block.type, data = data, mimeType = block.mimeType }, #data
  end
  local link, size = {}, 0
  for key, item in pairs(block) do
    if key ~= 'extras' then
      link[key] = item
      size = size + (type(item) == 'string' and #item or 0)
    end
  end
  return link, size
end

--- Converts a content value to an MCP content block.
---@param block mcp-tools.Block
---@return table mcp
---@return integer size bytes of its text or base64; for a link, of all strings
function M.block(block)
  local mcp, size = encode_block(block)
  for field, value in pairs(block.extras or {}) do
    mcp[field] = value
  end
  return mcp, size
end

---@class mcp-tools.Payload
---@field kind 'text'|'json'|'content'|'empty'
---@field text string?
---@field structured true? the text is also the structured content
---@field raw true? the text comes from another process

--- The part of a definition that results are checked and encoded with.
---@class mcp-tools.OutputCheck
---@field check_output mcp-tools.Validator?
---@field render? fun(value: any, args: table): string

--- Returns an error if a result is larger than allowed.
---@param size integer
---@param limit integer
---@param what? 'result'|'resource'|'prompt'
---@return mcp-tools.Error?
function M.size_error(size, limit, what)
  if size > limit then
    local option = what == 'resource' and 'limits.resource' or 'limits.tool_result'
    local text = 'the %s has %d bytes, the limit is %d (option %s). Request less data'
    return errors.new('too_large', text:format(what or 'result', size, limit, option))
  end
end

--- Encodes the result of a resource, prompt or completion.
---@param value table
---@param size integer? bytes of its content
---@param limit integer?
---@param what? 'resource'|'prompt'
---@return mcp-tools.Payload?, mcp-tools.Error?
function M.encoded(value, size, limit, what)
  local err = size and M.size_error(size, limit, what)
  if err then
    return nil, err
  end
  local text, fault = json.encode(value)
  return text and { kind = 'content', text = text }, fault
end

--- Returns an error if a value does not fit the output schema.
---@param definition mcp-tools.OutputCheck
---@param value any
---@return mcp-tools.Error?
local function misfit(definition, value)
  local ok, faults = definition.check_output:check(value == nil and vim.NIL or value)
  return not ok and errors.new('invalid_output', 'the result does not fit the output_schema', faults) or nil
end

---@param result mcp-tools.ContentResult
---@param limit integer
---@return mcp-tools.Payload?, mcp-tools.Error?
local function content_payload(result, limit)
  local max = content.MAX_BLOCKS
  if #result.content > max then
    local text = 'the result has %d content blocks, the limit is %d. Combine related text in one block'
    return nil, errors.new('too_large', text:format(#result.content, max))
  end
  local blocks, size = {}, 0
  for i, block in ipairs(result.content) do
    local mcp, bytes = M.block(block)
    blocks[i], size = mcp, size + bytes
  end
  local oversize = M.size_error(size, limit)
  if oversize then
    return nil, oversize
  end
  local text, err = json.encode({
    content = blocks,
    structuredContent = result.structured,
    isError = result.is_error,
    _meta = result.meta,
  })
  if text and #text > limit then -- the difference may be JSON escapes, which do not count
    for _, data in ipairs({ result.structured or false, result.meta or false }) do
      size = size + (data and #assert(json.encode(data)) or 0)
    end
    oversize = M.size_error(size, limit)
  end
  return not oversize and text and { kind = 'content', text = text } or nil, oversize or err
end

--- Passes on a result from another process. It is decoded only if it must be checked.
---@param raw mcp-tools.RawResult
---@param definition mcp-tools.OutputCheck
---@param limit integer
---@param what? 'result'|'resource'|'prompt'
---@return mcp-tools.Payload?, mcp-tools.Error?
function M.raw_payload(raw, definition, limit, what)
  local err = M.size_error(raw.size, limit, what)
  if err then
    return nil, err
  elseif definition.check_output then
    local data = vim.json.decode(raw.text)
    local failed = raw.kind == 'content' and data.isError
    if raw.kind == 'content' then
      data = data.structuredContent
    end
    err = not failed and misfit(definition, data) or nil
    if err then
      return nil, err
    end
  end
  local structured = raw.kind == 'json' and definition.check_output and true or nil
  return { kind = raw.kind, text = raw.text, structured = structured, raw = true }
end

--- Encodes a tool's result for the bridge.
---@param value any the handler's result
---@param definition mcp-tools.OutputCheck
---@param limit integer maximum size of the content in bytes
---@param call? { args: table?, host: string }
---@return mcp-tools.Payload? payload
---@return mcp-tools.Error? err `invalid_output`, `not_serializable` or `too_large`
function M.payload(value, definition, limit, call)
  if content.is_raw(value) then
    if not definition.render or value.kind ~= 'json' then
      return M.raw_payload(value, definition, limit)
    end
    value = vim.json.decode(value.text)
  end
  if definition.render and type(value) == 'table' and not content.as_result(value) then
    local text = definition.render(value, call and call.args or {})
    if call and call.host == 'python' then -- `call_tool` returns both
      return content_payload({ content = { content.text(text) }, structured = value }, limit)
    end
    value = text
  end
  local result = content.as_result(value)
  if definition.check_output and not (result and result.is_error) then
    local data = value
    if result then
      data = result.structured
    end
    data = definition.check_output:shape(data)
    local err = misfit(definition, data)
    if err then
      return nil, err
    end
    if result then
      result = { content = result.content, structured = data, is_error = result.is_error, meta = result.meta }
    else
      value = data
    end
  end
  if result then
    return content_payload(result, limit)
  end
  if value == nil then
    return { kind = 'empty' }
  end
  local payload
  if type(value) == 'string' and not definition.check_output then
    payload = { kind = 'text', text = value }
  else
    local text, err = json.encode(value)
    if not text then
      return nil, err
    end
    payload = { kind = 'json', text = text, structured = definition.check_output and true or nil }
  end
  local oversize = M.size_error(#payload.text, limit)
  return not oversize and payload or nil, oversize
end

--- Returns the result of a call as a Lua value. Decodes it if only the text was kept.
---@param outcome mcp-tools.Outcome
---@return any value
function M.value_of(outcome)
  local payload = outcome.payload
  if outcome.value ~= nil or not payload or not payload.text or payload.kind == 'text' then
    return outcome.value == nil and payload and payload.text or outcome.value
  end
  local ok, value = pcall(vim.json.decode, payload.text)
  if ok and payload.raw and payload.kind == 'content' and type(value) == 'table' and value.content then
    local made, result = pcall(content.of_mcp, value)
    return made and result or value
  elseif ok then
    return value
  end
  return payload.text
end

--- Returns the path of the first string that is not valid UTF-8. The bridge refuses such results.
---@param value any
---@param root? string
---@return string? path
function M.bad_bytes(value, root)
  local keys, seen = {}, {}
  local function search(item, depth)
    if type(item) == 'string' then
      return utf8.invalid_at(item) ~= nil
    end
    if type(item) ~= 'table' or seen[item] then
      return false
    end
    seen[item] = true
    for key, child in pairs(item) do
      keys[depth] = key
      if type(key) == 'string' and utf8.invalid_at(key) then
        keys[depth] = utf8.repair(key)
        return true
      end
      if search(child, depth + 1) then
        return true
      end
      keys[depth] = nil
    end
    return false
  end
  if search(value, 1) then
    return json.path(root or 'result', keys)
  end
  return nil
end

return M

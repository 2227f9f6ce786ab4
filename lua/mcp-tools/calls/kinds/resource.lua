--- The call kind `resource`: reads a resource. The name of the call is the URI.

local content = require('mcp-tools.content')
local errors = require('mcp-tools.errors')
local json = require('mcp-tools.util.json')
local mime = require('mcp-tools.files.mime')
local mounted = require('mcp-tools.calls.kinds.mounted')
local project = require('mcp-tools.instances.project')
local resolver = require('mcp-tools.calls.resolver')
local utf8 = require('mcp-tools.util.utf8')

---@param value any
---@return boolean
local function is_contents(value)
  return type(value) == 'table' and (type(value.text) == 'string' or type(value.blob) == 'string')
end

--- Splits a handler's result into items: a string, one item, or a list of items. Anything else becomes JSON.
---@param value any
---@param located mcp-tools.Located
---@return table[]? items
---@return mcp-tools.Error? err
local function items_of(value, located)
  if type(value) == 'string' then
    local is_text = not located.mime_type or mime.is_text_mime(located.mime_type)
    return { { [is_text and 'text' or 'blob'] = value } }
  elseif value == nil then
    return {}
  elseif content.is_block(value) or is_contents(value) then
    return { value }
  elseif type(value) == 'table' and (content.is_block(value[1]) or is_contents(value[1])) then
    return value
  end
  local text, err = json.encode(value)
  return text and { { text = text, mime_type = 'application/json' } }, err
end

--- Converts an item to MCP's `ResourceContents`.
---@param item any
---@param located mcp-tools.Located
---@return table? contents nil if the item is invalid
---@return integer size bytes of its text or base64
local function contents_of(item, located)
  if content.is_block(item) then
    local resource = item.resource or {}
    item = { uri = resource.uri, mime_type = resource.mimeType, text = resource.text or item.text, blob = item.bytes }
    if item.blob and not resource.uri then
      return nil, 0 -- images and audio are for results of tools
    end
  end
  if not is_contents(item) or (item.text ~= nil and item.blob ~= nil) then
    return nil, 0
  end
  local out = { uri = item.uri or located.uri, mimeType = item.mime_type or located.mime_type, _meta = item._meta }
  if item.blob then
    out.mimeType = out.mimeType or mime.BYTES
    out.blob = vim.base64.encode(item.blob)
    return out, #out.blob
  end
  out.mimeType = out.mimeType or 'text/plain'
  out.text = item.text
  if located.repair then
    local text, lossy = utf8.repair(item.text)
    out.text, out._meta = text, lossy and { lossy = true } or out._meta
  end
  return out, #out.text
end

---@param size integer
---@param limit integer
---@return mcp-tools.Error
local function too_large(size, limit)
  local text = ('the resource has %d bytes, the limit is %d (option limits.resource)'):format(size, limit)
  return errors.new('too_large', text)
end

---@type mcp-tools.CallKind
return {
  find = function(registry, uri)
    return resolver.find(registry, uri, project.root)
  end,
  arguments = function(located)
    return (located --[[@as mcp-tools.Located]]).params
  end,
  decide = mounted.decide,
  named = function(call)
    return call.args, mounted.own_uri(call.definition.uri)
  end,
  payload = function(value, located, limit)
    if content.is_raw(value) then
      if value.size > limit then
        return nil, too_large(value.size, limit)
      end
      return { kind = 'content', text = value.text, raw = true }
    end
    local items, err = items_of(value, located)
    if not items then
      return nil, err
    end
    local contents, size = {}, 0
    for i, item in ipairs(items) do
      local one, bytes = contents_of(item, located)
      if not one then
        local text = 'item %d: invalid contents; use a string, { text = … }, { blob = … } or content.resource{}'
        return nil, errors.new('invalid_output', text:format(i))
      end
      contents[i], size = one, size + bytes
    end
    if size > limit then
      return nil, too_large(size, limit)
    end
    local text, fault = json.encode({ contents = contents })
    return text and { kind = 'content', text = text }, fault
  end,
  limit = 'max_resource',
}

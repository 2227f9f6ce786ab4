--- The call kind `resource`: reads a resource. The name of the call is the URI.
---
--- A client gets the same error for every URI that cannot be read: unknown, forbidden, outside the project. Only the
--- log has the cause. Order: syntax → scheme → fixed URIs → templates → files (in the project, not sensitive).

local access = require('mcp-tools.privacy.access')
local content = require('mcp-tools.content')
local errors = require('mcp-tools.errors')
local json = require('mcp-tools.util.json')
local log = require('mcp-tools.log')
local mime = require('mcp-tools.files.mime')
local project = require('mcp-tools.instances.project')
local results = require('mcp-tools.calls.result')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum length in bytes. No file system allows longer paths, percent-encoded or not.
local MAX_URI = 8192

--- A resource found by its URI: its definition, and these fields.
---@class mcp-tools.Located: mcp-tools.ResourceDefinition
---@field name string key of the definition; approval rules apply to it
---@field label string the URI, used as the name of the call
---@field uri string
---@field params table<string, string> values of the template's variables; file names are resolved paths
---@field resource mcp-tools.ResourceDefinition

--- Makes text from a client safe for the log.
---@param text any
---@return string
local function for_log(text)
  return (tostring(text):sub(1, 200):gsub('%c', '?'))
end

--- Logs why a resource cannot be read and returns the error for the client, which does not have the cause.
---@param uri any
---@param cause string
---@return mcp-tools.Error
local function miss(uri, cause)
  log.info('resource %s cannot be read: %s', for_log(uri), cause)
  return errors.new('not_found', 'Resource not found')
end

---@param registry mcp-tools.Registry
---@param scheme string
local function is_known_scheme(registry, scheme)
  for _, kind in ipairs({ 'resources', 'templates' }) do
    for _, entry in pairs(registry.entries[kind]) do
      if entry.scheme == scheme then
        return true
      end
    end
  end
  return false
end

--- Finds the template with the longest literal text that matches the URI; with equal lengths, the first by name.
---@param registry mcp-tools.Registry
---@param uri string
---@return mcp-tools.ResourceDefinition?
---@return table<string, string>? params
local function by_template(registry, uri)
  local best, best_key, params
  for key, entry in pairs(registry.entries.templates) do
    local more = best and entry.template.literal - best.template.literal or 1
    if more > 0 or (more == 0 and key < best_key) then
      local values = entry.template:match(uri)
      if values then
        best, best_key, params = entry, key, values
      end
    end
  end
  return best, params
end

--- Replaces the paths in `params` by resolved paths, or returns why one must not be read.
---@param definition mcp-tools.ResourceDefinition
---@param params table<string, string> changed in place
---@param root string
---@return string? cause
local function resolve_paths(definition, params, root)
  for name in pairs(definition.paths) do
    local given = definition.scheme == 'file' and '/' .. params[name] or params[name]
    local path, why = access.path(given, root)
    if not path then
      return ('%s is %s'):format(for_log(given), why)
    end
    for _, bufnr in ipairs(access.showing(path)) do
      if access.is_marked(bufnr) then
        return ('buffer %d is marked as sensitive'):format(bufnr)
      end
    end
    params[name] = path
  end
end

--- Finds the resource that a URI names.
---@param registry mcp-tools.Registry
---@param uri any
---@return mcp-tools.Located?
---@return mcp-tools.Error? err
local function find(registry, uri)
  if type(uri) ~= 'string' or #uri > MAX_URI then
    return nil, miss(uri, 'the URI is not a string, or too long')
  elseif uri:find('[%c%s]') then
    return nil, miss(uri, 'the URI has spaces or control characters')
  end
  local scheme = uri:match('^(%l[%l%d+.-]*):')
  if not scheme or not is_known_scheme(registry, scheme) then
    return nil, miss(uri, 'no resource has this scheme')
  end
  local definition, params = registry.entries.resources[uri], {}
  if not definition then
    definition, params = by_template(registry, uri)
  end
  if not definition then
    return nil, miss(uri, 'no resource has this URI')
  end
  for name, value in pairs(params) do
    if value:find('%z') then
      return nil, miss(uri, name .. ' has a NUL byte')
    end
  end
  if next(definition.paths) then
    local cause = resolve_paths(definition, params, project.root())
    if cause then
      return nil, miss(uri, cause)
    end
  end
  local located = { name = definition.key, label = uri, uri = uri, params = params, resource = definition }
  return setmetatable(located, { __index = definition })
end

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
  if located.source and located.source.origin == 'bundled' then
    local text, lossy = utf8.repair(item.text)
    out.text, out._meta = text, lossy and { lossy = true } or out._meta
  end
  return out, #out.text
end

---@class mcp-tools.ResourceKind: mcp-tools.CallKind
---@field miss fun(uri: any, cause: string): mcp-tools.Error
return {
  find = find,
  miss = miss,
  arguments = function(located)
    return (located --[[@as mcp-tools.Located]]).params
  end,
  named = function(call)
    return call.args, (call.definition.uri:gsub('^[^:+]*%+', '', 1)) -- the mounted server's own URI
  end,
  payload = function(value, located, limit)
    if content.is_raw(value) then
      return results.raw_payload(value, {}, limit, 'resource')
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
    return results.encoded({ contents = contents }, size, limit, 'resource')
  end,
  limit = 'max_resource',
}

--- Resolves the URI of every resource read to its definition, and checks that the files it names may be read.
---
--- The client gets the same error for every failure: unknown, forbidden, outside the project, unreadable. Only the log
--- has the cause. Order: syntax → scheme → fixed URIs → templates → files (in the project, not sensitive).

local access = require('mcp-tools.privacy.access')
local buffer_kind = require('mcp-tools.privacy.buffer_kind')
local errors = require('mcp-tools.errors')
local kinds = require('mcp-tools.registry.kinds')
local log = require('mcp-tools.log')

local M = {}

--- Maximum length in bytes. No file system allows longer paths, percent-encoded or not.
local MAX_URI = 8192

--- A resource found by its URI.
---@class mcp-tools.Located
---@field name string key of the definition; approval rules apply to it
---@field label string the URI, used as the name of the call
---@field uri string
---@field params table<string, string> values of the template's variables; file names are resolved paths
---@field resource mcp-tools.ResourceDefinition
---@field title string?
---@field description string?
---@field annotations table?
---@field source mcp-tools.Source?
---@field style 'execute'|'run'
---@field handler function
---@field timeout number?
---@field mime_type string?
---@field repair boolean invalid UTF-8 in its text is replaced

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
function M.miss(uri, cause)
  log.info('resource %s cannot be read: %s', for_log(uri), cause)
  return errors.new('not_found', 'Resource not found')
end

---@param registry mcp-tools.Registry
---@param scheme string
local function is_known_scheme(registry, scheme)
  for _, row in ipairs(kinds.of_option('resources')) do
    for _, entry in pairs(registry.entries[row.kind]) do
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
    for _, bufnr in ipairs(buffer_kind.showing(path)) do
      if buffer_kind.is_marked(bufnr) then
        return ('buffer %d is marked as sensitive'):format(bufnr)
      end
    end
    params[name] = path
  end
end

--- Finds the resource that a URI names.
---@param registry mcp-tools.Registry
---@param uri any
---@param root fun(): string
---@return mcp-tools.Located?
---@return mcp-tools.Error? err
function M.find(registry, uri, root)
  if type(uri) ~= 'string' or #uri > MAX_URI then
    return nil, M.miss(uri, 'the URI is not a string, or too long')
  elseif uri:find('[%c%s]') then
    return nil, M.miss(uri, 'the URI has spaces or control characters')
  end
  local scheme = uri:match('^(%l[%l%d+.-]*):')
  if not scheme or not is_known_scheme(registry, scheme) then
    return nil, M.miss(uri, 'no resource has this scheme')
  end
  local definition, params = registry.entries.resources[uri], {}
  if not definition then
    definition, params = by_template(registry, uri)
  end
  if not definition then
    return nil, M.miss(uri, 'no resource has this URI')
  end
  for name, value in pairs(params) do
    if value:find('%z') then
      return nil, M.miss(uri, name .. ' has a NUL byte')
    end
  end
  if next(definition.paths) then
    local cause = resolve_paths(definition, params, root())
    if cause then
      return nil, M.miss(uri, cause)
    end
  end
  return {
    name = definition.key,
    label = uri,
    uri = uri,
    params = params,
    resource = definition,
    title = definition.title,
    description = definition.description,
    annotations = definition.annotations,
    source = definition.source,
    style = definition.style,
    handler = definition.handler,
    timeout = definition.timeout,
    mime_type = definition.mime_type,
    repair = definition.source ~= nil and definition.source.origin == 'bundled',
  }
end

return M

--- The client's files, for tools: the server side of the MCP extension `ai.nimblebrain/host-resources`.
---
--- The extension is described at https://docs.nimblebrain.ai/apps/host-capabilities and by the Python package
--- nimblebrain-bundle-sdk. A client declares `{ read = { enabled, maxSize, schemes }, list = { enabled }, schemes }`.
--- Methods are `ai.nimblebrain/resources/read` (`{ uri }`) and `…/list` (`{ _meta = { filter = { scheme, mimeType,
--- tags } } }`); the results are those of MCP's `resources/read` and `resources/list`. Errors: -32002 not found, -32004
--- too many reads (with `retryAfterMs`), -32005 too large, -32602 unknown scheme or filter.

local config = require('mcp-tools.config')
local errors = require('mcp-tools.errors')
local is_strings = require('mcp-tools.schema.value').is_strings
local validate = require('mcp-tools.util.validate')

local M = {}

M.READ = 'ai.nimblebrain/resources/read'
M.LIST = 'ai.nimblebrain/resources/list'

local EXTENSION = 'ai.nimblebrain/host-resources'

local STRING, STRING_OR_NULL = { type = 'string' }, { type = { 'string', 'null' } }

--- Returns nil for JSON's null.
local function not_null(value)
  if value ~= vim.NIL then
    return value
  end
end

---@param list any
---@return boolean
local function is_strings_or_null(list)
  return not_null(list) == nil or is_strings(list)
end

-- The client's declaration -------------------------------------------------------------------------------------------

--- Returns what the client declared; empty if this call cannot ask the client: without a session, or a completion.
---@param call mcp-tools.Call
---@return table
local function declared(call)
  if call.session and not (call.kind and call.kind.asks_nothing) then
    for _, place in ipairs({ 'extensions', 'experimental' }) do
      local extensions = call.capabilities[place]
      local found = type(extensions) == 'table' and extensions[EXTENSION]
      if type(found) == 'table' then
        return found
      end
    end
  end
  return {}
end

---@param declaration table of the client
---@return boolean
local function is_readable(declaration)
  local read = type(declaration.read) == 'table' and declaration.read or {}
  local size = not_null(read.maxSize)
  return read.enabled == true
    and (size == nil or type(size) == 'number' and size >= 1)
    and is_strings_or_null(read.schemes)
    and is_strings_or_null(declaration.schemes)
end

---@param declaration table of the client
---@return boolean
local function is_listable(declaration)
  return type(declaration.list) == 'table' and declaration.list.enabled == true
end

---@param call mcp-tools.Call
---@return string[]? schemes nil if the declaration has none or is invalid
local function schemes_of(call)
  local declaration = declared(call)
  local schemes = type(declaration.read) == 'table' and not_null(declaration.read.schemes)
    or not_null(declaration.schemes)
  return is_strings_or_null(schemes) and schemes or nil
end

---@param schemes string[]?
---@param scheme string
---@return boolean
local function has(schemes, scheme)
  return vim.iter(schemes or {}):any(function(known)
    return known:lower() == scheme:lower()
  end)
end

-- Requests and answers ----------------------------------------------------------------------------------------------

--- Returns the error for a capability that the client lacks.
---@param call mcp-tools.Call
---@param part 'read'|'list'
---@return mcp-tools.Error
local function lacking(call, part)
  if not call.session then
    return errors.new('capability_missing', 'host resources need a session, which this client does not have')
  end
  local text = ('the client does not allow tools to %s its resources (extension %s)'):format(part, EXTENSION)
  local err = errors.new('capability_missing', text)
  err.required = { extensions = { [EXTENSION] = { [part] = { enabled = true } } } }
  return err
end

---@param params { uri: string }
---@param call mcp-tools.Call
---@return mcp-tools.Error?
local function refuse_read(params, call)
  local scheme, schemes = params.uri:match('^(%a[%w+.-]*):'), schemes_of(call)
  if not is_readable(declared(call)) then
    return lacking(call, 'read')
  elseif not scheme then
    return errors.new('validation_error', 'uri: must begin with a scheme, such as files://')
  elseif schemes and not has(schemes, scheme) then
    local text = "uri: the client has no resources with the scheme '%s' (it has %s)"
    local known = #schemes > 0 and table.concat(schemes, ', ') or 'none'
    return errors.new('validation_error', text:format(scheme, known))
  end
end

---@param _ table
---@param call mcp-tools.Call
---@return mcp-tools.Error?
local function refuse_list(_, call)
  return not is_listable(declared(call)) and lacking(call, 'list') or nil
end

--- Returns what is wrong with contents that match the schema.
---@param result table
---@param call mcp-tools.Call
---@return string? fault
---@return mcp-tools.ErrorCode? code
local function read_fault(result, call)
  local total = 0
  for i, item in ipairs(result.contents) do
    local text, blob = not_null(item.text), not_null(item.blob)
    if (text == nil) == (blob == nil) then
      return ('contents[%d]: must have either text or blob'):format(i - 1)
    end
    local ok, bytes = true, text
    if blob then
      ok, bytes = pcall(vim.base64.decode, blob)
    end
    if not ok then
      return ('contents[%d].blob: must be base64'):format(i - 1)
    end
    total = total + #bytes
  end
  local max_size = not_null(declared(call).read.maxSize) or math.huge
  local limit = math.min(max_size, config.get().limits.resource)
  if total > limit then
    local whose = limit == max_size and 'its own maxSize' or 'option limits.resource'
    return ('the file has %d bytes, the limit is %d (%s)'):format(total, limit, whose), 'too_large'
  end
end

---@param list string name of the list
---@param properties table of its items
---@param required string[]
---@return table
local function list_of(list, properties, required)
  local items = { type = 'object', properties = properties, required = required }
  return { type = 'object', properties = { [list] = { type = 'array', items = items } }, required = { list } }
end

--- Added to the methods of calls/inputs/init.lua.
---@type table<string, mcp-tools.InputMethod>
M.METHODS = {
  [M.READ] = {
    refuse = refuse_read,
    answer = list_of(
      'contents',
      { uri = STRING, mimeType = STRING_OR_NULL, text = STRING_OR_NULL, blob = STRING_OR_NULL },
      { 'uri' }
    ),
    fault = read_fault,
  },
  [M.LIST] = {
    refuse = refuse_list,
    answer = list_of('resources', { uri = STRING, name = STRING }, { 'uri', 'name' }),
  },
}

-- The object that `ctx:host_resources()` returns ----------------------------------------------------------------------

---@class mcp-tools.HostContents one part of a file; either `text` or `blob`
---@field uri string
---@field mimeType string?
---@field text string?
---@field blob string? base64; see `vim.base64.decode`

---@class mcp-tools.HostFilter a resource must match all fields
---@field scheme string?
---@field mime_type string?
---@field tags string[]? a resource must have all tags

---@class mcp-tools.HostResources the client's files
---@field available boolean files can be read
---@field list_available boolean files can be listed
---@field private ctx mcp-tools.Ctx
---@field private ask function
local HostResources = {}
HostResources.__index = HostResources

--- Creates the object for one call.
---@param ctx mcp-tools.Ctx
---@param ask fun(ctx: mcp-tools.Ctx, method: string, params: table?, cb: function?): any, any
---@return mcp-tools.HostResources
function M.new(ctx, ask)
  local call = ctx.call
  return setmetatable({
    available = is_readable(declared(call)),
    list_available = is_listable(declared(call)),
    ctx = ctx,
    ask = ask,
  }, HostResources)
end

--- Returns whether the client declared this URI scheme.
---@param scheme string such as `"files"`
---@return boolean
function HostResources:supports_scheme(scheme)
  validate('scheme', scheme, 'string')
  return has(schemes_of(self.ctx.call), scheme)
end

--- Reads one of the client's files. The value is the result of MCP's `resources/read`. In `run` tools `cb` is
--- optional; without it, returns `value, err`.
---
--- Errors: `capability_missing` if the client does not support it, `validation_error` for an unknown scheme,
--- `not_found`, `too_large` (its `maxSize` or our `limits.resource`), `rate_limited` (`err.retry_after_ms`), `timeout`
--- (after 60 s).
---@param uri string
---@param cb? fun(value: { contents: mcp-tools.HostContents[] }?, err: mcp-tools.Error?)
---@return { contents: mcp-tools.HostContents[] }? value, mcp-tools.Error? err
function HostResources:read(uri, cb)
  validate('uri', uri, 'string')
  validate('cb', cb, 'callable', true)
  return self.ask(self.ctx, M.READ, { uri = uri }, cb)
end

local WIRE_NAMES = { scheme = 'scheme', mime_type = 'mimeType', tags = 'tags' }

--- Lists the client's files. The value is the result of MCP's `resources/list`; each item has `uri` and `name`. In
--- `run` tools `cb` is optional; without it, returns `value, err`.
---@param filter? mcp-tools.HostFilter nil = no filter
---@param cb? fun(value: { resources: table[] }?, err: mcp-tools.Error?)
---@return { resources: table[] }? value, mcp-tools.Error? err
function HostResources:list(filter, cb)
  validate('filter', filter, 'table', true)
  validate('cb', cb, 'callable', true)
  local sent = {}
  for name, value in pairs(filter or {}) do
    if not WIRE_NAMES[name] then
      error(("filter: unknown field '%s' (expected scheme, mime_type or tags)"):format(tostring(name)), 2)
    end
    validate('filter.' .. name, value, name == 'tags' and 'table' or 'string')
    if name == 'tags' and not is_strings_or_null(value) then
      error('filter.tags: must be a list of strings', 2)
    elseif name ~= 'tags' or #value > 0 then
      sent[WIRE_NAMES[name]] = value
    end
  end
  return self.ask(self.ctx, M.LIST, next(sent) and { _meta = { filter = sent } } or nil, cb)
end

return M

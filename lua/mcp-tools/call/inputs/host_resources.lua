--- The files of the client, for tools: the MCP extension `ai.nimblebrain/host-resources`.
---
--- Receives: what the client declared when its session began, and its answers.
--- Sends: requests for call/inputs/init.lua; to a tool an object with `read` and `list`.
--- Does not know about: transports, how a client is asked, what a tool does with a file.
---
--- The extension goes one way: servers ask, clients answer. It is described at
--- https://docs.nimblebrain.ai/apps/host-capabilities and by the Python package nimblebrain-bundle-sdk. Methods are
--- `ai.nimblebrain/resources/read` (`{ uri }`) and `…/list` (`{ _meta = { filter = { scheme, mimeType, tags } } }`);
--- results are those of MCP's own `resources/read` and `resources/list`. Errors: -32002 not found, -32004 too many
--- reads (with `retryAfterMs`), -32005 too large, -32602 a scheme or filter that it does not have.

local validate = require('mcp-tools.util.validate')
local config = require('mcp-tools.config')
local host_capabilities = require('mcp-tools.call.inputs.host_capabilities')
local errors = require('mcp-tools.errors')

local M = {}

M.READ = 'ai.nimblebrain/resources/read'
M.LIST = 'ai.nimblebrain/resources/list'

--- The client does not offer that.
---@param call mcp-tools.Call
---@param part 'read'|'list'
---@return mcp-tools.Error
local function lacking(call, part)
  if not call.session then
    return errors.new('capability_missing', 'host resources need a session, and the client has none')
  end
  local text = ('the client does not let tools %s its resources (extension %s)'):format(
    part,
    host_capabilities.EXTENSION
  )
  local err = errors.new('capability_missing', text)
  err.required = { extensions = { [host_capabilities.EXTENSION] = { [part] = { enabled = true } } } }
  return err
end

---@param params { uri: string }
---@param call mcp-tools.Call
---@return mcp-tools.Error?
local function refuse_read(params, call)
  local may = host_capabilities.readable(call)
  local scheme = params.uri:match('^(%a[%w+.-]*):')
  if not may then
    return lacking(call, 'read')
  elseif not scheme then
    return errors.new('validation_error', 'uri: must begin with a scheme, such as files://')
  elseif may.schemes and not host_capabilities.has(may.schemes, scheme) then
    local text = "uri: the client has no resources with the scheme '%s' (it has %s)"
    local known = #may.schemes > 0 and table.concat(may.schemes, ', ') or 'none'
    return errors.new('validation_error', text:format(scheme, known))
  end
end

---@param _ table
---@param call mcp-tools.Call
---@return mcp-tools.Error?
local function refuse_list(_, call)
  return not host_capabilities.listable(call) and lacking(call, 'list') or nil
end

--- The bytes of one item, or what is wrong with it.
---@param item any
---@return integer? size
---@return string? fault
local function size_of(item)
  if not host_capabilities.object(item) then
    return nil, 'must be an object'
  elseif type(item.uri) ~= 'string' then
    return nil, 'uri: must be a string'
  elseif host_capabilities.given(item.mimeType) and type(item.mimeType) ~= 'string' then
    return nil, 'mimeType: must be a string'
  end
  local text, blob = host_capabilities.given(item.text), host_capabilities.given(item.blob)
  if (text == nil) == (blob == nil) then
    return nil, 'must have either text or blob'
  elseif type(text or blob) ~= 'string' then
    return nil, (text and 'text' or 'blob') .. ': must be a string'
  elseif text then
    return #text
  end
  local ok, bytes = pcall(vim.base64.decode, blob)
  if not ok then
    return nil, 'blob: must be base64'
  end
  return #bytes
end

---@param result table
---@param call mcp-tools.Call
---@return string? fault
---@return mcp-tools.ErrorCode? code
local function read_fault(result, call)
  if type(result.contents) ~= 'table' or not vim.islist(result.contents) then
    return 'contents: must be a list'
  end
  local total = 0
  for i, item in ipairs(result.contents) do
    local size, fault = size_of(item)
    if not size then
      return ('contents[%d]: %s'):format(i - 1, fault)
    end
    total = total + size
  end
  local own = (host_capabilities.readable(call) or {}).max_size or math.huge
  local limit = math.min(own, config.get().limits.resource)
  if total > limit then
    local whose = limit == own and 'its own maxSize' or 'option limits.resource'
    return ('it has %d bytes, the limit is %d (%s)'):format(total, limit, whose), 'too_large'
  end
end

---@param result table
---@return string? fault
local function list_fault(result)
  if type(result.resources) ~= 'table' or not vim.islist(result.resources) then
    return 'resources: must be a list'
  end
  for i, item in ipairs(result.resources) do
    local where = ('resources[%d]'):format(i - 1)
    if not host_capabilities.object(item) then
      return where .. ': must be an object'
    end
    for _, name in ipairs({ 'uri', 'name' }) do
      if type(item[name]) ~= 'string' then
        return ('%s.%s: must be a string'):format(where, name)
      end
    end
  end
end

--- For call/inputs/init.lua: why a request must not go out, and what is wrong with an answer.
---@type table<string, mcp-tools.InputMethod>
M.METHODS = {
  [M.READ] = { refuse = refuse_read, fault = read_fault },
  [M.LIST] = { refuse = refuse_list, fault = list_fault },
}

-- What a tool is handed -----------------------------------------------------------------------------------------------

---@class mcp-tools.HostContents one part of what was read; either `text` or `blob`
---@field uri string
---@field mimeType string?
---@field text string?
---@field blob string? base64; `vim.base64.decode` gives the bytes

---@class mcp-tools.HostFilter all that is given must hold
---@field scheme string?
---@field mime_type string?
---@field tags string[]? a resource must have them all

---@class mcp-tools.HostResources the client's files, as it offers them
---@field available boolean they can be read
---@field list_available boolean they can be listed
local HostResources = {}
HostResources.__index = HostResources

--- Makes it for one call.
---@param ctx mcp-tools.Ctx
---@param ask fun(ctx: mcp-tools.Ctx, requests: table<string, mcp-tools.Input>, cb: function?, pick: string): any, any
---@return mcp-tools.HostResources
function M.new(ctx, ask)
  local call = ctx.call
  return setmetatable({
    available = host_capabilities.readable(call) ~= nil,
    list_available = host_capabilities.listable(call),
    ctx = ctx,
    ask = ask,
  }, HostResources)
end

--- Does the client say that it has resources with this scheme?
---@param scheme string such as `"files"`
---@return boolean
function HostResources:supports_scheme(scheme)
  validate('scheme', scheme, 'string')
  return host_capabilities.has((host_capabilities.schemes(self.ctx.call)), scheme)
end

--- Reads one of the client's files. The value is what MCP's `resources/read` gives. In `run` tools `cb` may be left
--- out; then it returns `value, err`.
---
--- Errors: `capability_missing` when the client does not offer that, `validation_error` for a scheme that it does not
--- have, `not_found`, `too_large` (its `maxSize`, our `limits.resource`), `rate_limited` (`err.retry_after_ms`),
--- `timeout` (after 60 s).
---@param uri string
---@param cb? fun(value: { contents: mcp-tools.HostContents[] }?, err: mcp-tools.Error?)
---@return { contents: mcp-tools.HostContents[] }? value, mcp-tools.Error? err
function HostResources:read(uri, cb)
  validate('uri', uri, 'string')
  validate('cb', cb, 'callable', true)
  return self.ask(self.ctx, { answer = { method = M.READ, params = { uri = uri } } }, cb, 'answer')
end

local WIRE_NAMES = { scheme = 'scheme', mime_type = 'mimeType', tags = 'tags' }

--- Lists the client's files. The value is what MCP's `resources/list` gives: each has `uri` and `name`. In `run` tools
--- `cb` may be left out; then it returns `value, err`.
---@param filter? mcp-tools.HostFilter nil = all of them
---@param cb? fun(value: { resources: table[] }?, err: mcp-tools.Error?)
---@return { resources: table[] }? value, mcp-tools.Error? err
function HostResources:list(filter, cb)
  validate('filter', filter, 'table', true)
  validate('cb', cb, 'callable', true)
  local sent = {}
  for name, value in pairs(filter or {}) do
    if not WIRE_NAMES[name] then
      error(("filter: has no '%s' (it has scheme, mime_type and tags)"):format(tostring(name)), 2)
    end
    validate('filter.' .. name, value, name == 'tags' and 'table' or 'string')
    if name == 'tags' and not host_capabilities.is_string_list(value) then
      error('filter.tags: must be a list of strings', 2)
    elseif name ~= 'tags' or #value > 0 then
      sent[WIRE_NAMES[name]] = value
    end
  end
  local params = next(sent) and { _meta = { filter = sent } } or nil
  return self.ask(self.ctx, { answer = { method = M.LIST, params = params } }, cb, 'answer')
end

return M

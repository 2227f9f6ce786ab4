--- Checks and normalizes resource definitions, and converts them for clients.

local common = require('mcp-tools.registry.definition.common')
local uri_template = require('mcp-tools.util.uri_template')
local value = require('mcp-tools.schema.value')

local M = {}

---@class mcp-tools.ResourceDefinition a normalized resource
---@field key string the URI or URI template
---@field name string
---@field uri string?
---@field template mcp-tools.UriTemplate?
---@field scheme string
---@field title string?
---@field description string?
---@field mime_type string?
---@field tags string[]?
---@field annotations table?
---@field complete table<string, function> variable → `fun(ctx, prefix, arguments)`
---@field paths table<string, true> variables that name files of the project
---@field watch? fun(changed: fun(), params: table, uri: string): fun()?
---@field timeout number? ms
---@field callers table<string, table>?
---@field style 'execute'|'run'
---@field handler function
---@field source mcp-tools.Source? set by the registry
---@field lint string[]

local RULES = common.rules({
  uri = common.filled_text,
  uri_template = common.filled_text,
  name = common.filled_text,
  title = common.text,
  description = common.filled_text,
  mime_type = function(v)
    if type(v) ~= 'string' or not v:find('^[%w!#$&^_.+-]+/[%w!#$&^_.+-]+%s*;?[%w%s=";_.+-]*$') then
      return 'must be a media type such as "text/plain"'
    end
  end,
  tags = common.texts,
  paths = common.texts,
  timeout = common.milliseconds,
}, { table = 'annotations complete callers', ['function'] = 'watch read run' })

local ANNOTATION_RULES = {
  audience = function(v)
    local fits = value.is_array(v) and #v > 0
    for _, who in ipairs(fits and v or {}) do
      fits = fits and (who == 'user' or who == 'assistant')
    end
    return not fits and 'must be a list of "user" and "assistant"' or nil
  end,
  priority = function(v)
    return (type(v) ~= 'number' or v < 0 or v > 1) and 'must be a number from 0 to 1' or nil
  end,
  last_modified = common.filled_text,
}

--- Returns the scheme of a URI, which must be in lower case: URIs are matched case-sensitively.
---@param uri string
---@return string?
local function scheme_of(uri)
  return uri:match('^(%l[%l%d+.-]*):.')
end

---@param def table
---@param out mcp-tools.Findings
---@return mcp-tools.UriTemplate?
local function check_uri(def, out)
  if def.uri ~= nil and def.uri_template ~= nil then
    common.note(out.faults, 'uri_template', 'cannot be used together with uri')
  elseif def.uri == nil and def.uri_template == nil then
    common.note(out.faults, 'uri', 'is required (or uri_template)')
  end
  local text = def.uri_template or def.uri
  if type(text) ~= 'string' or not text:find('%S') then
    return nil
  end
  local field = def.uri_template and 'uri_template' or 'uri'
  if not scheme_of(text) then
    common.note(out.faults, field, 'must begin with a scheme in lower case, such as "nvim://"')
  end
  if def.uri_template then
    local template, fault = uri_template.compile(text)
    if not template then
      common.note(out.faults, field, fault)
    end
    return template
  elseif text:find('[%s%c{}<>"\\^`|\128-\255]') then
    common.note(out.faults, field, 'has characters that must be percent-encoded')
  end
end

--- Checks that `complete` and `paths` name variables of the template.
---@param def table
---@param template mcp-tools.UriTemplate?
---@param out mcp-tools.Findings
local function check_variables(def, template, out)
  local names = template and template.names or {}
  local names_known = template ~= nil or def.uri_template == nil
  for _, name in ipairs(type(def.complete) == 'table' and value.names(def.complete) or {}) do
    local field = 'complete.' .. tostring(name)
    if type(def.complete[name]) ~= 'function' then
      common.note(out.faults, field, 'must be a function')
    elseif names_known and not vim.list_contains(names, name) then
      common.note(out.faults, field, 'is not a variable of the uri_template')
    end
  end
  for _, name in ipairs(value.is_array(def.paths) and def.paths or {}) do
    if names_known and not vim.list_contains(names, name) then
      common.note(out.faults, 'paths', ("'%s' is not a variable of the uri_template"):format(tostring(name)))
    end
  end
end

--- Checks and normalizes a definition.
---@param def mcp-tools.Resource
---@return mcp-tools.ResourceDefinition?
---@return string? err all faults, one per line: `resource 'nvim://x': mime_type: …`
function M.normalize(def)
  local given, out, err = common.begin('resource', def, RULES, { 'name' }, 'read')
  if not given then
    return nil, err
  end
  local template = check_uri(given, out)
  check_variables(given, template, out)
  if type(given.annotations) == 'table' then
    common.check_fields(given.annotations, ANNOTATION_RULES, {}, out, 'annotations')
  end
  if given.description == nil then
    common.note(out.lint, 'description', 'is missing; a model chooses by it')
  end
  local key = given.uri_template or given.uri
  local paths = {}
  for _, name in ipairs(value.is_array(given.paths) and given.paths or {}) do
    paths[name] = true
  end
  return common.finish('resource', key or given.name, given, RULES, out, {
    key = key,
    template = template,
    scheme = type(key) == 'string' and scheme_of(key) or nil,
    complete = given.complete or {},
    paths = paths,
    handler = given.run or given.read,
  })
end

--- Converts a definition to an MCP `Resource` or `ResourceTemplate`.
---@param def mcp-tools.ResourceDefinition
---@return table resource
function M.published(def)
  local icons, meta = common.extras(def)
  local annotations = def.annotations or {}
  local shown = {
    audience = annotations.audience,
    priority = annotations.priority,
    lastModified = annotations.last_modified,
  }
  if def.tags and #def.tags > 0 then
    meta = vim.tbl_extend('keep', meta or {}, { tags = def.tags })
  end
  return {
    uri = def.uri,
    uriTemplate = def.template and def.template.text,
    name = def.name,
    title = def.title,
    description = def.description,
    mimeType = def.mime_type,
    annotations = next(shown) and shown or nil,
    icons = icons,
    _meta = meta,
  }
end

return M

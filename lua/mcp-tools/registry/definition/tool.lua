--- Checks and normalizes tool definitions, and converts them for clients.
---
--- The original definition is never changed. The caller logs `lint`.

local common = require('mcp-tools.registry.definition.common')
local schemas = require('mcp-tools.registry.definition.schemas')
local keywords = require('mcp-tools.schema.keywords')
local schema = require('mcp-tools.schema')
local schema_faults = require('mcp-tools.schema.faults')
local value = require('mcp-tools.schema.value')

local M = {}

---@class mcp-tools.Definition a normalized tool
---@field name string
---@field title string?
---@field description string
---@field args table<string, mcp-tools.Arg>? a copy of the short form, if the definition has it
---@field input_schema table ready to be encoded
---@field output_schema table? ready to be encoded
---@field schema_texts table<string, string>? JSON text to publish instead of the schemas, by MCP field name
---@field annotations mcp-tools.Annotations?
---@field timeout number? ms
---@field needs_approval? boolean|string|fun(args: table, call: mcp-tools.Call): boolean|string
---@field preview? fun(args: table, again: fun(err?: mcp-tools.Error)?): string?, mcp-tools.Error?
---@field state? fun(): table
---@field callers table<string, table>?
---@field recommended boolean?
---@field previewed string[]?
---@field always_ignores string[]|(fun(args: table): string[])|nil
---@field short_lived string[]?
---@field reviewed? boolean|fun(args: table, call: mcp-tools.Call): boolean
---@field style 'execute'|'run'
---@field handler function
---@field check mcp-tools.Validator? of the arguments; nil if a mounted server checks them
---@field check_output mcp-tools.Validator?
---@field lint string[] what should be changed
---@field adapts boolean? arguments in another form than the schema has are converted (calls/kinds/tool.lua)
---@field prepare? fun(args: table): table?, mcp-tools.Error? converts arguments before they are checked
---@field aliases table<string, table|fun(args: table): table>? older name → arguments that it adds, or a function that
---  maps its arguments
---@field render? fun(value: any, args: table): string what clients get in place of the result's JSON
---@field search_hint string? other words for what it does, for tool search
---@field always_load boolean? agents that load tools on demand get it at once
---@field max_result_chars integer? its result is not cut before this size
---@field agent string? name of the only agent that may call it
---@field source mcp-tools.Source? set by the registry
---@field fingerprint string? set on first use (util/canonical_json.lua)

-- Fields -----------------------------------------------------------------------------------------------------------

--- Our names of annotations → MCP's.
local HINTS = {
  read_only = 'readOnlyHint',
  destructive = 'destructiveHint',
  idempotent = 'idempotentHint',
  open_world = 'openWorldHint',
}
--- What clients assume without an annotation.
local DEFAULTS = { read_only = false, destructive = true, idempotent = false, open_world = true }

--- The rule of each field; returns why a value is invalid.
local RULES = common.rules({
  name = common.name,
  title = common.text,
  description = common.filled_text,
  timeout = common.milliseconds,
  search_hint = common.text,
}, {
  table = 'args input_schema output_schema annotations previewed short_lived callers aliases',
  ['function'] = 'preview state execute run prepare render',
  boolean = 'recommended explicit always_load',
  ['boolean function'] = 'reviewed',
  number = 'max_result_chars',
  ['table function'] = 'always_ignores',
  ['boolean function string'] = 'needs_approval',
})

local schema_or_text = common.of_type('table', 'string')
local MOUNTED_RULES = vim.tbl_extend('force', RULES, { input_schema = schema_or_text, output_schema = schema_or_text })

local function flag(v)
  return type(v) ~= 'boolean' and 'must be true or false' or nil
end
local ANNOTATION_RULES =
  { title = common.text, read_only = flag, destructive = flag, idempotent = flag, open_world = flag }

-- Schemas ----------------------------------------------------------------------------------------------------------

--- Joins two paths.
local function below(base, path)
  if path == '(root)' or path == '' then
    return base
  end
  return path:sub(1, 1) == '[' and base .. path or base .. '.' .. path
end

--- Converts a path in a schema to a path in the definition.
local function definition_path(field, path)
  if field == 'args' and path:find('^properties') then
    -- The short form has no top-level `properties`.
    return 'args' .. path:sub(#'properties' + 1)
  end
  return below(field, path)
end

---@param list mcp-tools.Fault[]
---@param field string
---@param found mcp-tools.Fault[]
local function add_all(list, field, found)
  for _, fault in ipairs(found) do
    list[#list + 1] = { field = definition_path(field, fault.field), message = fault.message }
  end
end

--- Checks and compiles one schema of a definition.
---@param intake mcp-tools.Findings
---@param field 'args'|'input_schema'|'output_schema'
---@param raw table
---@param is_bundled boolean? skips checks that a spec has made
---@return table? published
---@return mcp-tools.Validator?
local function take_schema(intake, field, raw, is_bundled)
  local found = schema_faults.find(raw)
  add_all(intake.faults, field, found)
  if raw.type ~= 'object' then
    add_all(intake.faults, field, { { field = 'type', message = 'must be "object" at the top' } })
  end
  if #found > 0 then
    return nil
  end
  local published = schemas.publish(raw)
  local validator = schema.compile_sound(published)
  if not is_bundled then
    add_all(intake.lint, field, validator:misfits())
  end
  add_all(intake.lint, field, validator.unchecked)
  return published, validator
end

--- Checks the schemas of a mounted tool, which are published as they are. A tool may lack its output schema.
---@param intake mcp-tools.Findings
---@param def table
---@param made table
local function take_foreign(intake, def, made)
  local texts = {}
  local input, fault, text = schemas.take_foreign(def.input_schema)
  made.input_schema, texts.inputSchema = input, text
  add_all(intake.faults, 'input_schema', { fault })
  if def.output_schema ~= nil then
    made.output_schema, fault, texts.outputSchema = schemas.take_foreign(def.output_schema)
    if fault then
      add_all(intake.lint, 'output_schema', { { field = fault.field, message = fault.message .. ' (left out)' } })
    end
  end
  made.schema_texts = texts
end

--- Checks and compiles the schema of the arguments, from either form.
---@param intake mcp-tools.Findings
---@param def table
---@param closed boolean?
---@return table? published
---@return mcp-tools.Validator?
local function take_arguments(intake, def, closed)
  if type(def.input_schema) == 'table' then
    return take_schema(intake, 'input_schema', def.input_schema, closed)
  end
  local args = type(def.args) == 'table' and def.args or {}
  local broken, before = schema_faults.data(args), #intake.faults
  if broken then
    common.note(intake.faults, below('args', broken.field), broken.message)
    return nil
  elseif args[1] ~= nil then
    common.note(intake.faults, 'args', 'must map names to tables, not be a list')
    return nil
  end
  for _, name in ipairs(value.names(args)) do
    local arg, field = args[name], keywords.join('args', name)
    if type(arg) ~= 'table' then
      common.note(intake.faults, field, 'must be a table such as { type = "string" }')
    elseif not vim.list_contains({ 'nil', 'boolean', 'table' }, type(arg.required)) then
      common.note(intake.faults, field .. '.required', 'must be a boolean')
    end
  end
  if #intake.faults == before then
    return take_schema(intake, 'args', schemas.of_args(args, closed), closed)
  end
end

--- Checks and normalizes a definition.
---@param def mcp-tools.Tool
---@param closed? boolean refuse arguments that `args` does not have
---@param mounted? boolean it belongs to a mounted server, which checks the arguments
---@return mcp-tools.Definition?
---@return string? err all faults, one per line: `tool 'x': args.n.type: …`
function M.normalize(def, closed, mounted)
  local rules = mounted and MOUNTED_RULES or RULES
  local given, intake, err = common.begin('tool', def, rules, { 'name', 'description' }, 'execute')
  if not given then
    return nil, err
  end
  common.check_name(given.name, '^[%w_]+$', 'A-Z, a-z, 0-9 and _; some clients rename such tools', intake)
  if given.args ~= nil and given.input_schema ~= nil then
    common.note(intake.faults, 'input_schema', 'cannot be used together with args')
  end
  if type(given.annotations) == 'table' then
    common.check_fields(given.annotations, ANNOTATION_RULES, {}, intake, 'annotations')
  end
  local made = { adapts = closed, handler = given.run or given.execute }
  if mounted then
    take_foreign(intake, given, made)
  else
    made.input_schema, made.check = take_arguments(intake, given, closed)
    if type(given.output_schema) == 'table' then
      made.output_schema, made.check_output = take_schema(intake, 'output_schema', given.output_schema)
    end
  end
  given.input_schema, given.output_schema = nil, nil -- `made` has them
  return common.finish('tool', given.name, given, rules, intake, made)
end

--- Returns the annotations with MCP's names, or nil.
---@param annotations table
---@param brief boolean without MCP's defaults, and without what is only for tools that change something
local function published_annotations(annotations, brief)
  local out = { title = annotations.title }
  for ours, theirs in pairs(HINTS) do
    out[theirs] = annotations[ours]
    if brief and annotations[ours] == DEFAULTS[ours] then
      out[theirs] = nil
    end
  end
  if brief and out.readOnlyHint then
    out.idempotentHint, out.destructiveHint = nil, nil
  end
  return next(out) and out or nil
end

--- Returns the name of a tool for clients. A mounted tool's name already has its mount's name as prefix.
---@param def mcp-tools.Definition
---@param prefix string of the options
---@return string
function M.published_name(def, prefix)
  return (def.source and def.source.origin == 'mounted' and '' or prefix) .. def.name
end

--- Limits that models need not know: a value beyond them is an error that names them.
local LIMITS = { 'minimum', 'maximum', 'minLength', 'maxLength', 'minItems', 'maxItems' }

--- Returns a copy of a bundled tool's schema without what models need not know: limits, defaults other than words,
--- properties that are only accepted (`hidden`), and that no others are allowed, because others are converted.
---@param whole table
---@return table
local function shown(whole)
  local copy = vim.tbl_extend('force', {}, whole)
  copy.additionalProperties = nil
  for _, name in ipairs(LIMITS) do
    copy[name] = nil
  end
  if type(copy.default) ~= 'string' then
    copy.default = nil
  end
  if type(whole.properties) == 'table' and next(whole.properties) then
    copy.properties = {}
    for name, property in pairs(whole.properties) do
      if not property.hidden then
        copy.properties[name] = shown(property)
      end
    end
    if next(copy.properties) == nil and type(copy.type) == 'table' then -- an object is only accepted instead
      copy.properties, copy.type = nil, copy.type[1]
    end
    copy.properties = next(copy.properties or {}) and copy.properties or copy.properties and vim.empty_dict()
  end
  if type(whole.items) == 'table' and next(whole.items) then
    copy.items = shown(whole.items)
  end
  return copy
end

--- Adds what Claude Code reads in `_meta` of a tool.
---@param def mcp-tools.Definition
---@param meta table?
---@return table?
local function for_claude(def, meta)
  meta = vim.tbl_extend('keep', meta or {}, {
    ['anthropic/alwaysLoad'] = def.always_load,
    ['anthropic/searchHint'] = def.search_hint,
    ['anthropic/maxResultSizeChars'] = def.max_result_chars,
  })
  return next(meta) and meta or nil
end

--- Converts a definition to an MCP `Tool`, without null and unnecessary empty values; empty tables are marked as
--- objects or arrays.
---@param def mcp-tools.Definition
---@param prefix string
---@param is_claude boolean? whether it is for Claude Code
---@return table tool must not be changed: it shares its schemas with the definition
function M.published(def, prefix, is_claude)
  local icons, meta = common.extras(def)
  return {
    name = M.published_name(def, prefix),
    title = def.title,
    description = def.description,
    inputSchema = def.adapts and shown(def.input_schema) or def.input_schema,
    outputSchema = def.output_schema,
    annotations = published_annotations(def.annotations or {}, def.adapts),
    icons = icons,
    _meta = is_claude and for_claude(def, meta) or meta,
  }
end

return M

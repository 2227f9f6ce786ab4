--- Avante as a host: its custom tools, made from the registry.
---
--- Follows the README and `AvanteLLMTool` of https://github.com/yetone/avante.nvim.

local assistant = require('mcp-tools.callers.assistant')
local json = require('mcp-tools.util.json')

local M = {}

local HOST = 'avante'
--- What it says to everybody when the person stops a request.
local STOPPED = 'AvanteLLMEscape'

-- Schema -----------------------------------------------------------------------------------------------------------

--- What its description of a parameter has a place for, or what says nothing to a model.
local TOLD = { type = true, title = true, description = true, enum = true, properties = true, required = true }
TOLD.items, TOLD.additionalProperties = true, true

--- What a schema says beyond that, for the description: a model reads it there.
---@param schema table
---@return string?
local function rest_of(schema)
  local rest = {}
  for key, value in pairs(schema) do
    if not TOLD[key] or key == 'type' and type(value) ~= 'string' then
      rest[key] = value
    end
  end
  return next(rest) and json.encode(rest) or nil
end

local fields_of

--- A parameter as Avante describes it.
---@param name string
---@param schema table|boolean
---@param optional boolean
---@return table field
local function field_of(name, schema, optional)
  schema = type(schema) == 'table' and schema or {}
  local kind, rest = schema.type, rest_of(schema)
  local field = {
    name = name,
    type = type(kind) == 'string' and kind or nil,
    description = schema.description or schema.title or name,
    choices = schema.enum,
    optional = optional,
  }
  if rest then
    field.description = ('%s (JSON Schema: %s)'):format(field.description, rest)
  end
  if kind == 'object' and schema.properties then
    field.fields = fields_of(schema)
  elseif kind == 'array' then
    field.items = field_of('item', schema.items, false)
  end
  return field
end

---@param schema table of an object
---@return table[]
function fields_of(schema)
  local required, fields = {}, {}
  for _, name in ipairs(schema.required or {}) do
    required[name] = true
  end
  for name, property in vim.spairs(schema.properties or {}) do
    table.insert(fields, field_of(name, property, not required[name]))
  end
  return fields
end

-- One call ---------------------------------------------------------------------------------------------------------

---@param progress mcp-tools.Progress
---@return string
local function line_of(progress)
  local of = progress.total and ('/%g'):format(progress.total) or ''
  return ('%g%s %s'):format(progress.done, of, progress.message or '')
end

--- Runs a tool. Avante waits for `on_complete`; a request that the person has stopped it ends by itself.
---@param name string
---@param input table
---@param opts mcp-tools.AssistantOpts
---@param on_log fun(line: string)
---@param on_complete fun(result: string?, err: string?)
local function start(name, input, opts, on_log, on_complete)
  local stopped, watch = false, nil
  local handle = assistant.start(HOST, name, input, opts, {
    progress = function(progress)
      on_log(line_of(progress))
    end,
    state = function(state)
      on_log(type(state) == 'string' and state or json.encode(state) or vim.inspect(state))
    end,
  }, function(outcome)
    if not stopped then
      vim.api.nvim_del_autocmd(watch)
      on_complete(outcome.ok and outcome.text or nil, not outcome.ok and outcome.text or nil)
    end
  end)
  watch = vim.api.nvim_create_autocmd('User', {
    group = vim.api.nvim_create_augroup('mcp-tools.callers.avante', { clear = false }), -- `:autocmd!` spares it
    pattern = STOPPED,
    once = true,
    desc = 'mcp-tools: cancel the call',
    callback = function()
      stopped = true
      handle:cancel()
    end,
  })
end

local RETURNS = {
  { name = 'result', description = 'What the tool gave', type = 'string' },
  { name = 'error', description = 'Why it did not', type = 'string', optional = true },
}

--- Its tools, for `custom_tools` in its `setup()`: give it this function, so that they follow the registry. Whether a
--- call may run is asked by this plugin.
---@param opts? mcp-tools.AssistantOpts
---@return table[] tools
function M.tools(opts)
  opts = opts or {}
  return vim.tbl_map(function(offered)
    local tool = {
      name = offered.name,
      description = offered.description,
      param = { type = 'table', fields = fields_of(offered.parameters) },
      returns = RETURNS,
      -- Its README hands in two functions, its types a table of them.
      func = function(input, context, on_complete)
        local on_log = context
        if type(context) == 'table' then
          on_log, on_complete = context.on_log, context.on_complete
        end
        if not on_complete then
          return nil, 'the tool answers later: it needs on_complete'
        end
        start(offered.name, input or vim.empty_dict(), opts, on_log or function() end, on_complete)
      end,
    }
    return vim.tbl_deep_extend('force', tool, offered.extras)
  end, assistant.offered(HOST, opts))
end

return M

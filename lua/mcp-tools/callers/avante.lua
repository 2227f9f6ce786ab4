--- Custom tools for Avante, made from the registry.
---
--- Follows the README and `AvanteLLMTool` of https://github.com/yetone/avante.nvim.

local assistant = require('mcp-tools.callers.assistant')
local json = require('mcp-tools.util.json')

local M = {}

local HOST = 'avante'
--- The event that Avante fires when the user stops a request.
local STOPPED = 'AvanteLLMEscape'

-- Schema -----------------------------------------------------------------------------------------------------------

--- Schema keywords that Avante can express, or that a model does not need.
local SHOWN = { type = true, title = true, description = true, enum = true, properties = true, required = true }
SHOWN.items, SHOWN.additionalProperties = true, true

--- Encodes the other keywords of a schema, for the description.
---@param schema table
---@return string?
local function other_keywords(schema)
  local rest = {}
  for key, value in pairs(schema) do
    if not SHOWN[key] or key == 'type' and type(value) ~= 'string' then
      rest[key] = value
    end
  end
  return next(rest) and json.encode(rest) or nil
end

local fields_of

--- Converts a parameter to Avante's format.
---@param name string
---@param schema table|boolean
---@param optional boolean
---@return table field
local function field_of(name, schema, optional)
  schema = type(schema) == 'table' and schema or {}
  local json_type, rest = schema.type, other_keywords(schema)
  local field = {
    name = name,
    type = type(json_type) == 'string' and json_type or nil,
    description = schema.description or schema.title or name,
    choices = schema.enum,
    optional = optional,
  }
  if rest then
    field.description = ('%s (JSON Schema: %s)'):format(field.description, rest)
  end
  if json_type == 'object' and schema.properties then
    field.fields = fields_of(schema)
  elseif json_type == 'array' then
    field.items = field_of('item', schema.items, false)
  end
  return field
end

---@param schema table of an object
---@return table[]
function fields_of(schema)
  local fields = {}
  for name, property in vim.spairs(schema.properties or {}) do
    table.insert(fields, field_of(name, property, not vim.list_contains(schema.required or {}, name)))
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

--- Calls a tool. Avante waits for `on_complete`, except for a request that the user has stopped.
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
      vim.api.nvim_del_autocmd(watch --[[@as integer]])
      on_complete(outcome.ok and outcome.text or nil, not outcome.ok and outcome.text or nil)
    end
  end)
  watch = vim.api.nvim_create_autocmd('User', {
    group = vim.api.nvim_create_augroup('mcp-tools.callers.avante', { clear = false }), -- not affected by `:autocmd!`
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
  { name = 'result', description = 'The result of the tool', type = 'string' },
  { name = 'error', description = 'The error message', type = 'string', optional = true },
}

--- Returns the tools for `custom_tools` in Avante's `setup()`. Pass this function itself, so that they follow the
--- registry. This plugin asks for approval of each call.
---@param opts? mcp-tools.AssistantOpts
---@return table[] tools
function M.tools(opts)
  opts = opts or {}
  return vim.tbl_map(function(exposed)
    local tool = {
      name = exposed.name,
      description = exposed.description,
      param = { type = 'table', fields = fields_of(exposed.parameters) },
      returns = RETURNS,
      -- Avante's README passes two functions, its type annotations a table of them.
      func = function(input, context, on_complete)
        local on_log = context
        if type(context) == 'table' then
          on_log, on_complete = context.on_log, context.on_complete
        end
        if not on_complete then
          return nil, 'the tool is asynchronous and needs on_complete'
        end
        start(exposed.name, input or vim.empty_dict(), opts, on_log or function() end, on_complete)
      end,
    }
    return vim.tbl_deep_extend('force', tool, exposed.extras)
  end, assistant.offered(HOST, opts))
end

return M

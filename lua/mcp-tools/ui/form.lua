--- Asks the user to fill in a form (elicitation), field by field, with `vim.ui.input` and `vim.ui.select`.

local json_schema = require('mcp-tools.schema')
local sanitize = require('mcp-tools.util.sanitize')
local trim = require('mcp-tools.util.trim')

local M = {}

---@class mcp-tools.FormField
---@field name string
---@field schema table
---@field required boolean
---@field prompt string
---@field choices { label: string, value: any }[]? nil: free text

---@param schema table of one value
---@return { label: string, value: any }[]?
local function choices_of(schema)
  if schema.type == 'boolean' then
    return { { label = 'yes', value = true }, { label = 'no', value = false } }
  end
  local titled = schema.oneOf or schema.anyOf
  if type(titled) == 'table' then
    return vim.tbl_map(function(item)
      return { label = tostring(item.title or item.const), value = item.const }
    end, titled)
  end
  if type(schema.enum) ~= 'table' then
    return nil
  end
  local choices = {}
  for i, value in ipairs(schema.enum) do
    choices[i] = { label = tostring((schema.enumNames or {})[i] or value), value = value }
  end
  return choices
end

---@param message string purpose of the form
---@param name string
---@param schema table
---@param required boolean
---@return mcp-tools.FormField
local function field_of(message, name, schema, required)
  local text = ('%s: %s'):format(message, schema.title or name)
  if schema.description then
    text = ('%s (%s)'):format(text, schema.description)
  end
  local choices = choices_of(schema)
  if schema.type == 'array' then
    local labels = vim.tbl_map(function(choice)
      return choice.label
    end, choices_of(schema.items or {}) or {})
    text = text .. ', ' .. (#labels > 0 and 'any of ' .. table.concat(labels, ', ') or 'separated by commas')
  end
  text = sanitize.line(text .. (required and '' or ', optional'))
  return { name = name, schema = schema, required = required, prompt = text, choices = choices }
end

--- Returns the fields, required ones first.
---@param message string
---@param schema table
---@return mcp-tools.FormField[]
local function fields_of(message, schema)
  local fields = {}
  for _, required in ipairs({ true, false }) do
    for name, property in vim.spairs(schema.properties or {}) do
      if vim.list_contains(schema.required or {}, name) == required then
        table.insert(fields, field_of(message, name, property, required))
      end
    end
  end
  return fields
end

---@param text string
---@param items table schema of an item
---@return any[]
local function list_of(text, items)
  local values = {}
  for part in vim.gsplit(text, ',', { plain = true }) do
    part = trim(part)
    local value = part
    for _, choice in ipairs(choices_of(items) or {}) do
      value = choice.label == part and choice.value or value
    end
    if part ~= '' then
      table.insert(values, value)
    end
  end
  return values
end

--- Converts typed text to the type of a field.
---@param field mcp-tools.FormField
---@param text string
---@return any value nil if the text is empty
local function value_of(field, text)
  local kind = field.schema.type
  if text == '' then
    return nil
  elseif kind == 'number' or kind == 'integer' then
    return tonumber(text) or text
  elseif kind == 'array' then
    return list_of(trim(text), field.schema.items or {})
  end
  return text
end

--- Validates the value of a field.
---@param field mcp-tools.FormField
---@param value any
---@return string? fault
local function fault_of(field, value)
  if value == nil then
    return field.required and 'is required' or nil
  end
  local validator, faults = json_schema.compile({ type = 'object', properties = { [field.name] = field.schema } })
  if validator then
    local ok, wrong = validator:check({ [field.name] = value })
    return not ok and wrong[1].message or nil
  end
  return faults[1].message
end

---@param field mcp-tools.FormField
---@param fault? string of the previous input
---@param done fun(value: any, is_cancelled: boolean?)
local function ask_text(field, fault, done)
  local prompt = field.prompt .. (fault and (' [%s]'):format(fault) or '') .. ': '
  local default = field.schema.default
  default = type(default) == 'table' and table.concat(default, ', ') or default
  vim.ui.input({ prompt = prompt, default = default ~= nil and tostring(default) or nil }, function(text)
    if text == nil then
      return done(nil, true)
    end
    local value = value_of(field, text)
    local wrong = fault_of(field, value)
    if wrong then
      return vim.schedule(function()
        ask_text(field, sanitize.line(wrong), done)
      end)
    end
    done(value)
  end)
end

--- A fixed namespace, so that pickers that never call back leave only one key listener behind.
local KEYS = vim.api.nvim_create_namespace('mcp-tools-form')

--- `vim.ui.select` returns nil both for `<Enter>` without a choice and for `<Esc>`; the last key shows which it was.
---@return fun(): boolean stop returns whether the last key was `<Enter>`
local function watch_enter()
  local last
  vim.on_key(function(key, typed)
    last = typed ~= nil and typed ~= '' and typed or key
  end, KEYS)
  return function()
    vim.on_key(nil, KEYS)
    return last == '\r' or last == '\n'
  end
end

---@param field mcp-tools.FormField
---@param done fun(value: any, is_cancelled: boolean?)
local function ask_choice(field, done)
  local choices = vim.list_slice(field.choices)
  if not field.required then
    table.insert(choices, { label = '(skip)' })
  end
  local was_enter = watch_enter()
  local ok, err = pcall(vim.ui.select, choices, {
    prompt = field.prompt .. ':',
    format_item = function(choice)
      local is_default = choice.value ~= nil and choice.value == field.schema.default
      return sanitize.line(choice.label .. (is_default and ' (default)' or ''))
    end,
  }, function(choice)
    local is_empty = was_enter() and not choice
    if choice then
      done(choice.value)
    elseif is_empty and field.required then
      vim.schedule(function()
        ask_choice(field, done)
      end)
    else
      done(nil, not is_empty)
    end
  end)
  if not ok then
    was_enter()
    error(err, 0)
  end
end

---@param message string
---@param answer fun(result: mcp-tools.ElicitResult)
local function ask_plainly(message, answer)
  local actions = { Accept = 'accept', Decline = 'decline' }
  vim.ui.select({ 'Accept', 'Decline' }, { prompt = sanitize.line(message) }, function(choice)
    local action = actions[choice] or 'cancel'
    answer({ action = action, content = action == 'accept' and vim.empty_dict() or nil })
  end)
end

--- Asks for all fields. `<Esc>` cancels the form; `<Enter>` without an answer skips an optional field.
---@param params { message: string, requestedSchema: table? }
---@param answer fun(result: mcp-tools.ElicitResult) called once
---@param wanted fun(): boolean false if the caller no longer waits
function M.ask(params, answer, wanted)
  local fields, content = fields_of(params.message, params.requestedSchema or {}), vim.empty_dict()
  if #fields == 0 then
    return ask_plainly(params.message, answer)
  end
  local function ask(i)
    local field = fields[i]
    if not wanted() then
      return
    elseif not field then
      return answer({ action = 'accept', content = content })
    end
    local function done(value, is_cancelled)
      if is_cancelled then
        return answer({ action = 'cancel' })
      end
      content[field.name] = value
      -- Later: windows of the previous prompt may still be open.
      vim.schedule(function()
        ask(i + 1)
      end)
    end
    if field.choices then
      ask_choice(field, done)
    else
      ask_text(field, nil, done)
    end
  end
  ask(1)
end

return M

--- Evaluates expressions in a stopped program.

local redact = require('mcp-tools.privacy.redact')
local request = require('mcp-tools.editor.dap.request')
local stop = require('mcp-tools.editor.dap.stop')
local time_slice = require('mcp-tools.util.time_slice')
local variables = require('mcp-tools.editor.dap.variables')

--- Maximum length of a value and of the value of one field, in characters, and number of fields.
local MAX_VALUE, MAX_FIELD, MAX_FIELDS = 2000, 100, 20
local NUMBER = '^[-+]?%d[%w_.+-]*$'

--- Returns the first secret name in an expression. Its result is secret, unless it is a number.
---@param expression string
---@return string?
local function secret_in(expression)
  for name in expression:gmatch('[%w_]+') do
    if redact.is_secret_name(name) then
      return name
    end
  end
end

---@class mcp-tools.dap.Value
---@field expression string
---@field value string? redacted
---@field error string? instead of a value
---@field type string?
---@field fields mcp-tools.dap.Shown[]? of a value that has contents
---@field more_fields integer?
---@field output string? what the evaluation has printed

---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param expression string
---@param frame_id integer?
---@return mcp-tools.dap.Value
local function evaluate(ctx, entry, expression, frame_id)
  local before, pause = entry.output.count, time_slice.of(ctx)
  local body, err = request.send(ctx, entry, 'evaluate', {
    expression = expression,
    frameId = frame_id,
    context = 'repl', -- in which statements run, too
  })
  variables.refresh(ctx)
  if not body then
    return { expression = expression, error = variables.text(assert(err).message, 1000, pause) }
  end
  local text = tostring(body.result or '')
  local name = not text:find(NUMBER) and secret_in(expression) or 'result'
  local value, withheld = variables.value(name, text, MAX_VALUE, pause)
  local answer = { expression = expression, value = value, type = body.type ~= '' and body.type or nil }
  if not withheld and (body.variablesReference or 0) > 0 then
    local fields = variables.of(ctx, entry, body.variablesReference)
    if fields then
      answer.fields, answer.more_fields = variables.list(ctx, fields, MAX_FIELDS, MAX_FIELD)
    end
  end
  if entry.output.count > before then
    local lines = vim.tbl_map(function(line)
      return line.text
    end, entry.output:after(math.max(before, entry.output.reported)))
    entry.output.reported = entry.output.count
    answer.output = variables.text(table.concat(lines, '\n'), MAX_VALUE, pause)
  end
  return answer
end

--- Evaluates expressions in order. One that fails has an error instead of a value.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param expressions string[]
---@param frame_id integer? default: the frame in which the program has stopped
---@return mcp-tools.dap.Value[]
return function(ctx, entry, expressions, frame_id)
  local values = {}
  for i, expression in ipairs(expressions) do
    local frame = not frame_id and entry.stop and stop.frame(ctx, entry)
    values[i] = evaluate(ctx, entry, expression, frame_id or frame and frame.id or nil)
  end
  return values
end

--- Evaluates expressions and changes variables in a stopped program.

local errors = require('mcp-tools.errors')
local redact = require('mcp-tools.privacy.redact')
local request = require('mcp-tools.editor.dap.request')
local stop = require('mcp-tools.editor.dap.stop')
local time_slice = require('mcp-tools.util.time_slice')
local variables = require('mcp-tools.editor.dap.variables')

local M = {}

local TIMEOUT_MS = 5000
local MAX_CHARS = 400
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

--- Returns the redacted result.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param expression string
---@param body table
---@param text string
---@param max integer
---@return table
local function redacted_result(ctx, entry, expression, body, text, max)
  local pause = time_slice.of(ctx)
  variables.refresh(ctx)
  local name = not text:find(NUMBER) and secret_in(expression) or 'result'
  local value, withheld = variables.value(name, text, max, pause)
  return {
    result = value,
    type = body.type ~= '' and body.type or nil,
    variables_reference = variables.note_reference(entry, body.variablesReference, withheld),
    total_chars = #text > max and #text or nil,
  }
end

--- Evaluates an expression.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param args { expression: string, frame_id: integer?, context: string, timeout_ms: integer, max_chars: integer }
---@return table? answer
---@return mcp-tools.Error? err
function M.run(ctx, entry, args)
  local frame_id, err
  if entry.stop then
    frame_id, err = stop.frame_id(ctx, entry, args.frame_id)
    if not frame_id then
      return nil, err
    end
  end
  local before = entry.output.count
  local arguments = { expression = args.expression, frameId = frame_id, context = args.context }
  local body, fault = request.send(ctx, entry, 'evaluate', arguments, args.timeout_ms)
  if not body then
    if fault.code == 'tool_error' then
      local text = variables.text(fault.message:gsub('^evaluate failed: ', ''), 1000, time_slice.of(ctx))
      fault = errors.new('tool_error', 'Evaluation failed: ' .. text)
    end
    return nil, fault
  end
  local answer = redacted_result(ctx, entry, args.expression, body, tostring(body.result or ''), args.max_chars)
  if entry.output.count > before and args.context == 'repl' then
    local lines = vim.tbl_map(function(line)
      return line.text
    end, entry.output:after('all', math.max(before, entry.output.reported)))
    entry.output.reported = entry.output.count
    answer.output = variables.text(table.concat(lines, '\n'), args.max_chars, time_slice.of(ctx))
  end
  return answer
end

--- Changes a variable in a scope or in another variable, or one that an expression names.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param args { name: string, value: string, variables_reference: integer?, frame_id: integer? }
---@return table? answer
---@return mcp-tools.Error? err
function M.set(ctx, entry, args)
  local capabilities = entry.session.capabilities or {}
  local frame_id, err = stop.frame_id(ctx, entry, args.frame_id)
  if not frame_id then
    return nil, err
  end
  local reference, known = args.variables_reference, true
  local refused = reference and variables.refusal(entry, reference)
  if refused then
    return nil, refused
  elseif not reference then
    local locals, fault, scope = variables.locals(ctx, entry, frame_id)
    if not locals then
      return nil, fault
    end
    reference, known = scope, false
    for _, variable in ipairs(locals) do
      known = known or variable.name == args.name
    end
  end
  local body, fault
  if known and capabilities.supportsSetVariable then
    local arguments = { variablesReference = reference, name = args.name, value = args.value }
    body, fault = request.send(ctx, entry, 'setVariable', arguments, TIMEOUT_MS)
  elseif capabilities.supportsSetExpression then
    local arguments = { expression = args.name, value = args.value, frameId = frame_id }
    body, fault = request.send(ctx, entry, 'setExpression', arguments, TIMEOUT_MS)
  else
    local text = known and 'this debug adapter cannot change variables'
      or ("name: there is no local variable '%s', and this adapter does not support expressions"):format(args.name)
    return nil, errors.new('tool_error', text)
  end
  if not body then
    return nil, fault
  end
  -- The new value is an expression as well: `x = api_key` must not show the key.
  local expression = args.name .. ' ' .. args.value
  local answer = redacted_result(ctx, entry, expression, body, tostring(body.value or ''), MAX_CHARS)
  answer.name, answer.value, answer.result = args.name, answer.result, nil
  return answer
end

return M

--- Variables of a stopped program: scopes, names, values, and what has changed since they were told last.
---
--- Receives: the entry of a session, references and ids of the adapter.
--- Sends: lists; what is named like a secret is withheld, with all that is in it.
--- Does not know about: stops, tools.

local errors = require('mcp-tools.errors')
local request = require('mcp-tools.editor.dap.request')
local strings = require('mcp-tools.util.strings')
local time_slice = require('mcp-tools.util.time_slice')
local values = require('mcp-tools.editor.dap.values')

local M = {}

--- In one answer about a stop.
local MAX_LOCALS, MAX_LOCAL, MAX_LOCAL_BYTES = 12, 60, 260
--- Locals that are looked at for changes, and bytes of each that are compared.
local MAX_COMPARED, MAX_COMPARED_BYTES = 300, 2000

---@param entry mcp-tools.dap.Entry
---@param ctx mcp-tools.Ctx
---@param frame_id integer
---@param ms? integer
---@return table[]? scopes
---@return mcp-tools.Error? err
function M.scopes(ctx, entry, frame_id, ms)
  local body, err = request.send(ctx, entry, 'scopes', { frameId = frame_id }, ms)
  local scopes = body and (body.scopes or {})
  for _, scope in ipairs(scopes or {}) do
    M.note_reference(entry, scope.variablesReference, false)
  end
  return scopes, err
end

--- Records whether a client may read the variables of a reference. Adapters number references one after the other, so
--- that a client can guess those that it never received: only recorded ones are read (`M.refusal`).
---@param entry mcp-tools.dap.Entry
---@param reference integer?
---@param withheld boolean it belongs to a secret
---@return integer? reference nil when it is withheld or there is nothing below it
function M.note_reference(entry, reference, withheld)
  if (reference or 0) <= 0 then
    return nil
  end
  entry.references[reference] = not withheld and entry.references[reference] ~= false
  return entry.references[reference] and reference or nil
end

--- Why the variables of a reference that a client gives are not read.
---@param entry mcp-tools.dap.Entry
---@param reference integer
---@return mcp-tools.Error?
function M.refusal(entry, reference)
  local readable = entry.references[reference]
  if readable then
    return nil
  elseif readable == false then
    return errors.new('access_denied', 'variables_reference: its variable is named like a secret; it is withheld')
  end
  local text = 'variables_reference: unknown at this stop; take one from dap_scopes or dap_variables'
  return errors.new('not_found', text)
end

--- The scopes that hold what is local to a function.
---@param scopes table[]
---@return table[]
local function local_scopes(scopes)
  local found = vim.tbl_filter(function(scope)
    local hint, name = scope.presentationHint, tostring(scope.name):lower()
    return not scope.expensive
      and (hint == 'locals' or hint == 'arguments' or name:find('^local') or name:find('^block'))
  end, scopes)
  return #found > 0 and found or { scopes[1] }
end

--- Adapters group what nobody asked for ("special variables") in entries without type and value.
---@param variable table
local function is_group(variable)
  return variable.value == '' and (variable.type or '') == ''
end

--- Variables of a reference, as the adapter has them; groups come last.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param arguments table
---@param ms? integer
---@return table[]?
---@return mcp-tools.Error?
function M.of(ctx, entry, arguments, ms)
  local body, err = request.send(ctx, entry, 'variables', arguments, ms)
  if not body then
    return nil, err
  end
  local list, groups, pause = {}, {}, time_slice.of(ctx)
  for _, variable in ipairs(body.variables or {}) do
    if (variable.variablesReference or 0) > 0 then -- before any filter: what is not shown has a reference, too
      M.note_reference(entry, variable.variablesReference, values.is_withheld(tostring(variable.name), variable.value))
      pause()
    end
    table.insert(is_group(variable) and groups or list, variable)
  end
  return vim.list_extend(list, groups)
end

--- What is local in a frame, groups included.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param frame_id integer
---@param ms? integer
---@return table[]? variables
---@return mcp-tools.Error? err
---@return integer? reference of the first scope
function M.locals(ctx, entry, frame_id, ms)
  local scopes, err = M.scopes(ctx, entry, frame_id, ms)
  if not scopes then
    return nil, err
  end
  local list, first = {}, nil
  for _, scope in ipairs(local_scopes(scopes)) do
    first = first or scope.variablesReference
    local variables, fault = M.of(ctx, entry, { variablesReference = scope.variablesReference }, ms)
    if not variables then
      return nil, fault
    end
    vim.list_extend(list, variables)
  end
  return list, nil, first
end

---@class mcp-tools.dap.Shown a variable as it is given
---@field name string
---@field value string?
---@field type string?
---@field variables_reference integer? there is more below it

--- A variable as it may be given.
---@param entry mcp-tools.dap.Entry
---@param variable table
---@param max integer characters of its value; 0 = none of it
---@param pause fun()
---@return mcp-tools.dap.Shown
function M.shown(entry, variable, max, pause)
  local name = values.text(tostring(variable.name), 200, pause)
  local value, withheld = values.value(tostring(variable.name), variable.value, math.max(max, 1), pause)
  return {
    name = name,
    value = max > 0 and value or nil,
    type = variable.type ~= '' and variable.type or nil,
    variables_reference = M.note_reference(entry, variable.variablesReference, withheld),
  }
end

---@class mcp-tools.dap.Changes
---@field locals string[]? all, in a place that was not told before
---@field changed string[]? since the last stop in the same function
---@field gone string[]?
---@field more integer? that are not listed

--- Locals of a frame, or those that have changed since the last time in the same function, as `name = value`.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param frame table
---@return mcp-tools.dap.Changes
function M.changes(ctx, entry, frame)
  local variables = M.locals(ctx, entry, frame.id)
  if not variables then
    return {}
  end
  local pause = time_slice.of(ctx)
  values.refresh(pause)
  local place = ('%s\n%s'):format((frame.source or {}).path or '', frame.name or '')
  local before = entry.seen and entry.seen.place == place and entry.seen.values or nil
  local now, lines, bytes, more = {}, {}, 0, 0
  variables = vim.tbl_filter(function(variable)
    return not is_group(variable)
  end, variables)
  for i, variable in ipairs(variables) do
    if i > MAX_COMPARED then
      more = more + #variables - MAX_COMPARED
      break
    end
    local raw = tostring(variable.value):sub(1, MAX_COMPARED_BYTES)
    now[variable.name] = raw
    if not before or before[variable.name] ~= raw then
      local shown = M.shown(entry, variable, MAX_LOCAL, pause)
      local line = ('%s = %s'):format(shown.name, strings.join_lines(shown.value, ' '))
      if #lines < MAX_LOCALS and (bytes + #line <= MAX_LOCAL_BYTES or #lines == 0) then
        bytes = bytes + #line
        table.insert(lines, line)
      else
        more = more + 1
      end
    end
  end
  local gone = before and vim.tbl_filter(function(name)
    return now[name] == nil
  end, vim.tbl_keys(before))
  entry.seen = { place = place, values = now }
  return {
    [before and 'changed' or 'locals'] = #lines > 0 and lines or nil,
    gone = gone and #gone > 0 and gone or nil,
    more = more > 0 and more or nil,
  }
end

return M

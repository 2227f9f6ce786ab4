--- Variables, values and output of a debugged program, without secrets and shortened. Variables with secret names are
--- withheld with all their contents.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local position = require('mcp-tools.editor.position')
local redact = require('mcp-tools.privacy.redact')
local request = require('mcp-tools.editor.dap.request')
local secrets = require('mcp-tools.util.secrets')
local strings = require('mcp-tools.util.strings')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

local SECRET = secrets.MARK

--- Number of characters after the cut that are searched as well, so that a token across it is recognized.
local BEYOND = 300
--- Values that show a secret is unset, so they need no redaction.
local NOTHING =
  { [''] = true, None = true, ['nil'] = true, null = true, undefined = true, ["''"] = true, ['""'] = true }

---@param text string
---@param max integer characters
---@return string
local function cut(text, max)
  return position.cut(utf8.repair(text), max)
end

--- Removes lists and maps with secret names: what is inside has no such name.
---@param text string
---@return string
local function without_nested(text)
  local out, done, at = {}, 1, 1
  while true do
    local from, _, name, open = text:find('%f[%w_]([%w_]+)["\']?%s*[:=]%s*()[%[{(]', at)
    if not from then
      break
    end
    at = open
    if redact.is_secret_name(name) then
      local char = text:sub(open, open)
      local _, last = text:find(({ ['['] = '^%b[]', ['{'] = '^%b{}', ['('] = '^%b()' })[char], open)
      last = last or #text -- its end is missing
      table.insert(out, text:sub(done, open - 1) .. SECRET)
      done, at = last + 1, last + 1
    end
  end
  return table.concat(out) .. text:sub(done)
end

--- Returns text without secrets.
---@param text string
---@param max integer characters
---@param pause? fun()
---@return string
function M.text(text, max, pause)
  text = without_nested(log.strip(text:sub(1, 4 * max + BEYOND), SECRET))
  local lines = secrets.without_keys(vim.split(text, '\n', { plain = true }))
  for i, line in ipairs(lines) do
    lines[i] = redact.line(line, pause)
  end
  return cut(table.concat(lines, '\n'), max)
end

--- Whether a value is withheld because of its name.
---@param name string
---@param value any
---@return boolean
local function is_withheld(name, value)
  return redact.is_secret_name(name) and not NOTHING[value]
end

--- Returns the redacted value of a variable. Call `refresh` before the first one of an answer.
---@param name string
---@param value any
---@param max integer characters
---@param pause? fun()
---@return string text
---@return boolean withheld
function M.value(name, value, max, pause)
  local text = type(value) == 'string' and value or vim.inspect(value)
  if redact.is_secret_name(name) then
    local withheld = is_withheld(name, text)
    return withheld and SECRET or text, withheld
  end
  return M.text(text, max, pause), false
end

--- Reads the lines of sensitive buffers again.
---@param ctx mcp-tools.Ctx inside a coroutine
function M.refresh(ctx)
  redact.refresh(time_slice.of(ctx))
end

--- Maximum size of the variables in one answer, bytes.
local MAX_BYTES = 16 * 1024
--- Default number of variables in one answer.
M.MAX_COUNT = 200
--- Maximum number of locals in an answer about a stop, characters of one, and bytes of all.
local MAX_LOCALS, MAX_LOCAL, MAX_LOCAL_BYTES = 12, 60, 260
--- Maximum number of locals that are compared, and bytes of each.
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

--- Records whether clients may read the variables of a reference. Adapters number references consecutively, so a client
--- could guess others: only recorded ones are read (`M.refusal`).
---@param entry mcp-tools.dap.Entry
---@param reference integer?
---@param withheld boolean it belongs to a secret
---@return integer? reference nil if it is withheld or has no contents
function M.note_reference(entry, reference, withheld)
  if (reference or 0) <= 0 then
    return nil
  end
  entry.references[reference] = not withheld and entry.references[reference] ~= false
  return entry.references[reference] and reference or nil
end

--- Returns why the variables of a reference are not read.
---@param entry mcp-tools.dap.Entry
---@param reference integer
---@return mcp-tools.Error?
function M.refusal(entry, reference)
  local readable = entry.references[reference]
  if readable then
    return nil
  elseif readable == false then
    return errors.new('access_denied', 'variables_reference: withheld, its variable has a secret name')
  end
  local text = 'variables_reference: unknown at this stop; take one from dap_scopes or dap_variables'
  return errors.new('not_found', text)
end

--- Returns the scopes with local variables.
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

--- Whether an entry is a group ("special variables"), which has no type and value.
---@param variable table
local function is_group(variable)
  return variable.value == '' and (variable.type or '') == ''
end

--- Returns the variables of a reference from the adapter, groups last.
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
    if (variable.variablesReference or 0) > 0 then -- before any filter: variables that are not shown have one, too
      M.note_reference(entry, variable.variablesReference, is_withheld(tostring(variable.name), variable.value))
      pause()
    end
    table.insert(is_group(variable) and groups or list, variable)
  end
  return vim.list_extend(list, groups)
end

--- Returns the local variables of a frame, groups included.
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

---@class mcp-tools.dap.Shown a variable in an answer
---@field name string
---@field value string?
---@field type string?
---@field variables_reference integer? for its contents

--- Returns a variable for an answer, redacted.
---@param entry mcp-tools.dap.Entry
---@param variable table
---@param max integer maximum number of characters of its value; 0: no value
---@return mcp-tools.dap.Shown
function M.shown(entry, variable, max)
  local name = M.text(tostring(variable.name), 200)
  local value, withheld = M.value(tostring(variable.name), variable.value, math.max(max, 1))
  return {
    name = name,
    value = max > 0 and value or nil,
    type = variable.type ~= '' and variable.type or nil,
    variables_reference = M.note_reference(entry, variable.variablesReference, withheld),
  }
end

---@class mcp-tools.dap.Changes
---@field locals string[]? all, if no answer had the same function before
---@field changed string[]? since the last stop in the same function
---@field gone string[]?
---@field more integer? number of those not listed

--- Returns the locals of a frame, or the changed ones since the last stop in the same function, as `name = value`.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param frame table
---@return mcp-tools.dap.Changes
function M.changes(ctx, entry, frame)
  local variables = M.locals(ctx, entry, frame.id)
  if not variables then
    return {}
  end
  M.refresh(ctx)
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
      local shown = M.shown(entry, variable, MAX_LOCAL)
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

---@param list mcp-tools.dap.Shown[]
---@return integer
local function size(list)
  local bytes = 0
  for _, shown in ipairs(list) do
    bytes = bytes + #shown.name + #(shown.value or '') + #(shown.type or '') + 60
  end
  return bytes
end

---@class mcp-tools.dap.VariablesArgs
---@field variables_reference integer?
---@field frame_id integer? needed without a reference
---@field filter string?
---@field start integer
---@field count integer
---@field names string[]?
---@field names_only boolean?
---@field max_chars integer
---@field timeout_ms integer?

--- Returns one page of the variables of a reference or of the locals.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param args mcp-tools.dap.VariablesArgs
---@return table? answer
---@return mcp-tools.Error? err
function M.page(ctx, entry, args)
  local reference = args.variables_reference
  local all, err
  if not reference then
    all, err = M.locals(ctx, entry, args.frame_id, args.timeout_ms)
  else
    err = M.refusal(entry, reference)
    if not err then
      local arguments = { variablesReference = reference, filter = args.filter }
      all, err = M.of(ctx, entry, arguments, args.timeout_ms)
    end
  end
  if not all then
    return nil, err
  end
  if args.names then
    local wanted = {}
    for _, name in ipairs(args.names) do
      wanted[name] = true
    end
    all = vim.tbl_filter(function(variable)
      return wanted[variable.name] == true
    end, all)
  end
  local pause, list = time_slice.of(ctx), {}
  M.refresh(ctx)
  for i = args.start + 1, math.min(args.start + args.count, #all) do
    table.insert(list, M.shown(entry, all[i], args.names_only and 0 or args.max_chars))
    pause()
  end
  local answer = { variables = list, total = #all }
  if args.start + #list < #all then
    answer.next_start = args.start + #list
  end
  if size(list) > MAX_BYTES then
    for _, shown in ipairs(list) do
      shown.value = nil
    end
    answer.values_left_out = 'too much for one answer: narrow it with names, count or max_chars'
    while size(list) > MAX_BYTES do
      for i = #list, math.floor(#list / 2) + 1, -1 do
        list[i] = nil
      end
      answer.next_start = args.start + #list
    end
  end
  return answer
end

return M

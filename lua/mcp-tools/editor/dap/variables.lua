--- Variables and values of a debugged program, with secrets removed and long values shortened.

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

--- Number of bytes searched for secrets after the maximum length, so that a token across the cut is recognized.
local BEYOND = 300
--- Values of unset secrets, which need no redaction.
local NOTHING =
  { [''] = true, None = true, ['nil'] = true, null = true, undefined = true, ["''"] = true, ['""'] = true }

--- Removes the contents of lists and maps with secret names: names inside do not show that a value is secret.
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
  return position.cut(utf8.repair(table.concat(lines, '\n')), max)
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
  if not redact.is_secret_name(name) then
    return M.text(text, max, pause), false
  elseif NOTHING[text] then
    return text, false
  end
  return SECRET, true
end

--- Reads the lines of sensitive buffers again.
---@param ctx mcp-tools.Ctx inside a coroutine
function M.refresh(ctx)
  redact.refresh(time_slice.of(ctx))
end

--- Maximum size of the variables in one answer, bytes.
local MAX_BYTES = 16 * 1024
--- Maximum number of locals in an answer about a stop, characters of one, and bytes of all.
local MAX_LOCALS, MAX_LOCAL, MAX_LOCAL_BYTES = 12, 60, 260
--- Maximum number of locals that are compared, and bytes of each.
local MAX_COMPARED, MAX_COMPARED_BYTES = 300, 2000

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

--- Returns the variables of a reference, without groups such as "special variables", which have no type and value.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param reference integer
---@param ms? integer
---@return table[]?
---@return mcp-tools.Error?
function M.of(ctx, entry, reference, ms)
  local body, err = request.send(ctx, entry, 'variables', { variablesReference = reference }, ms)
  return body and vim.tbl_filter(function(variable)
    return variable.value ~= '' or (variable.type or '') ~= ''
  end, body.variables or {}),
    err
end

--- Returns the local variables of a frame.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param frame_id integer
---@param ms? integer
---@return table[]? variables
---@return mcp-tools.Error? err
function M.locals(ctx, entry, frame_id, ms)
  local body, err = request.send(ctx, entry, 'scopes', { frameId = frame_id }, ms)
  if not body then
    return nil, err
  end
  local list = {}
  for _, scope in ipairs(local_scopes(body.scopes or {})) do
    local variables, fault = M.of(ctx, entry, scope.variablesReference, ms)
    if not variables then
      return nil, fault
    end
    vim.list_extend(list, variables)
  end
  return list
end

---@class mcp-tools.dap.Shown a variable in an answer
---@field name string
---@field value string
---@field type string?

--- Returns a variable for an answer, redacted.
---@param variable table
---@param max integer maximum number of characters of its value
---@return mcp-tools.dap.Shown
function M.shown(variable, max)
  return {
    name = M.text(tostring(variable.name), 200),
    value = M.value(tostring(variable.name), variable.value, max),
    type = variable.type ~= '' and variable.type or nil,
  }
end

--- Returns variables for an answer, redacted.
---@param ctx mcp-tools.Ctx
---@param variables table[]
---@param count integer maximum number
---@param chars integer maximum number of characters of a value
---@return mcp-tools.dap.Shown[]
---@return integer? more number of those left out
function M.list(ctx, variables, count, chars)
  local list, bytes, pause = {}, 0, time_slice.of(ctx)
  M.refresh(ctx)
  for i = 1, math.min(count, #variables) do
    local shown = M.shown(variables[i], chars)
    bytes = bytes + #shown.name + #shown.value
    if bytes > MAX_BYTES and i > 1 then
      break
    end
    list[i] = shown
    pause()
  end
  return list, #variables > #list and #variables - #list or nil
end

---@class mcp-tools.dap.Changes
---@field locals string[]? all, if the last stop was in another function
---@field changed string[]? otherwise those that have changed since the last stop
---@field gone string[]? names that no longer exist
---@field more integer? number of variables that are not listed

--- Returns the locals of a frame as `name = value`; if the last stop was in the same function, only the changed ones.
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
  for i, variable in ipairs(variables) do
    if i > MAX_COMPARED then
      more = more + #variables - MAX_COMPARED
      break
    end
    local raw = tostring(variable.value):sub(1, MAX_COMPARED_BYTES)
    now[variable.name] = raw
    if not before or before[variable.name] ~= raw then
      local shown = M.shown(variable, MAX_LOCAL)
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

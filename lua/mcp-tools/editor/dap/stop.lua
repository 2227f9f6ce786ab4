--- Describes a stop as data and as text of about half a kilobyte: reason, position, code, callers, changed variables,
--- output.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local errors = require('mcp-tools.errors')
local position = require('mcp-tools.editor.position')
local request = require('mcp-tools.editor.dap.request')
local read = require('mcp-tools.privacy.read')
local redact = require('mcp-tools.privacy.redact')
local sessions = require('mcp-tools.editor.dap.sessions')
local time_slice = require('mcp-tools.util.time_slice')
local variables = require('mcp-tools.editor.dap.variables')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Number of lines before and after the stopped one, and maximum length of a line in characters.
local AROUND, WIDTH = 2, 80
local CALLERS = 3
--- Maximum length of output in one answer, in characters: at a stop, and at the end.
local OUTPUT, LAST_OUTPUT = 240, 1500
local MAX_REASON = 300

--- Returns the stack of the stopped thread.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param thread_id integer
---@param levels integer 0 = all
---@param ms? integer
---@return table[]? frames
---@return integer|mcp-tools.Error total
function M.stack(ctx, entry, thread_id, levels, ms)
  local arguments = { threadId = thread_id, startFrame = 0, levels = levels }
  local body, err = request.send(ctx, entry, 'stackTrace', arguments, ms)
  if not body then
    return nil, err --[[@as mcp-tools.Error]]
  end
  local frames = body.stackFrames or {}
  return frames, body.totalFrames or #frames
end

--- Returns the frame in which a session has stopped.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@return table? frame
---@return mcp-tools.Error? err
function M.frame(ctx, entry)
  local stop = entry.stop
  if not stop then
    return nil, errors.new('stale', 'the program has been resumed')
  elseif not stop.frames then
    local frames, total = M.stack(ctx, entry, stop.thread_id, 20)
    if not frames then
      return nil, total --[[@as mcp-tools.Error]]
    end
    stop.frames, stop.total_frames = frames, total --[[@as integer]]
  end
  return stop.frames[1]
end

--- Returns a frame as one line: `function (path:line)`.
---@param frame table
---@param root string
---@return string
function M.named(frame, root)
  local source = frame.source or {}
  local path = source.path and access.shown(source.path, root) or source.name or '?'
  return ('%s (%s:%d)'):format(frame.name or '?', path, frame.line or 0)
end

--- Maximum size of a source file, and of the lines that are read, in bytes.
local MAX_FILE = 32 * 1024 * 1024
local MAX_BYTES = 64 * 1024

--- Returns lines with their numbers.
---@param lines string[] from `first` on
---@param first integer
---@param mark integer line that is marked
---@param width integer characters of a line
---@return string
local function numbered(lines, first, mark, width)
  local digits, out = #tostring(first + #lines - 1), {}
  for i, line in ipairs(lines) do
    local number = first + i - 1
    out[i] = ('%s%' .. digits .. 'd %s'):format(number == mark and '>' or ' ', number, position.cut(line, width))
  end
  return (utf8.repair(redact.quoted(table.concat(out, '\n'))))
end

--- Returns the lines around that of a frame, as in the editor.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param frame table
---@param around integer lines before and after it
---@param width? integer
---@return string? code
---@return string? withheld why there is no code
function M.code(ctx, frame, around, width)
  local path, line = (frame.source or {}).path, frame.line
  if not path then
    return nil
  end
  local place, why = access.path(path, ctx.root)
  if not place or line < 1 then -- 0: unknown
    return nil, why
  end
  local first = math.max(line - around, 1)
  local bufnr = buffers.of_path(place)
  local lines
  if bufnr then
    local ok, fault = access.buffer(bufnr, ctx.root)
    if not ok then
      return nil, fault
    end
    lines = vim.api.nvim_buf_get_lines(bufnr, first - 1, line + around, false)
  else
    local err
    lines, err = ctx:await(function(done)
      read.lines(place, MAX_FILE, { first = first, last = line + around, max_bytes = MAX_BYTES }, done)
    end)
    if not lines then
      return nil, err.message
    end
  end
  return numbered(lines, first, line, width or 120)
end

--- Returns the end of the output that has not been reported yet.
---@param entry mcp-tools.dap.Entry
---@param max integer
---@return string? text
---@return integer? left_out number of lines
local function new_output(entry, max)
  local lines = entry.output:after(entry.output.reported)
  entry.output.reported = entry.output.count
  local texts, size = {}, 0
  for i = #lines, 1, -1 do
    size = size + #lines[i].text + 1
    if size > max and #texts > 0 then
      break
    end
    table.insert(texts, 1, lines[i].text)
  end
  local left_out = #lines - #texts
  return #texts > 0 and variables.text(table.concat(texts, '\n'), max) or nil, left_out > 0 and left_out or nil
end

--- Returns breakpoints that no session of a family could bind.
---@param entry mcp-tools.dap.Entry
---@param root string
---@return string[]?
local function unbound(entry, root)
  local bad, good = {}, {}
  for _, each in ipairs(sessions.family(entry.root)) do
    for path, lines in pairs(each.bound) do
      for line, bound in pairs(lines) do
        local key = ('%s:%d'):format(access.shown(path, root), line)
        if bound.verified then
          good[key] = true
        else
          bad[key] = key .. (bound.message and ': ' .. bound.message or '')
        end
      end
    end
  end
  local list = {}
  for key, text in vim.spairs(bad) do
    if not good[key] then
      table.insert(list, text)
    end
  end
  return #list > 0 and list or nil
end

---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@return table?
local function exception(ctx, entry)
  local stop = entry.stop --[[@as mcp-tools.dap.Stop]]
  local info = (entry.session.capabilities or {}).supportsExceptionInfoRequest
      and request.send(ctx, entry, 'exceptionInfo', { threadId = stop.thread_id })
    or {}
  local text = info.description or stop.text or stop.description
  return {
    type = info.exceptionId or (info.details or {}).typeName,
    message = text and variables.text(text, MAX_REASON),
  }
end

--- Marks the stopped line for the user, if the file is open.
---@param entry mcp-tools.dap.Entry
---@param frame table
local function show(entry, frame)
  local path = (frame.source or {}).path
  local bufnr = path and path:sub(1, 1) == '/' and buffers.of_path(vim.uv.fs_realpath(path) or path)
  if bufnr and entry.resumed_by == 'tool' then
    nvim_dap.show_stop(entry.session, bufnr, frame.line)
  end
end

---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param answer table
local function add_place(ctx, entry, answer)
  local stop = entry.stop --[[@as mcp-tools.dap.Stop]]
  answer.thread_id = stop.thread_id
  if stop.reason == 'exception' then
    answer.exception = exception(ctx, entry)
  end
  local frame, err = M.frame(ctx, entry)
  if not frame or not entry.stop then
    answer.at = err and err.message or 'the adapter reports no position'
    return
  end
  show(entry, frame)
  answer.at = M.named(frame, ctx.root)
  answer.code, answer.code_withheld = M.code(ctx, frame, AROUND, WIDTH)
  local callers = {}
  for i = 2, math.min(#(stop.frames or {}), CALLERS + 1) do
    table.insert(callers, M.named(stop.frames[i], ctx.root))
  end
  answer.callers = #callers > 0 and callers or nil
  local left = (stop.total_frames or 0) - 1 - #callers
  answer.more_callers = left > 0 and left or nil
  for key, value in pairs(variables.changes(ctx, entry, frame)) do
    answer[key == 'more' and 'more_locals' or key] = value
  end
end

--- Describes the state of a session after a wait.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param waited integer? ms, after a timeout
---@return table
function M.describe(ctx, entry, waited)
  variables.refresh(ctx)
  local state, which = sessions.state(entry)
  local answer = { status = state } ---@type table
  if #sessions.all() > 1 then
    answer.session_id = which.id
  end
  if state == 'stopped' then
    answer.reason = which.stop.reason
    add_place(ctx, which, answer)
  else
    answer.exit_code = which.exit_code
    answer.waited_ms = state == 'running' and waited or nil
    answer.unbound = unbound(which, ctx.root)
  end
  answer.output, answer.output_left_out = new_output(which, state == 'ended' and LAST_OUTPUT or OUTPUT)
  return answer
end

--- Maximum length of a value and of the value of one field, in characters, and number of fields.
local MAX_VALUE, MAX_FIELD, MAX_FIELDS = 2000, 100, 20
local NUMBER = '^[-+]?%d[%w_.+-]*$'

--- Returns the first secret name in an expression. The result of the expression is secret, too, unless it is a number.
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
---@field output string? printed by the evaluation

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
    context = 'repl', -- allows statements
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

--- Evaluates expressions in order. If one fails, its value is replaced by an error.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry
---@param expressions string[]
---@param frame_id integer? default: the frame in which the program has stopped
---@return mcp-tools.dap.Value[]
function M.evaluate(ctx, entry, expressions, frame_id)
  local values = {}
  for i, expression in ipairs(expressions) do
    local frame = not frame_id and entry.stop and M.frame(ctx, entry)
    values[i] = evaluate(ctx, entry, expression, frame_id or frame and frame.id or nil)
  end
  return values
end

--- Adds variables or values as lines.
---@param list (mcp-tools.dap.Shown|string)[]
---@param rows string[] changed in place
---@param indent string
local function add_variables(list, rows, indent)
  for _, each in ipairs(list) do
    if type(each) == 'table' then
      each = ('%s = %s'):format(each.name, (each.value:gsub('\n', '\n' .. indent .. '  ')))
    end
    table.insert(rows, indent .. each)
  end
end

--- Returns the answer about a session as text. Requested values replace the code around the stop, the callers and the
--- local variables.
---@param answer table of `describe`, with more of `debug_inspect`
---@return string
function M.render(answer)
  local rows, asked = {}, answer.values ~= nil
  local function add(text, value)
    if value then
      table.insert(rows, (text:gsub('%%s', function()
        return tostring(value)
      end)))
    end
  end
  local function add_list(title, list, more)
    if list and #list > 0 then
      table.insert(rows, title)
      add_variables(list, rows, '  ')
      add('  … %s more', more)
    end
  end
  if answer.status == 'stopped' then
    table.insert(rows, ('stopped (%s) in %s'):format(answer.reason, answer.at))
    add('line reached: %s', answer.reached)
    if answer.exception then
      table.insert(rows, ('%s: %s'):format(answer.exception.type or 'exception', answer.exception.message or ''))
    end
    add(
      '%s',
      answer.code and asked and ('\n' .. answer.code):match('\n>%s*([^\n]*)') or answer.code or answer.code_withheld
    )
    add('called by %s', not asked and answer.callers and table.concat(answer.callers, ' < '))
    add('  and %s more', not asked and answer.more_callers)
  elseif answer.status == 'ended' then
    table.insert(rows, 'ended' .. (answer.exit_code and (', exit code %d'):format(answer.exit_code) or ''))
  else
    table.insert(rows, 'running' .. (answer.waited_ms and (', no stop within %d ms'):format(answer.waited_ms) or ''))
    table.insert(rows, "debug_step with how='wait' continues to wait, how='pause' pauses it")
  end
  add('%s', answer.note)
  add('breakpoints that are not bound: %s', answer.unbound and table.concat(answer.unbound, ', '))
  add_list('stack:', answer.stack, answer.more_frames)
  add_list('locals:', not asked and answer.locals or nil, answer.more_locals)
  add_list('changed since the last stop:', answer.changed, answer.more_locals)
  add('gone: %s', answer.gone and table.concat(answer.gone, ', '))
  for _, value in ipairs(answer.values or {}) do
    table.insert(rows, ('%s = %s'):format(value.expression, value.value or value.error))
    add_variables(value.fields or {}, rows, '  .')
    add('  … %s more', value.more_fields)
    add('printed: %s', value.output)
  end
  add_list('threads:', answer.threads)
  add('output: (%s lines before)', answer.output_left_out)
  add(answer.output_left_out and '%s' or 'output:\n%s', answer.output)
  add_list('sessions (session_id selects one):', answer.sessions)
  return table.concat(rows, '\n')
end

return M

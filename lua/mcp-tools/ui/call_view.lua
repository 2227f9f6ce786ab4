--- View of a call made by `:McpTools call`, in the window at the bottom: events while it runs, then its result as
--- clients get it. The tool runs in the window of the user; then the cursor enters the result, unless the user is busy.

local json = require('mcp-tools.util.json')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')

local api = vim.api

local M = {}

--- Beginnings of the names of our windows and their buffers.
local NAME = 'call '
local BUFFER = 'mcp-tools://' .. NAME

--- Maximum bytes of a result; a line of megabytes would block the main thread.
local MAX_SHOWN = 1024 * 1024
--- Maximum number of event lines; older ones are dropped.
local MAX_EVENTS = 500
--- Time between two redraws, ms.
local REDRAW = 50

---@param value any
---@return string
local function compact(value)
  local text = type(value) == 'string' and value or json.encode(value) or vim.inspect(value)
  return sanitize.line(text)
end

---@param text string
---@return string
local function bounded(text)
  if #text <= MAX_SHOWN then
    return text
  end
  return ('%s\n… and %d more bytes'):format(text:sub(1, MAX_SHOWN), #text - MAX_SHOWN)
end

--- Formats a value with a line for each item and sorted keys.
---@param value any
---@param margin string
---@return string
local function indented(value, margin)
  if type(value) ~= 'table' then
    return (json.encode(value)) or 'null'
  end
  local is_list, items, inner = vim.islist(value), {}, margin .. '  '
  for key, item in vim.spairs(value) do
    local label = is_list and '' or json.encode(key) .. ': '
    table.insert(items, inner .. label .. indented(item, inner))
  end
  local open, close = is_list and '[' or '{', is_list and ']' or '}'
  return #items == 0 and open .. close or ('%s\n%s\n%s%s'):format(open, table.concat(items, ',\n'), margin, close)
end

---@param text string JSON
---@return string
local function pretty(text)
  local ok, value = pcall(vim.json.decode, #text <= MAX_SHOWN and text or '')
  return ok and indented(value, '') or bounded(text)
end

--- Formats an MCP content block.
---@param block table
---@return string
local function block_text(block)
  if block.type == 'text' then
    return bounded(block.text)
  elseif block.data then
    return ('[%s %s, %d bytes]'):format(block.type, block.mimeType, #vim.base64.decode(block.data))
  elseif block.type == 'resource' then
    local resource = block.resource
    local what = resource.blob and ('%d bytes'):format(#vim.base64.decode(resource.blob)) or resource.text
    return ('[resource %s]\n%s'):format(resource.uri, bounded(what))
  end
  return ('[%s %s]'):format(block.type, block.uri or '')
end

---@param payload mcp-tools.Payload
---@return string text, string? filetype
local function result_text(payload)
  if payload.kind == 'empty' then
    return '(no result)'
  elseif payload.kind == 'text' then
    return bounded(payload.text)
  elseif payload.kind == 'json' then
    return pretty(payload.text), 'json'
  end
  local result = vim.json.decode(payload.text, { luanil = { object = true } })
  local parts = vim.tbl_map(block_text, result.content or {})
  if result.isError then
    table.insert(parts, 1, 'The tool reports an error:')
  end
  if result.structuredContent then
    table.insert(parts, pretty((assert(json.encode(result.structuredContent)))))
  end
  return #parts > 0 and table.concat(parts, '\n') or '(no result)'
end

--- Returns the part of a traceback that is in the tool's own code.
---@param trace string
---@return string
local function own_part(trace)
  -- In Python the frames of the worker come first, then those of the tool.
  local from = trace:match('^.*/python_tools/worker/[^\n]*\n()')
  local own = from and trace:match('\n(  File .*)', from - 1)
  trace = own and 'Traceback (most recent call last):\n' .. own or trace
  local lines = {}
  for line in vim.gsplit(trace, '\n', { plain = true }) do
    if line:find('/lua/mcp-tools/calls/', 1, true) then
      break
    end
    table.insert(lines, line)
  end
  while #lines > 1 and lines[#lines]:find('^%s*%[C%]:') do -- C frames between the call and the tool
    table.remove(lines)
  end
  return table.concat(lines, '\n')
end

---@param call mcp-tools.Call
---@return string
local function error_text(call)
  local err = call.outcome.error
  local faults = vim.tbl_map(function(fault)
    return ('%s: %s'):format(fault.field, fault.message)
  end, err.errors or {})
  local message, all = err.message, ': ' .. table.concat(faults, '; ')
  local first = #faults > 0 and message:find(all, 1, true)
  if first then -- each fault gets its own line, and unknown arguments are in the hints
    message = message:sub(1, first - 1)
  end
  local lines = { ('Error (%s): %s'):format(err.code, message) }
  for _, fault in ipairs(faults) do
    table.insert(lines, '  ' .. fault)
  end
  if call.trace then
    table.insert(lines, own_part(call.trace))
  end
  return table.concat(lines, '\n')
end

---@param call mcp-tools.Call
---@return string
local function end_text(call)
  local ms = ((call.ended_at or call.created_at) - (call.started_at or call.created_at)) / 1e6
  return ('%s in %s'):format(
    call.outcome.state:gsub('_', ' '),
    ms < 1000 and ('%.0f ms'):format(ms) or ('%.1f s'):format(ms / 1e3)
  )
end

---@param progress mcp-tools.Progress
---@return string
local function progress_text(progress)
  local of = progress.total and ('/%g'):format(progress.total) or ''
  return sanitize.line(('%g%s  %s'):format(progress.done, of, progress.message or ''))
end

--- Appends a line and drops the first one if there are too many.
---@param lines string[]
---@param line string
local function push(lines, line)
  table.insert(lines, line)
  if #lines > MAX_EVENTS then
    table.remove(lines, 1)
    lines[1] = '…'
  end
end

--- Returns where the user is; it changes when the user moves or types.
---@return any[]
local function position()
  local window = api.nvim_get_current_win()
  return { window, api.nvim_win_get_buf(window), api.nvim_win_get_cursor(window), vim.b.changedtick }
end

--- Returns whether the user is typing, or is in a float, which could close when another window is entered.
---@return boolean
local function is_busy()
  return api.nvim_get_mode().mode ~= 'n' or api.nvim_win_get_config(0).relative ~= ''
end

---@class mcp-tools.ShownCallView: mcp-tools.CallView
---@field refuse fun(lines: string[]) shows why the call is not made
---@field waits fun() shows that the call is running

--- Creates a view.
---@param name string tool
---@param hints string[] notes about the typed arguments
---@return mcp-tools.ShownCallView
function M.new(name, hints)
  local events, logged = { '…' }, {} ---@type string[], string[]
  local title = NAME .. sanitize.line(name) .. ': '
  local view = {}
  if vim.startswith(api.nvim_buf_get_name(0), BUFFER) then -- the tool works in the window of the user
    vim.cmd.wincmd('p')
  end
  local origin = position()

  ---@param content mcp-tools.ScratchContent
  ---@param state string
  ---@param opts? mcp-tools.ScratchOpts
  local function show(content, state, opts)
    opts = vim.tbl_extend('error', { title = title .. state }, opts or {})
    opts.stay = opts.stay or is_busy() or not vim.deep_equal(origin, position())
    return scratch.show(NAME .. name, content, opts)
  end

  --- Shows that the call is running, and its events. Only the result replaces another view.
  function view.waits()
    show(function()
      return events
    end, 'running; :McpTools cancel stops it', { stay = true, at_end = true, every = REDRAW })
  end

  ---@param line string
  local function add(line)
    push(events, line)
  end

  function view.progress(progress)
    add(progress_text(progress))
  end

  function view.state(state)
    add('state  ' .. compact(state))
  end

  function view.log(level, data)
    push(logged, ('log %s: %s'):format(level, compact(data)))
    add(logged[#logged])
  end

  function view.asks(message)
    add('asks: ' .. sanitize.line(message))
  end

  function view.done(call)
    local lines, filetype = vim.list_slice(hints), nil
    if call.outcome.error then
      table.insert(lines, 1, error_text(call))
    else
      local text, kind = result_text(call.outcome.payload)
      vim.list_extend(lines, #hints > 0 and { '', text } or { text })
      filetype = #hints + #logged == 0 and kind or nil
    end
    vim.list_extend(lines, #logged > 0 and { '', unpack(logged) } or {})
    show(lines, end_text(call), { filetype = filetype })
  end

  --- Shows why the tool was not called.
  ---@param lines string[]
  function view.refuse(lines)
    show(lines, 'not called')
  end

  return view
end

return M

--- Run to a line: the way of a stopped program there, by a breakpoint that goes with the next stop.
---
--- Receives: a stopped session, a file and a line, how long to wait.
--- Sends: the next stop, and whether it is at that line.
--- Does not know about: cursor and windows.

local breakpoints = require('mcp-tools.editor.dap.breakpoints')
local client = require('mcp-tools.editor.dap.client')
local control = require('mcp-tools.editor.dap.control')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local request = require('mcp-tools.editor.dap.request')
local session_changed = require('mcp-tools.editor.dap.session_changed')
local stop = require('mcp-tools.editor.dap.stop')
local tracker = require('mcp-tools.editor.dap.tracker')

local api = vim.api

--- Has a stopped program run to a line. Other breakpoints hold; the one for this is the adapter's alone, and goes with
--- the next stop.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry stopped
---@param args table a file, `line`, and those of the wait
---@return table? answer
---@return mcp-tools.Error? err
return function(ctx, entry, args)
  local bufnr, err = breakpoints.load(ctx, args)
  if not bufnr then
    return nil, err
  end
  local path = api.nvim_buf_get_name(bufnr)
  local points = { { line = args.line } }
  for _, point in ipairs(client.breakpoints(bufnr)[bufnr] or {}) do
    if point.line ~= args.line then
      table.insert(points, {
        line = point.line,
        condition = point.condition,
        hitCondition = point.hitCondition,
        logMessage = point.logMessage,
      })
    end
  end
  local unwatch
  local restored = false
  local function restore()
    if restored then
      return
    end
    restored = true
    if unwatch then
      unwatch()
    end
    vim.schedule(function() -- not in a coroutine: nvim-dap would yield in it
      if not entry.ended and not entry.session.closed and api.nvim_buf_is_valid(bufnr) then
        local own = { [bufnr] = client.breakpoints(bufnr)[bufnr] or {} }
        log.guard('breakpoints of a debug session', entry.session.set_breakpoints, entry.session, own, function() end)
      end
    end)
  end
  ctx:on_cancel(restore)
  local body, fault = request.send(ctx, entry, 'setBreakpoints', {
    source = { path = path, name = vim.fs.basename(path) },
    breakpoints = points,
    sourceModified = false,
  })
  if not body then
    restore() -- it may have them, and be late to say so
    return nil, fault
  end
  local target = (body.breakpoints or {})[1] or {}
  if target.verified == false then
    restore()
    local why = target.message and ': ' .. target.message or ''
    return nil, errors.new('tool_error', ('line: the program cannot stop in line %d%s'):format(args.line, why))
  end
  local ok, refused = control.resume(ctx, entry, 'continue')
  if not ok then
    restore()
    return nil, refused
  end
  unwatch = session_changed.on(function()
    if tracker.state(entry) ~= 'running' then
      restore()
    end
  end)
  local answer = control.answer(ctx, entry, args)
  if answer.status == 'stopped' then
    local _, which = tracker.state(entry)
    local frame = stop.frame(ctx, which)
    answer.reached = frame ~= nil
      and frame.line == (target.line or args.line)
      and vim.uv.fs_realpath((frame.source or {}).path or '') == vim.uv.fs_realpath(path)
  end
  return answer
end

--- Breakpoints, set and removed by file and line in buffers that need no window; and running to a line.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local control = require('mcp-tools.editor.dap.control')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local open = require('mcp-tools.editor.buffer.open')
local project = require('mcp-tools.instances.project')
local request = require('mcp-tools.editor.dap.request')
local stop = require('mcp-tools.editor.dap.stop')
local sessions = require('mcp-tools.editor.dap.sessions')
local variables = require('mcp-tools.editor.dap.variables')

local api = vim.api

local M = {}

local AROUND, WIDTH = 2, 100
local MAX_TEXT = 300

--- Arguments that name a file. `filename` (compatible with guill/mcp-tools.nvim) and `path` are the same.
M.FILE_ARGS = {
  filename = { type = 'string', description = 'File path' },
  path = { type = 'string', description = 'Alias of filename' },
  bufnr = { type = 'integer', description = 'Buffer number instead; 0 = current file', minimum = 0 },
}

--- Returns the file that arguments name.
---@param args { filename: string?, path: string?, bufnr: integer? }
---@return { bufnr: integer?, path: string? }?
---@return mcp-tools.Error?
function M.file(args)
  if args.filename and args.path then
    return nil, errors.new('validation_error', 'filename: give one of filename, path and bufnr')
  end
  local found, err = buffers.find({ path = args.filename or args.path, bufnr = args.bufnr })
  if found and found.bufnr and not (found.path or ''):find('^/') then
    return nil, errors.new('tool_error', ('bufnr: buffer %d has no file'):format(found.bufnr))
  end
  return found, err
end

--- Sends the breakpoints of buffers to every session, and waits until they are set.
---@param ctx mcp-tools.Ctx
---@param bufnrs integer[]
---@return mcp-tools.Error? err
local function sync(ctx, bufnrs)
  local by_buffer = {}
  for _, bufnr in ipairs(bufnrs) do
    by_buffer[bufnr] = nvim_dap.breakpoints(bufnr)[bufnr] or {}
  end
  for _, entry in ipairs(sessions.all()) do
    if not entry.ended and next(by_buffer) and entry.session.initialized ~= false then
      local _, err = request.await(ctx, entry, 'setBreakpoints', request.TIMEOUT_MS, function(done)
        entry.session:set_breakpoints(by_buffer, function()
          done(true)
        end)
      end)
      if err and not entry.ended then
        return err
      end
    end
  end
end

--- Returns how adapters have bound a breakpoint.
---@param path string of its buffer
---@param line integer
---@return mcp-tools.dap.Bound? bound nil if no session knows it
local function bound_of(path, line)
  local found
  for _, entry in ipairs(sessions.all()) do
    local bound = not entry.ended and (entry.bound[path] or {})[line]
    if bound and not (found and found.verified) then
      found = bound
    end
  end
  return found
end

---@class mcp-tools.dap.ListedBreakpoint
---@field file string
---@field line integer
---@field type 'breakpoint'|'conditional'|'logpoint'
---@field condition string?
---@field hit_condition string?
---@field log_message string?
---@field verified boolean? whether it is set in a program; nil without a session
---@field bound_line integer? the actual line, if it is another one
---@field message string? the adapter's reason

---@param bufnr integer
---@param point mcp-tools.dap.Breakpoint
---@param root string
---@return mcp-tools.dap.ListedBreakpoint
local function listed(bufnr, point, root)
  local path = api.nvim_buf_get_name(bufnr)
  local bound = bound_of(path, point.line)
  local function text(value)
    return value and value ~= '' and variables.text(value, MAX_TEXT) or nil
  end
  local log_message, condition = text(point.logMessage), text(point.condition)
  return {
    file = access.shown(path, root),
    line = point.line,
    type = log_message and 'logpoint' or condition and 'conditional' or 'breakpoint',
    condition = condition,
    hit_condition = text(point.hitCondition),
    log_message = log_message,
    verified = bound and bound.verified,
    bound_line = bound and bound.line ~= point.line and bound.line or nil,
    message = text(bound and bound.message),
  }
end

--- Returns all breakpoints, the user's own included.
---@param ctx mcp-tools.Ctx
---@return mcp-tools.dap.ListedBreakpoint[]
function M.list(ctx)
  local list = {}
  variables.refresh(ctx)
  for bufnr, points in vim.spairs(nvim_dap.breakpoints()) do
    for _, point in ipairs(points) do
      table.insert(list, listed(bufnr, point, ctx.root))
    end
  end
  return list
end

--- Sets a breakpoint.
---@param ctx mcp-tools.Ctx
---@param args table a file, `line`, `condition`, `hit_condition`, `log_message`
---@return table? answer
---@return mcp-tools.Error? err
function M.set(ctx, args)
  local dap, missing = sessions.attach()
  if not dap then
    return nil, missing
  end
  local bufnr, err = M.load(ctx, args)
  if not bufnr then
    return nil, err
  end
  local opts = { condition = args.condition, hit_condition = args.hit_condition, log_message = args.log_message }
  nvim_dap.store().set(opts, bufnr, args.line)
  local fault = sync(ctx, { bufnr })
  if fault then
    return nil, fault
  end
  variables.refresh(ctx)
  local answer
  for _, point in ipairs(nvim_dap.breakpoints(bufnr)[bufnr] or {}) do
    if point.line == args.line then
      answer = listed(bufnr, point, ctx.root)
    end
  end
  if not answer then
    return nil, errors.new('tool_error', ('line: nvim-dap did not set a breakpoint in line %d'):format(args.line))
  end
  if answer.verified == nil then
    answer.note = 'bound when a program is run'
  end
  answer.code = stop.code(ctx, { source = { path = api.nvim_buf_get_name(bufnr) }, line = args.line }, AROUND, WIDTH)
  return answer
end

---@param bufnr integer loaded
---@param line integer
---@return mcp-tools.Error?
local function beyond(bufnr, line)
  local count = api.nvim_buf_line_count(bufnr)
  if line > count then
    return errors.new('validation_error', ('line: line %d is beyond the end (%d lines)'):format(line, count))
  end
end

--- Returns the loaded buffer of a file, after checking that it has a line.
---@param ctx mcp-tools.Ctx
---@param args table a file and `line`
---@return integer? bufnr
---@return mcp-tools.Error? err
function M.load(ctx, args)
  local found, err = M.file(args)
  if not found then
    return nil, err
  end
  local bufnr = found.bufnr
  if not bufnr then
    bufnr, err = ctx:await(function(done)
      open.load(found.path, done, ctx)
    end)
    if not bufnr then
      return nil, err
    end
  end
  err = beyond(bufnr, args.line)
  if err then
    return nil, err
  end
  open.keep(bufnr) -- breakpoints are signs in the buffer
  return bufnr
end

--- Returns errors of a breakpoint that are known without loading its file.
---@param args table a file and `line`
---@return mcp-tools.Error? err
function M.refusal(args)
  local _, missing = nvim_dap.get()
  if missing then
    return missing
  end
  local found, err = M.file(args)
  if not found then
    return err
  elseif found.bufnr then
    return beyond(found.bufnr, args.line)
  elseif not vim.uv.fs_stat(found.path) then
    return errors.new('not_found', ('there is no file %s'):format(access.shown(found.path, project.root())))
  end
end

--- Returns the buffer that has a breakpoint in a line.
---@param args table a file and `line`
---@return integer? bufnr
---@return mcp-tools.Error? err
function M.find(args)
  local dap, missing = sessions.attach()
  if not dap then
    return nil, missing
  end
  local found, err = M.file(args)
  if not found then
    return nil, err
  end
  for _, point in ipairs(found.bufnr and nvim_dap.breakpoints(found.bufnr)[found.bufnr] or {}) do
    if point.line == args.line then
      return found.bufnr
    end
  end
  local text = 'line: there is no breakpoint in line %d of that file; dap_breakpoints lists all'
  return nil, errors.new('not_found', text:format(args.line))
end

--- Returns the number of breakpoints.
---@return integer
function M.count()
  local count = 0
  for _, points in pairs(nvim_dap.breakpoints()) do
    count = count + #points
  end
  return count
end

--- Removes a breakpoint.
---@param ctx mcp-tools.Ctx
---@param args table a file and `line`
---@return table? answer
---@return mcp-tools.Error? err
function M.remove(ctx, args)
  local bufnr, err = M.find(args)
  if not bufnr then
    return nil, err
  end
  nvim_dap.store().remove(bufnr, args.line)
  local fault = sync(ctx, { bufnr })
  if fault then
    return nil, fault
  end
  return { success = true, message = ('removed; %d breakpoints are left'):format(M.count()) }
end

--- Removes all breakpoints.
---@param ctx mcp-tools.Ctx
---@return table? answer
---@return mcp-tools.Error? err
function M.clear(ctx)
  local dap, missing = sessions.attach()
  if not dap then
    return nil, missing
  end
  local count, bufnrs = M.count(), vim.tbl_keys(nvim_dap.breakpoints())
  nvim_dap.store().clear()
  local fault = sync(ctx, bufnrs)
  if fault then
    return nil, fault
  end
  return { success = true, message = ('%d breakpoints removed'):format(count) }
end

--- Runs a stopped program to a line. Other breakpoints stay active; the one for this exists only in the adapter, until
--- the next stop.
---@param ctx mcp-tools.Ctx
---@param entry mcp-tools.dap.Entry stopped
---@param args table a file, `line`, and the arguments of the wait
---@return table? answer
---@return mcp-tools.Error? err
function M.run_to(ctx, entry, args)
  local bufnr, err = M.load(ctx, args)
  if not bufnr then
    return nil, err
  end
  local path = api.nvim_buf_get_name(bufnr)
  local points = { { line = args.line } }
  for _, point in ipairs(nvim_dap.breakpoints(bufnr)[bufnr] or {}) do
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
    vim.schedule(function() -- outside the tool's coroutine, in which nvim-dap would yield
      if not entry.ended and not entry.session.closed and api.nvim_buf_is_valid(bufnr) then
        local own = { [bufnr] = nvim_dap.breakpoints(bufnr)[bufnr] or {} }
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
    restore() -- the adapter may have set them and answer late
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
  unwatch = sessions.on_change(function()
    if sessions.state(entry) ~= 'running' then
      restore()
    end
  end)
  local answer = control.answer(ctx, entry, args)
  if answer.status == 'stopped' then
    local _, which = sessions.state(entry)
    local frame = stop.frame(ctx, which)
    answer.reached = frame ~= nil
      and frame.line == (target.line or args.line)
      and vim.uv.fs_realpath((frame.source or {}).path or '') == vim.uv.fs_realpath(path)
  end
  return answer
end

return M

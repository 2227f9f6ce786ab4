--- Sets, removes and lists breakpoints of the user's editor.

local access = require('mcp-tools.privacy.access')
local breakpoints = require('mcp-tools.editor.dap.breakpoints')
local errors = require('mcp-tools.errors')
local nvim_dap = require('mcp-tools.editor.dap.nvim_dap')
local position = require('mcp-tools.editor.position')
local project = require('mcp-tools.instances.project')
local redact = require('mcp-tools.privacy.redact')
local result = require('mcp-tools.editor.result')
local sessions = require('mcp-tools.editor.dap.sessions')
local variables = require('mcp-tools.editor.dap.variables')

local api = vim.api

--- Maximum number of breakpoints in an answer, and characters of a text.
local MAX, MAX_TEXT = 100, 200

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

---@class mcp-tools.debug.Breakpoint
---@field path string
---@field line integer
---@field text string? of the line
---@field condition string?
---@field hit_condition string?
---@field log_message string?
---@field verified boolean? whether it is set in a program; nil without a session
---@field bound_line integer? the actual line, if it is another one
---@field message string? the adapter's reason

---@param bufnr integer
---@param point mcp-tools.dap.Breakpoint
---@param root string
---@return mcp-tools.debug.Breakpoint
local function listed(bufnr, point, root)
  local path = api.nvim_buf_get_name(bufnr)
  local bound = bound_of(path, point.line)
  local function text(value)
    return value and value ~= '' and variables.text(value, MAX_TEXT) or nil
  end
  local line = access.buffer(bufnr, root) and api.nvim_buf_get_lines(bufnr, point.line - 1, point.line, false)[1]
  return {
    path = access.shown(path, root),
    line = point.line,
    text = line and redact.quoted(position.cut(vim.trim(line), MAX_TEXT)) or nil,
    condition = text(point.condition),
    hit_condition = text(point.hitCondition),
    log_message = text(point.logMessage),
    verified = bound and bound.verified,
    bound_line = bound and bound.line ~= point.line and bound.line or nil,
    message = text(bound and bound.message),
  }
end

--- Returns all breakpoints, the user's own included.
---@param ctx mcp-tools.Ctx
---@return { breakpoints: mcp-tools.debug.Breakpoint[], total: integer }
local function list(ctx)
  local found, total = {}, 0
  variables.refresh(ctx)
  for bufnr, points in vim.spairs(nvim_dap.breakpoints()) do
    total = total + #points
    for i = 1, math.min(#points, MAX - #found) do
      table.insert(found, listed(bufnr, points[i], ctx.root))
    end
  end
  return { breakpoints = found, total = total }
end

---@class mcp-tools.debug.Removal
---@field bufnr integer
---@field lines integer[]

--- Returns what a call removes.
---@param args { remove: { path: string?, bufnr: integer?, line: integer? }[]?, clear: boolean? }
---@return mcp-tools.debug.Removal[]
local function removals(args)
  local found = {}
  local function add(bufnr, line)
    local lines = {}
    for _, point in ipairs(bufnr and nvim_dap.breakpoints(bufnr)[bufnr] or {}) do
      if not line or point.line == line then
        table.insert(lines, point.line)
      end
    end
    table.insert(found, #lines > 0 and { bufnr = bufnr, lines = lines } or nil)
    return #lines > 0
  end
  if args.clear then
    for bufnr in pairs(nvim_dap.breakpoints()) do
      add(bufnr)
    end
    return found
  end
  for _, each in ipairs(args.remove or {}) do
    local file = errors.unwrap(breakpoints.file(each))
    if not add(file.bufnr, each.line) then
      local name = access.shown(file.path, project.root())
      local where = each.line and ('line %d of %s'):format(each.line, name) or name
      local text = 'remove: there is no breakpoint in %s; without arguments, all are listed'
      error(errors.new('not_found', text:format(where)), 0)
    end
  end
  return found
end

---@param args table
---@return boolean
local function changes(args)
  return args.set ~= nil or args.remove ~= nil or args.clear == true
end

--- Maps the arguments of guill/mcp-tools.nvim's tools for one breakpoint.
---@param name 'set'|'remove'
---@return fun(args: table): table
local function alias(name)
  return function(args)
    args.path, args.filename = args.path or args.filename, nil
    return { [name] = { args } }
  end
end

return {
  name = 'debug_breakpoints',
  title = 'Breakpoints',
  description = "Sets or removes breakpoints in the user's editor, or lists them. For one run, use `breakpoints` of"
    .. ' debug_run.',
  search_hint = 'debugger, logpoint, conditional breakpoint',
  args = {
    set = { type = 'array', items = breakpoints.POINT, description = 'Breakpoints to set or change' },
    remove = {
      type = 'array',
      items = {
        type = 'object',
        properties = {
          path = { type = 'string', description = 'File path' },
          line = { type = 'integer', description = 'Line; default: all of the file', minimum = 1 },
          bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
        },
      },
      description = 'Breakpoints to remove',
    },
    clear = { type = 'boolean', description = "Remove all, the user's included", hidden = true },
  },
  aliases = {
    dap_set_breakpoint = alias('set'),
    dap_remove_breakpoint = alias('remove'),
    dap_clear_breakpoints = { clear = true },
    dap_breakpoints = {},
  },
  annotations = { read_only = false, destructive = false, idempotent = true },
  recommended = true,
  always_ignores = function(args)
    return breakpoints.expressions(args.set) and {} or { 'set', 'remove', 'clear' } -- the program evaluates expressions
  end,
  needs_approval = function(args)
    if breakpoints.expressions(args.set) then
      return 'it sets a breakpoint whose expression the program evaluates'
    end
    return changes(args) and 'it changes breakpoints'
  end,
  preview = function(args)
    errors.unwrap(nvim_dap.get())
    errors.check(breakpoints.refusal(args.set or {}))
    local gone = removals(args)
    local lines = vim.tbl_map(breakpoints.preview, args.set or {})
    for _, each in ipairs(gone) do
      local name = access.shown(api.nvim_buf_get_name(each.bufnr), project.root())
      table.insert(lines, ('Removes the breakpoints of %s in %s'):format(name, table.concat(each.lines, ', ')))
    end
    return table.concat(lines, '\n')
  end,
  run = function(ctx, args)
    if not changes(args) then
      if nvim_dap.loaded() then
        sessions.attach()
      end
      return list(ctx)
    end
    errors.unwrap(sessions.attach())
    local gone, changed = removals(args), {}
    local points = args.set and errors.unwrap(breakpoints.load(ctx, args.set)) or {}
    for _, each in ipairs(gone) do
      table.insert(changed, each.bufnr)
      for _, line in ipairs(each.lines) do
        nvim_dap.store().remove(each.bufnr, line)
      end
    end
    for _, point in ipairs(points) do
      table.insert(changed, point.bufnr)
      breakpoints.set(point)
      if not breakpoints.at(point.bufnr, point.line) then
        local text = 'set: nvim-dap did not set a breakpoint in line %d'
        return nil, errors.new('tool_error', text:format(point.line))
      end
    end
    errors.check(breakpoints.sync(ctx, changed))
    return list(ctx)
  end,
  render = function(value)
    local rows = { result.count(value.total, 'breakpoint') }
    for _, point in ipairs(value.breakpoints) do
      local notes = {}
      for _, name in ipairs({ 'condition', 'hit_condition', 'log_message' }) do
        if point[name] then
          table.insert(notes, ('%s: %s'):format(name, point[name]))
        end
      end
      if point.verified == false then
        table.insert(notes, 'not bound' .. (point.message and ': ' .. point.message or ''))
      elseif point.bound_line then
        table.insert(notes, ('bound to line %d'):format(point.bound_line))
      end
      local note = #notes > 0 and (' (%s)'):format(table.concat(notes, '; ')) or ''
      table.insert(rows, ('%s:%d: %s%s'):format(point.path, point.line, point.text or '', note))
    end
    if value.total > #value.breakpoints then
      table.insert(rows, ('… %d more'):format(value.total - #value.breakpoints))
    end
    return table.concat(rows, '\n')
  end,
}

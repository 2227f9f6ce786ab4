--- Compares the diagnostics of all open files with an earlier state.

local access = require('mcp-tools.privacy.access')
local clients = require('mcp-tools.editor.lsp.clients')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local findings = require('mcp-tools.editor.diagnostics.findings')
local fresh = require('mcp-tools.editor.diagnostics.fresh')
local server_state = require('mcp-tools.editor.lsp.server_state')
local per_session = require('mcp-tools.util.per_session')
local time_slice = require('mcp-tools.util.time_slice')
local watched_files = require('mcp-tools.editor.lsp.watched_files')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum number of marks in one session.
local MAX_MARKS = 32
--- Maximum number of open files to wait for.
local MAX_WAITED = 50

---@class mcp-tools.diagnostics.Marks
---@field marks table<string, table<string, mcp-tools.diagnostics.Finding[]>> mark → path → findings at that time
---@field order string[] marks, the oldest first
---@field count integer

---@type fun(ctx: mcp-tools.Ctx): mcp-tools.diagnostics.Marks
local marks_of = per_session(function()
  return { marks = {}, order = {}, count = 0 }
end)

--- Returns the current diagnostics of all readable files.
---@param ctx mcp-tools.Ctx
---@return table<string, mcp-tools.diagnostics.Finding[]>
---@return table? withheld
local function snapshot(ctx)
  local files, withheld = findings.everywhere(ctx, {}, time_slice.of(ctx))
  local now = {}
  for _, file in ipairs(files) do
    now[file.path] = file.list
  end
  return now, withheld
end

---@param ctx mcp-tools.Ctx
---@param ms number
---@return string[] unsettled paths of open files whose current text was not checked
---@return string[] assumed paths of files whose server has published nothing since the change
local function freshen_all(ctx, ms)
  local over, waited = vim.uv.hrtime() + ms * 1e6, 0
  local paths = { yes = {}, assumed = {}, no = {} }
  watched_files.notify_servers(ctx)
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    local served = vim.api.nvim_buf_is_loaded(bufnr) and clients.of(bufnr) or {}
    if #served > 0 then
      ctx:await(function(done)
        disk.refresh(bufnr, done)
      end)
    end
    if #served > 0 and access.buffer(bufnr, ctx.root) and fresh.state(bufnr) ~= 'yes' then
      waited = waited + 1
      local left = (over - vim.uv.hrtime()) / 1e6
      local checked = waited <= MAX_WAITED and fresh.wait(ctx, bufnr, served, math.max(left, 1)) or 'no'
      if vim.api.nvim_buf_is_valid(bufnr) then
        table.insert(paths[checked], access.shown(vim.api.nvim_buf_get_name(bufnr), ctx.root))
      end
    end
  end
  return paths.no, paths.assumed
end

---@param session mcp-tools.diagnostics.Marks
---@param now table<string, mcp-tools.diagnostics.Finding[]>
---@return string
local function mark(session, now)
  session.count = session.count + 1
  local name = 'm' .. session.count
  session.marks[name] = now
  table.insert(session.order, name)
  if #session.order > MAX_MARKS then
    session.marks[table.remove(session.order, 1)] = nil
  end
  return name
end

---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return table?
---@return mcp-tools.Error? err
local function run(ctx, args)
  server_state.ensure_listening()
  local session = marks_of(ctx)
  local before = args.since and session.marks[args.since]
  if args.since and not before then
    local text = 'since: there is no mark %s in this session; call without since to set one'
    return nil, errors.new('not_found', text:format(utf8.cut(args.since, 200)))
  end
  local unsettled, assumed = freshen_all(ctx, args.timeout_ms)
  local now, withheld = snapshot(ctx)
  local answer = {
    mark = mark(session, now),
    settled = #unsettled == 0,
    unsettled = #unsettled > 0 and unsettled or nil,
    assumed = #assumed > 0 and assumed or nil,
    withheld = withheld,
  }
  if not before then
    local total = 0
    for _, list in pairs(now) do
      total = total + #list
    end
    answer.total = total
    return answer
  end
  local paths, pause = vim.tbl_extend('keep', now, before), time_slice.of(ctx)
  answer.files, answer.new, answer.fixed, answer.remaining = {}, 0, 0, 0
  for path in vim.spairs(paths) do
    local new, fixed, remaining = findings.difference(before[path] or {}, now[path] or {}, pause)
    answer.new, answer.fixed = answer.new + #new, answer.fixed + #fixed
    answer.remaining = answer.remaining + #remaining
    if #new + #fixed > 0 then
      table.insert(answer.files, {
        path = path,
        new = findings.rows(new, args.limit),
        fixed = findings.rows(fixed, args.limit),
      })
    end
  end
  return answer
end

return {
  name = 'diagnostics_delta',
  title = 'Changes of diagnostics',
  description = 'Without since: sets a mark, {mark, total}. With since: what is new and fixed since that mark in all'
    .. ' open files, each checked as it is now: {new, fixed, remaining, files: [{path, new, fixed}], settled}, and a'
    .. ' new mark.',
  args = {
    since = { type = 'string', description = 'A mark that an earlier call of this tool gave' },
    timeout_ms = {
      type = 'integer',
      description = 'Maximum time to wait',
      default = 15000,
      minimum = 100,
      maximum = 240000,
    },
    limit = {
      type = 'integer',
      description = 'Maximum number of rows per file',
      default = 50,
      minimum = 1,
      maximum = 1000,
    },
  },
  annotations = { read_only = true, idempotent = true },
  run = run,
}

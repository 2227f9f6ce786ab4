--- Starts, lists, reads and stops commands that run in the background.

local arguments = require('mcp-tools.editor.arguments')
local background = require('mcp-tools.editor.process.background')
local command = require('mcp-tools.editor.shell.command')
local errors = require('mcp-tools.errors')
local jobs = require('mcp-tools.editor.shell.jobs')
local sessions = require('mcp-tools.util.session')
local project = require('mcp-tools.instances.project')
local redacted_text = require('mcp-tools.editor.result.redacted_text')

--- Maximum wait for a stopped job to end, ms.
local STOP_MS = 3000

---@param job mcp-tools.shell.Job
---@return table
local function about(job)
  local result = job.result
  return {
    id = job.id,
    command = job.command.shown,
    running = result == nil,
    exit_code = result and not result.ended_by and result.signal == 0 and result.code or nil,
    signal = result and result.signal ~= 0 and result.signal or nil,
    fault = result and not result.code and not result.ended_by and result.fault or nil,
    bytes = job.bytes,
  }
end

---@param job table result of `about`
---@return string
local function state_of(job)
  if job.running then
    return 'running'
  end
  return job.exit_code and ('exit %d'):format(job.exit_code)
    or job.signal and ('signal %d'):format(job.signal)
    or job.fault
    or 'stopped'
end

local ACTIONS = {}

function ACTIONS.start(ctx, args)
  local what = errors.unwrap(command.of(args, ctx.root))
  local job = errors.unwrap(jobs.start(what, sessions.owner_of(ctx)))
  return ACTIONS.read(ctx, args, job)
end

function ACTIONS.list(ctx)
  return {
    jobs = vim.tbl_map(function(job)
      local row = vim.tbl_extend('error', about(job), { age_s = os.time() - job.started_at })
      row.other_session = not sessions.is_own(job.owner, ctx) or nil
      return row
    end, jobs.of(ctx)),
  }
end

function ACTIONS.read(ctx, args, job)
  local seen = args.since or (args.action == 'start' and 0 or nil)
  if args.wait_ms > 0 and (seen == nil or seen >= job.bytes) then
    background.await(ctx, job, args.wait_ms)
  end
  redacted_text.learn(ctx, job.command.cwd)
  local piece = job:read(seen, args.max_bytes)
  local answer = about(job)
  answer.command = nil
  answer.output = redacted_text.output(ctx, piece.text)
  answer.partial = piece.partial and redacted_text.output(ctx, piece.partial) or nil
  answer.offset, answer.next_offset, answer.skipped = piece.offset, piece.next_offset, piece.skipped
  return answer
end

function ACTIONS.stop(ctx, args, job)
  local deadline = vim.uv.hrtime() + STOP_MS * 1e6
  job:stop()
  while not job.result and vim.uv.hrtime() < deadline do
    background.await(ctx, job, 500)
  end
  return ACTIONS.read(ctx, vim.tbl_extend('force', args, { wait_ms = 0 }), job)
end

return {
  name = 'shell_jobs',
  title = 'Background commands',
  description = 'Runs commands in the background, such as servers: starts, lists, reads the output of, or stops them.'
    .. ' All end with the editor.',
  search_hint = 'background process, dev server, watch, tail output, kill',
  args = vim.tbl_extend('error', command.ARGS, {
    action = { type = 'string', enum = { 'start', 'list', 'read', 'stop' }, description = 'Action', required = true },
    id = { type = 'string', description = 'Job, for read and stop' },
    since = { type = 'integer', description = 'Byte offset to read from', minimum = 0, hidden = true },
    wait_ms = background.WAIT,
    max_bytes = arguments.bytes('Maximum bytes of output', 16384, 262144),
  }),
  annotations = { read_only = false, destructive = true, open_world = true },
  always_ignores = { 'since', 'wait_ms', 'max_bytes' },
  short_lived = { 'id' },
  needs_approval = function(args, call)
    if args.action == 'start' then
      return 'it runs a command until it is stopped'
    end
    return args.action ~= 'list' and jobs.reason(call, args.id)
  end,
  preview = function(args)
    if args.action == 'start' then
      errors.check(jobs.refusal())
      return command.preview_of(args, project.root())
    end
    local job = vim.iter(jobs.all()):find(function(each)
      return each.id == args.id
    end)
    return job and ('%s %s: %s'):format(args.action, job.id, job.command.shown) or args.action
  end,
  run = function(ctx, args)
    local job
    if args.action == 'read' or args.action == 'stop' then
      job = jobs.get(ctx, args.id)
      if not job then
        local text = 'id: there is no job %s of this client; action list names them'
        return nil, errors.new('not_found', text:format(args.id or '(none given)'))
      end
    end
    return ACTIONS[args.action](ctx, args, job)
  end,
  render = function(value)
    if value.jobs then
      local rows = vim.tbl_map(function(job)
        local other = job.other_session and ', of another session' or ''
        return ('%s: %s, %d s, %d bytes%s: %s'):format(job.id, state_of(job), job.age_s, job.bytes, other, job.command)
      end, value.jobs)
      return #rows > 0 and table.concat(rows, '\n') or 'no jobs'
    end
    local head = ('%s: %s; since=%d continues'):format(value.id, state_of(value), value.next_offset)
    head = value.skipped and ('%s; %d bytes before are gone'):format(head, value.skipped) or head
    local output = value.output .. (value.partial or '')
    return output ~= '' and head .. '\n' .. output or head
  end,
}

--- Runs a command to its end.

local arguments = require('mcp-tools.editor.arguments')
local command = require('mcp-tools.editor.shell.command')
local errors = require('mcp-tools.errors')
local process = require('mcp-tools.editor.process')
local project = require('mcp-tools.instances.project')
local result = require('mcp-tools.editor.result')
local redacted_text = require('mcp-tools.editor.result.redacted_text')
local buffers = require('mcp-tools.editor.buffer')

return {
  name = 'shell_run',
  title = 'Run a command',
  description = 'Runs a command and waits for its end. Returns the exit code and the output. Everything that it started'
    .. ' ends with it; for servers use shell_jobs.',
  search_hint = 'bash, terminal, execute, sh, make, npm, git add, stage, commit',
  args = vim.tbl_extend('error', command.ARGS, {
    stdin = {
      type = 'string',
      description = 'Standard input; default: none',
      maxLength = command.MAX_SIZE,
      hidden = true,
    },
    timeout_ms = command.TIMEOUT,
    max_bytes = arguments.bytes('Maximum bytes of stdout, and of stderr, from the end', 32768, 262144),
  }),
  annotations = { read_only = false, destructive = true, open_world = true },
  timeout = command.TOOL_TIMEOUT,
  always_ignores = { 'timeout_ms', 'max_bytes' },
  needs_approval = 'it runs a command',
  preview = function(args)
    return command.preview_of(args, project.root())
  end,
  run = function(ctx, args)
    local what = errors.unwrap(command.of(args, ctx.root))
    redacted_text.learn(ctx, what.cwd) -- before progress reports them
    local not_seen, started = buffers.unsaved(ctx.root), vim.uv.hrtime()
    local done = process.await(what.argv, {
      ctx = ctx,
      cwd = what.cwd,
      env = what.env,
      stdin = args.stdin,
      timeout = args.timeout_ms,
      limit = args.max_bytes,
      stderr_limit = args.max_bytes,
      keep = 'tail',
      on_output = redacted_text.progress(ctx),
    })
    if not (done.code or done.ended_by) then
      return nil, errors.new('tool_error', done.fault)
    end
    local duration = math.floor((vim.uv.hrtime() - started) / 1e6)
    local stdout, is_cut = result.tail(done.stdout, done.cut and args.max_bytes - 1 or args.max_bytes)
    local stderr, is_stderr_cut = result.tail(done.stderr, done.stderr_cut and args.max_bytes - 1 or args.max_bytes)
    return {
      exit_code = not done.ended_by and done.signal == 0 and done.code or nil,
      signal = done.signal ~= 0 and done.signal or nil,
      timed_out = done.ended_by == 'timeout' or nil,
      stdout = stdout ~= '' and redacted_text.output(ctx, stdout) or nil,
      stderr = stderr ~= '' and redacted_text.output(ctx, stderr) or nil,
      cut = (is_cut or is_stderr_cut or done.cut) and true or nil,
      duration_ms = duration,
      unsaved = not_seen,
    }
  end,
  render = function(value)
    local head = value.timed_out and 'timed out' or value.signal and ('signal %d'):format(value.signal)
    head = ('%s, %.1f s'):format(head or ('exit %d'):format(value.exit_code), value.duration_ms / 1000)
    head = value.cut and head .. '; the beginning of the output is cut' or head
    local rows = { head }
    if value.unsaved then
      table.insert(rows, 'not seen by it, because unsaved in the editor: ' .. table.concat(value.unsaved, ', '))
    end
    table.insert(rows, value.stdout and (value.stdout:gsub('\n$', '')))
    if value.stderr then
      vim.list_extend(rows, { 'stderr:', value.stderr })
    end
    return table.concat(rows, '\n')
  end,
}

--- Test runs: starts, cancels and keeps them. A run outlives the call that started it unless that call cancels it.

local background = require('mcp-tools.editor.process.background')
local log = require('mcp-tools.log')
local neotest = require('mcp-tools.editor.runner.neotest')
local output = require('mcp-tools.editor.runner.output')
local owners = require('mcp-tools.util.owner')
local process = require('mcp-tools.editor.process')
local pytest = require('mcp-tools.editor.runner.pytest')
local quickfix_stack = require('mcp-tools.editor.quickfix.stack')
local read = require('mcp-tools.privacy.read')
local task = require('mcp-tools.util.task')
local time_slice = require('mcp-tools.util.time_slice')
local timer = require('mcp-tools.util.timer')

local M = {}

--- Maximum number of bytes of output kept, from its end.
local MAX_OUTPUT = 1024 * 1024
--- Maximum size of pytest's results in bytes, enough for 100,000 tests.
local MAX_EVENTS = 64 * 1024 * 1024
--- Title and kind of our quickfix list.
local QUICKFIX = 'mcp-tools: tests'

---@class mcp-tools.runner.Run: mcp-tools.process.Work
---@field root string
---@field plan mcp-tools.runner.Plan
---@field state 'running'|'done'|'cancelled'|'timed_out'
---@field started_at integer ns
---@field duration_ms integer?
---@field exit_code integer?
---@field results mcp-tools.runner.Results? nil: results of single tests are unknown
---@field output string? redacted output
---@field fault string? why it could not run
---@field quickfix integer? number of quickfix entries
---@field private stop fun()?
---@field private ended_by string?

--- Finished runs can still be read.
local runs = background.new({
  prefix = 'run',
  max_running = 4,
  max_ended = 20,
  busy = '%d runs are already in progress; wait for one or cancel one',
})

--- Returns why no run can be started now.
M.refusal = runs.refusal

--- Reads and deletes pytest's results.
---@param ctx mcp-tools.Task
---@param path string
---@return mcp-tools.runner.Results?
local function read_results(ctx, path)
  local text = ctx:await(function(done)
    read.read(path, MAX_EVENTS, done, function()
      return true
    end)
  end)
  vim.uv.fs_unlink(path, function() end)
  return text and pytest.results(text, time_slice.of(ctx)) or nil
end

---@param ctx mcp-tools.Task
---@param run mcp-tools.runner.Run
---@param opts { timeout: integer, on_output: fun(stream: string, text: string)? }
local function run_command(ctx, run, opts)
  local command, env = run.plan.command, vim.deepcopy(run.plan.command.env or {})
  local events = run.plan.runner == 'pytest' and vim.fn.tempname() or nil
  env[pytest.EVENTS] = events
  local done = ctx:await(function(done)
    local handle = process.run(command.argv, {
      cwd = command.cwd,
      env = env,
      timeout = opts.timeout,
      limit = MAX_OUTPUT,
      keep = 'tail',
      on_output = opts.on_output,
    }, done)
    run.stop = function()
      handle:kill()
    end
  end)
  if not (done.code or done.ended_by) then
    run.fault = done.fault
    return
  end
  run.exit_code = not done.ended_by and done.signal == 0 and done.code or nil
  if done.ended_by == 'timeout' then
    run.ended_by = 'timed_out'
  end
  local results = events and read_results(ctx, events)
  output.read(ctx, run, results, done)
end

---@param ctx mcp-tools.Task
---@param run mcp-tools.runner.Run
---@param opts { timeout: integer, on_output: fun(stream: string, text: string)? }
local function run_neotest(ctx, run, opts)
  local client = neotest.client()
  if not client then
    run.fault = 'neotest is no longer available'
    return
  end
  local limit
  local results, fault = ctx:await(function(done)
    local stop = neotest.run(client, run.plan.target, done)
    local function end_early()
      stop()
      timer.after(2000, function() -- an adapter without a process does not respond
        done(nil, 'neotest did not stop the run in time')
      end)
    end
    run.stop = end_early
    limit = timer.after(opts.timeout, function()
      run.ended_by = 'timed_out'
      end_early()
    end)
  end)
  limit:stop()
  if not results then
    run.fault = fault
    return
  end
  output.finish(ctx, run, results)
end

--- Fills the quickfix list with the failures of a run without opening it.
---@param run mcp-tools.runner.Run
---@return integer? entries nil: the list was not changed
local function fill_quickfix(run)
  local items = {}
  for _, failure in ipairs(run.results.failures) do
    if failure.path then
      local message = failure.message:match('[^\n]*')
      table.insert(items, {
        filename = failure.path,
        lnum = failure.line or 1,
        type = 'E',
        text = run.from_output and message or ('%s: %s'):format(failure.id, message),
      })
    end
  end
  if #items == 0 and not quickfix_stack.has_own({}, QUICKFIX) then
    return nil
  end
  local title = ('%s (%s)'):format(QUICKFIX, run.plan.runner)
  quickfix_stack.new({}, { title = title, items = items }, QUICKFIX, 1)
  return #items
end

--- Starts a run.
---@param plan mcp-tools.runner.Plan
---@param opts { root: string, owner: mcp-tools.Owner, timeout: integer, quickfix: boolean,
---  on_output: fun(stream: string, text: string)? }
---@return mcp-tools.runner.Run?
---@return mcp-tools.Error? err
function M.start(plan, opts)
  local run = {
    root = opts.root,
    plan = plan,
    state = 'running',
    started_at = vim.uv.hrtime(),
  }
  local busy = runs.add(run, opts.owner)
  if busy then
    return nil, busy
  end
  task.run({ root = opts.root }, function(ctx)
    if plan.command then
      run_command(ctx, run, opts)
    else
      run_neotest(ctx, run, opts)
    end
    if opts.quickfix and run.results then
      run.quickfix = fill_quickfix(run)
    end
  end, function(ok, thrown)
    if not ok then
      log.error('a test run failed: %s', thrown)
      run.fault = run.fault or 'its result cannot be read (:McpTools log)'
    end
    run.state = run.ended_by or 'done'
    run.stop = nil
    run.duration_ms = math.floor((vim.uv.hrtime() - run.started_at) / 1e6)
    runs.finish(run)
  end)
  return run
end

--- Returns a run that a call may see; without an id, the last one of its session.
---@param call table a call or its ctx
---@param id string?
---@return mcp-tools.runner.Run?
function M.get(call, id)
  if id then
    return runs.get(call, id)
  end
  return vim.iter(runs.of(call)):rfind(function(run)
    return owners.is_own(run.owner, call)
  end)
end

--- Cancels a run.
---@param run mcp-tools.runner.Run
function M.cancel(run)
  if not run.is_over then
    run.ended_by = run.ended_by or 'cancelled'
    if run.stop then
      run.stop()
    end
  end
end

return M

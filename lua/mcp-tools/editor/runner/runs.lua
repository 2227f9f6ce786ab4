--- Runs of tests: started, waited for, ended early, kept for a while.
---
--- Receives: plans.
--- Sends: what became of each, once it has ended; the quickfix list.
--- Does not know about: calls, answers of tools. A run outlives the call that has started it, unless that ends it.

local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local neotest = require('mcp-tools.editor.runner.neotest')
local output = require('mcp-tools.editor.runner.output')
local owners = require('mcp-tools.util.owner')
local process = require('mcp-tools.editor.process')
local pytest = require('mcp-tools.editor.runner.pytest')
local quickfix = require('mcp-tools.editor.runner.quickfix')
local read = require('mcp-tools.files.read')
local task = require('mcp-tools.util.task')
local time_slice = require('mcp-tools.util.time_slice')
local timer = require('mcp-tools.util.timer')

local M = {}

--- Runs that can still be asked about; one that goes on is always kept.
local MAX_KEPT = 20
--- At a time.
M.MAX_RUNNING = 4
--- Of what a run prints, its end.
local MAX_OUTPUT = 1024 * 1024
--- Of the events of pytest: some hundred thousand tests.
local MAX_EVENTS = 64 * 1024 * 1024

---@class mcp-tools.runner.Run
---@field id string
---@field root string
---@field owner mcp-tools.Owner
---@field plan mcp-tools.runner.Plan
---@field state 'running'|'done'|'cancelled'|'timed_out'
---@field started_at integer ns
---@field duration_ms integer?
---@field exit_code integer?
---@field results mcp-tools.runner.Results? nil: nothing is known of single tests
---@field output string? what it printed, ready to be given
---@field fault string? why it could not be run
---@field quickfix integer? entries that it wrote
---@field private stop fun()?
---@field private ended_by string?
---@field private listeners table<fun(), true>
local Run = {}
Run.__index = Run

---@type mcp-tools.runner.Run[] oldest first
local runs = {}
local count = 0

--- What pytest has told.
---@param ctx mcp-tools.Task
---@param path string
---@return mcp-tools.runner.Results?
local function told_by_pytest(ctx, path)
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
  local results = events and told_by_pytest(ctx, events)
  output.read(ctx, run, results, done)
end

---@param ctx mcp-tools.Task
---@param run mcp-tools.runner.Run
---@param opts { timeout: integer, on_output: fun(stream: string, text: string)? }
local function run_neotest(ctx, run, opts)
  local client = neotest.client()
  if not client then
    run.fault = 'neotest is not there any more'
    return
  end
  local limit
  local results, fault = ctx:await(function(done)
    local stop = neotest.run(client, run.plan.target, done)
    local function end_early()
      stop()
      timer.after(2000, function() -- an adapter that has nothing to stop does not answer
        done(nil, 'neotest did not end the run in time')
      end)
    end
    run.stop = end_early
    limit = timer.after(opts.timeout, function()
      run.ended_by = 'timed_out'
      end_early()
    end)
  end)
  limit:stop()
  if not results and fault == neotest.UNKNOWN and run.plan.otherwise and not run.ended_by then
    run.plan = run.plan.otherwise
    return run_command(ctx, run, opts)
  elseif not results then
    run.fault = fault
    return
  end
  output.finish(ctx, run, results)
end

---@param run mcp-tools.runner.Run
local function ended(run)
  run.state = run.ended_by or 'done'
  run.stop = nil
  run.duration_ms = math.floor((vim.uv.hrtime() - run.started_at) / 1e6)
  for listener in pairs(vim.tbl_extend('force', {}, run.listeners)) do
    listener()
  end
  while #runs > MAX_KEPT and runs[1].state ~= 'running' do
    table.remove(runs, 1)
  end
end

--- Why no run can be started now.
---@return mcp-tools.Error?
function M.refusal()
  local running = 0
  for _, run in ipairs(runs) do
    running = running + (run.state == 'running' and 1 or 0)
  end
  if running >= M.MAX_RUNNING then
    return errors.new('busy', ('%d runs go on already; wait for them, or end one (cancel)'):format(running))
  end
end

--- Starts a run.
---@param plan mcp-tools.runner.Plan
---@param opts { root: string, owner: mcp-tools.Owner, timeout: integer, quickfix: boolean,
---  on_output: fun(stream: string, text: string)? }
---@return mcp-tools.runner.Run?
---@return mcp-tools.Error? err
function M.start(plan, opts)
  local busy = M.refusal()
  if busy then
    return nil, busy
  end
  count = count + 1
  local run = setmetatable({
    id = 'run' .. count,
    root = opts.root,
    owner = opts.owner,
    plan = plan,
    state = 'running',
    started_at = vim.uv.hrtime(),
    listeners = {},
  }, Run)
  table.insert(runs, run)
  task.run({ root = opts.root }, function(ctx)
    if plan.command then
      run_command(ctx, run, opts)
    else
      run_neotest(ctx, run, opts)
    end
    if opts.quickfix and run.results then
      run.quickfix = quickfix.fill(run)
    end
  end, function(ok, thrown)
    if not ok then
      log.error('a run of tests failed: %s', thrown)
      run.fault = run.fault or 'what it came to cannot be read (:McpTools log)'
    end
    ended(run)
  end)
  return run
end

--- A run of this client in its project; the last one when none is named.
---@param call table a call or its ctx
---@param id string?
---@return mcp-tools.runner.Run?
function M.get(call, id)
  for i = #runs, 1, -1 do
    if owners.is_related(runs[i].owner, call) and (id == nil or runs[i].id == id) then
      return runs[i]
    end
  end
end

--- Ends it early.
function Run:cancel()
  if self.state == 'running' then
    self.ended_by = self.ended_by or 'cancelled'
    if self.stop then
      self.stop()
    end
  end
end

--- Calls `cb` when it has ended or the time has passed.
---@param ms integer? no limit when left out
---@param cb fun()
---@return fun() forget
function Run:on_end(ms, cb)
  local limit, finish
  local function forget()
    self.listeners[finish] = nil
    if limit then
      limit:stop()
    end
  end
  function finish()
    forget()
    cb()
  end
  if self.state ~= 'running' or ms == 0 then
    cb()
    return forget
  end
  limit = ms and timer.after(ms, finish)
  self.listeners[finish] = true
  return forget
end

return M

--- Test runs: starts, cancels and keeps them, and reports their results. A run outlives the call that started it unless
--- that call cancels it.

local access = require('mcp-tools.privacy.access')
local background = require('mcp-tools.editor.process.background')
local log = require('mcp-tools.log')
local neotest = require('mcp-tools.editor.runner.neotest')
local owners = require('mcp-tools.util.owner')
local paths = require('mcp-tools.files.paths')
local process = require('mcp-tools.editor.process')
local pytest = require('mcp-tools.editor.runner.pytest')
local quickfix = require('mcp-tools.editor.quickfix')
local read = require('mcp-tools.privacy.read')
local redacted_text = require('mcp-tools.editor.result.redacted_text')
local result = require('mcp-tools.editor.result')
local task = require('mcp-tools.util.task')
local time_slice = require('mcp-tools.util.time_slice')
local timer = require('mcp-tools.util.timer')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

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
---@field from_output boolean? its failures were found in the output
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

M.refusal, M.reason = runs.refusal, runs.reason

--- Maximum number of bytes of output that are redacted and kept for results, from its end.
local MAX_SHOWN = 64 * 1024
--- Maximum number of bytes searched for failures, from the end.
local MAX_READ = 256 * 1024
local MAX_MESSAGE, MAX_DETAIL = 1000, 4000

--- Stores results with redacted texts. Runs in a coroutine.
---@param ctx mcp-tools.Task
---@param run mcp-tools.runner.Run
---@param results mcp-tools.runner.Results
local function finish(ctx, run, results)
  redacted_text.learn(ctx, run.root)
  for _, failure in ipairs(results.failures) do
    failure.id = utf8.repair(failure.id)
    failure.message = utf8.cut(trim(redacted_text.output(ctx, failure.message)), MAX_MESSAGE)
    if failure.detail then
      failure.detail = utf8.cut(redacted_text.output(ctx, failure.detail), MAX_DETAIL)
    end
  end
  run.results = results
end

--- Returns a function that resolves a printed path if it is a file of the project.
---@param run mcp-tools.runner.Run
---@return fun(path: string): string?
local function finder(run)
  local cwd = run.plan.command.cwd
  return function(path)
    local absolute = path:sub(1, 1) == '/' and path or cwd .. '/' .. path
    local real = vim.uv.fs_realpath(absolute)
    local stat = real and vim.uv.fs_stat(real)
    return stat and stat.type == 'file' and paths.inside(real, run.root) and real or nil
  end
end

--- Maximum number of lines searched, from the end, and of failures found.
local MAX_LINES, MAX_PLACES = 5000, 100

local LOCATION_PATTERNS = {
  '^%s*File "([^"]+)", line (%d+)()',
  '^%s*at .*%(([^()]+):(%d+):%d+%)()',
  '^%s*at ([^()%s]+):(%d+):%d+()',
  '^%s*([^%s:()]+):(%d+):%d*:?%s*()',
  '^%s*([^%s:()]+):(%d+):%s+()',
}

---@param line string
---@return string? path, string? number, string text
local function place_of(line)
  for _, pattern in ipairs(LOCATION_PATTERNS) do
    local path, number, after = line:match(pattern)
    if path then
      return path, number, line:sub(after)
    end
  end
  return nil, nil, ''
end

--- Finds failures by their locations.
---@param text string
---@param find fun(path: string): string? resolves a printed path
---@param pause fun()
---@return mcp-tools.runner.Failure[]
local function failures_in(text, find, pause)
  local lines, list, seen, resolved = vim.split(text, '\n', { plain = true }), {}, {}, {}
  for i = math.max(1, #lines - MAX_LINES), #lines do
    local path, number, message = place_of(lines[i])
    if path and #path <= 4096 then
      if resolved[path] == nil then
        resolved[path] = find((path:gsub('^file://', ''))) or false
      end
      local key = ('%s:%s'):format(path, number)
      if resolved[path] and not seen[key] then
        seen[key] = true
        table.insert(list, {
          id = key,
          kind = 'error',
          path = resolved[path],
          line = tonumber(number),
          message = message:find('%S') and message or trim(lines[i]),
        })
        if #list >= MAX_PLACES then
          break
        end
      end
    end
    pause()
  end
  return list
end

--- Reads the output of a run. Runs in a coroutine.
---@param ctx mcp-tools.Task
---@param run mcp-tools.runner.Run
---@param results mcp-tools.runner.Results? if the runner reported them separately
---@param done mcp-tools.process.Result
local function read_output(ctx, run, results, done)
  local pause, find = time_slice.of(ctx), finder(run)
  if not results and run.exit_code ~= 0 then
    local text = done.stdout:sub(-MAX_READ) .. '\n' .. done.stderr
    local failures = failures_in(redacted_text.plain(ctx, text), find, pause)
    if #failures > 0 then
      run.from_output = true
      results = { failures = failures } --[[@as mcp-tools.runner.Results]]
    end
  end
  if results then
    finish(ctx, run, results)
  else
    redacted_text.learn(ctx, run.root)
  end
  local text = done.stdout:sub(-MAX_SHOWN)
  if done.stderr ~= '' then
    text = text .. (text ~= '' and not text:find('\n$') and '\n' or '') .. done.stderr:sub(-MAX_SHOWN)
  end
  run.output = redacted_text.output(ctx, text)
end

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
  read_output(ctx, run, results, done)
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
  finish(ctx, run, results)
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
  if #items == 0 and not quickfix.has_own({}, QUICKFIX) then
    return nil
  end
  local title = ('%s (%s)'):format(QUICKFIX, run.plan.runner)
  quickfix.new({}, { title = title, items = items }, QUICKFIX, 1)
  return #items
end

--- Starts a run.
---@param plan mcp-tools.runner.Plan
---@param opts { root: string, owner: mcp-tools.Owner, timeout: integer, quickfix: boolean,
---  on_output: fun(stream: string, text: string)? }
---@return mcp-tools.runner.Run?
---@return mcp-tools.Error? err
function M.start(plan, opts)
  ---@type any
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

--- Arguments of tools that return a run.
M.ARGS = {
  limit = { type = 'integer', description = 'Maximum number of failures', default = 20, minimum = 0, maximum = 500 },
  offset = { type = 'integer', description = 'Number of failures to skip', default = 0, minimum = 0 },
}

--- Maximum number of bytes of failures, and of output if no failures are known.
local MAX_FAILURES, MAX_REPORTED = 32 * 1024, 8 * 1024

---@param failures table[]
---@return integer
local function size(failures)
  local bytes = 0
  for _, failure in ipairs(failures) do
    bytes = bytes + 40 + #failure.id + #failure.message + #(failure.detail or '')
  end
  return bytes
end

---@param run mcp-tools.runner.Run
---@param root string
---@return table<string, integer>
local function per_file(run, root)
  local counts = {}
  for _, failure in ipairs(run.results.failures) do
    local name = failure.path and access.shown(failure.path, root) or '?'
    counts[name] = (counts[name] or 0) + 1
  end
  return counts
end

---@param answer table
---@param run mcp-tools.runner.Run
---@param args { limit: integer, offset: integer }
---@param root string
local function add_failures(answer, run, args, root)
  local all, list = run.results.failures, {}
  for i = args.offset + 1, math.min(#all, args.offset + args.limit) do
    local failure = all[i]
    table.insert(list, {
      id = failure.id,
      kind = failure.kind ~= 'failed' and failure.kind or nil,
      path = failure.path and access.shown(failure.path, root),
      line = failure.line,
      message = failure.message,
      detail = failure.detail ~= failure.message and failure.detail or nil,
    })
  end
  if size(list) > MAX_FAILURES then
    answer.shown, answer.narrow = 'without details', 'give a smaller limit, or run one file or test'
    for _, failure in ipairs(list) do
      failure.detail = nil
      failure.message = failure.message:match('[^\n]*')
    end
  end
  if size(list) > MAX_FAILURES then
    answer.shown, answer.failures_per_file = 'counts per file', per_file(run, root)
    return
  end
  answer.failures = #list > 0 and list or nil
  local last = args.offset + #list
  answer.next_offset = last < #all and last > args.offset and last or nil
end

--- Returns the fields of the result.
---@param run mcp-tools.runner.Run
---@param args { limit: integer, offset: integer }
---@return table
function M.report(run, args)
  local root, results = run.root, run.results
  local answer = {
    run_id = run.id,
    runner = run.plan.runner,
    command = run.plan.command and run.plan.command.shown,
    state = run.state,
    exit_code = run.exit_code,
    duration_ms = run.duration_ms or math.floor((vim.uv.hrtime() - run.started_at) / 1e6),
    fault = run.fault,
    quickfix = run.quickfix,
  }
  if results then
    for _, field in ipairs({ 'passed', 'failed', 'errors', 'skipped', 'total' }) do
      answer[field] = results[field]
    end
    answer.failures_from = run.from_output and 'output' or nil
    add_failures(answer, run, args, root)
  end
  if run.state ~= 'running' then
    local bad = (results and #results.failures or 0) > 0
    answer.ok = run.state == 'done' and not run.fault and not bad and (run.exit_code or 0) == 0
    -- Output is only needed if the results of single tests do not explain the outcome.
    local is_explained = results and not run.from_output and (bad or answer.ok)
    if not is_explained and run.output and run.output ~= '' then
      local output, is_cut = result.tail(run.output, MAX_REPORTED)
      answer.output, answer.output_cut = output, is_cut or nil
    end
  end
  return answer
end

return M

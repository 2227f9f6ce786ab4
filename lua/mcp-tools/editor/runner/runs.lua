--- Test runs: starts, cancels and keeps them. A run outlives the call that started it unless that call is cancelled.

local background = require('mcp-tools.editor.process.background')
local log = require('mcp-tools.log')
local neotest = require('mcp-tools.editor.runner.neotest')
local paths = require('mcp-tools.files.paths')
local process = require('mcp-tools.editor.process')
local pytest = require('mcp-tools.editor.runner.pytest')
local quickfix = require('mcp-tools.editor.quickfix')
local read = require('mcp-tools.privacy.read')
local redacted_text = require('mcp-tools.editor.result.redacted_text')
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
---@field unsaved string[]? files with unsaved changes at the start
---@field on_output fun(stream: string, text: string)? of the call that waits
---@field private events string? file that pytest writes its results to
---@field private stop fun()?
---@field private ended_by string?

--- Finished runs can still be read.
local runs = background.new({
  prefix = 'run',
  max_running = 4,
  max_ended = 20,
  busy = '%d runs are already in progress; wait for one with `run`, or end one with `run` and cancel=true',
})

M.refusal, M.reason, M.get = runs.refusal, runs.reason, runs.get

--- Maximum duration of a run in ms; tests shorten it.
M.limit = 3600000

--- Maximum number of bytes of output that are redacted and kept for results, from its end.
local MAX_SHOWN = 64 * 1024
--- Maximum number of bytes searched for failures, from the end.
local MAX_READ = 256 * 1024
local MAX_MESSAGE, MAX_DETAIL = 1000, 4000

--- Redacts the texts of results. Runs in a coroutine.
---@param ctx mcp-tools.Ctx|mcp-tools.Task
---@param run mcp-tools.runner.Run
---@param results mcp-tools.runner.Results
---@return mcp-tools.runner.Results
local function redacted(ctx, run, results)
  redacted_text.learn(ctx, run.root)
  for _, failure in ipairs(results.failures) do
    failure.id = utf8.repair(failure.id)
    failure.message = utf8.cut(trim(redacted_text.output(ctx, failure.message)), MAX_MESSAGE)
    if failure.detail then
      failure.detail = utf8.cut(redacted_text.output(ctx, failure.detail), MAX_DETAIL)
    end
  end
  return results
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
    run.results = redacted(ctx, run, results)
  else
    redacted_text.learn(ctx, run.root)
  end
  local text = done.stdout:sub(-MAX_SHOWN)
  if done.stderr ~= '' then
    text = text .. (text ~= '' and not text:find('\n$') and '\n' or '') .. done.stderr:sub(-MAX_SHOWN)
  end
  run.output = redacted_text.output(ctx, text)
end

--- Reads the results that pytest has written so far.
---@param ctx mcp-tools.Ctx|mcp-tools.Task
---@param path string
---@return mcp-tools.runner.Results?
local function read_results(ctx, path)
  local text = read.await(ctx, path, MAX_EVENTS, read.any)
  return text and pytest.results(text, time_slice.of(ctx)) or nil
end

---@param ctx mcp-tools.Task
---@param run mcp-tools.runner.Run
local function run_command(ctx, run)
  local command, env = run.plan.command, vim.deepcopy(run.plan.command.env or {})
  local events = run.plan.runner == 'pytest' and vim.fn.tempname() or nil
  run.events, env[pytest.EVENTS] = events, events
  local done = ctx:await(function(done)
    local handle = process.run(command.argv, {
      cwd = command.cwd,
      env = env,
      timeout = M.limit,
      limit = MAX_OUTPUT,
      keep = 'tail',
      on_output = function(...)
        if run.on_output then
          run.on_output(...)
        end
      end,
    }, done)
    run.stop = function()
      handle:kill()
    end
  end)
  run.events = nil
  if not (done.code or done.ended_by) then
    run.fault = done.fault
    return
  end
  run.exit_code = not done.ended_by and done.signal == 0 and done.code or nil
  if done.ended_by == 'timeout' then
    run.ended_by = 'timed_out'
  end
  local results = events and read_results(ctx, events)
  if events then
    vim.uv.fs_unlink(events, function() end)
  end
  read_output(ctx, run, results, done)
end

---@param ctx mcp-tools.Task
---@param run mcp-tools.runner.Run
local function run_neotest(ctx, run)
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
    limit = timer.after(M.limit, function()
      run.ended_by = 'timed_out'
      end_early()
    end)
  end)
  limit:stop()
  if not results then
    run.fault = fault
    return
  end
  run.results = redacted(ctx, run, results)
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
  quickfix.new({}, { title = title, items = items }, QUICKFIX)
  return #items
end

--- Starts a run.
---@param plan mcp-tools.runner.Plan
---@param opts { root: string, owner: mcp-tools.Owner }
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
      run_command(ctx, run)
    else
      run_neotest(ctx, run)
    end
    if run.results then
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

--- Reads the results of a run that pytest has not finished. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param run mcp-tools.runner.Run
function M.read_so_far(ctx, run)
  local results = run.events and read_results(ctx, run.events)
  results = results and redacted(ctx, run, results)
  if run.events then -- it has not ended in the meantime
    run.results = results
  end
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

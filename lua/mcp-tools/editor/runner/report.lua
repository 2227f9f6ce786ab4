--- Reports a test run: its data, and its text for agents.

local access = require('mcp-tools.privacy.access')
local errors = require('mcp-tools.errors')
local result = require('mcp-tools.editor.result')

local M = {}

--- Maximum number of bytes of output, if single tests do not explain the outcome, and of a run that passed.
local MAX_OUTPUT, MAX_PASSED = 8 * 1024, 1024
--- Maximum number of lines of one failure's excerpt.
local MAX_EXCERPT = 20

--- Returns the error for names that no test has.
---@param unknown { name: string, near: string[] }
---@return string
local function unknown_of(unknown)
  local near = #unknown.near > 0 and 'did you mean ' .. table.concat(unknown.near, ' or ') .. '?'
    or 'symbol_overview lists the tests of a file'
  return ('tests: unknown test "%s"; %s'):format(unknown.name, near)
end

---@param run mcp-tools.runner.Run
---@param args { limit: integer, offset: integer }
---@return table? answer
---@return mcp-tools.Error? err
function M.of(run, args)
  local results = run.results
  local all = results and results.failures or {}
  if results and results.unknown and #all == 0 then
    return nil, errors.new('not_found', unknown_of(results.unknown))
  elseif run.fault and run.state == 'done' then
    return nil, errors.new('tool_error', run.fault)
  end
  local answer = {
    run = run.id,
    runner = run.plan.runner,
    command = run.plan.command and run.plan.command.shown,
    state = run.state,
    exit_code = run.exit_code,
    duration_ms = run.duration_ms or math.floor((vim.uv.hrtime() - run.started_at) / 1e6),
    fault = run.fault or results and results.unknown and unknown_of(results.unknown) or nil,
    quickfix = run.quickfix,
    unsaved = run.unsaved,
    last_failed = run.plan.target.last_failed or nil,
    failures_from = run.from_output and 'output' or nil,
    failures = {},
    total_failures = #all,
  }
  for _, field in ipairs({ 'passed', 'failed', 'errors', 'skipped', 'total' }) do
    answer[field] = results and results[field]
  end
  for _, failure in ipairs(vim.list_slice(all, args.offset + 1, args.offset + args.limit)) do
    table.insert(answer.failures, {
      id = failure.id,
      kind = failure.kind ~= 'failed' and failure.kind or nil,
      path = failure.path and access.shown(failure.path, run.root),
      line = failure.line,
      message = failure.message,
      detail = failure.detail ~= failure.message and failure.detail or nil,
    })
  end
  if run.state ~= 'running' then
    answer.ok = run.state == 'done' and not answer.fault and #all == 0 and (run.exit_code or 0) == 0
    local is_explained = results and not run.from_output and (#all > 0 or answer.ok or results.total == 0)
    if not is_explained and run.output and run.output ~= '' then
      local output, is_cut = result.tail(run.output, answer.ok and MAX_PASSED or MAX_OUTPUT)
      answer.output, answer.output_cut = output, is_cut or nil
    end
  end
  return answer
end

---@param value table
---@return string
local function head_of(value)
  local counts = {}
  for _, each in ipairs({ { 'passed' }, { 'failed' }, { 'errors', 'error' }, { 'skipped' } }) do
    local count = value[each[1]] or 0
    if count > 0 or each[1] == 'passed' and (value.failed or 0) > 0 then
      table.insert(counts, each[2] and result.count(count, each[2]) or ('%d %s'):format(count, each[1]))
    end
  end
  local seconds = ('%.1f s'):format(value.duration_ms / 1000)
  local what = #counts > 0 and table.concat(counts, ', ') or nil
  if value.state == 'running' then
    what = what and value.total and ('%s of %d'):format(what, value.total) or what or 'no results yet'
    local text = '%s is still running after %s: %s. Call again with run="%s" to wait for it.'
    return text:format(value.run, seconds, what, value.run)
  elseif value.state ~= 'done' then
    return ('%s after %s%s'):format(value.state:gsub('_', ' '), seconds, what and ': ' .. what or '')
  elseif what then
    local code = value.exit_code or 0
    local is_odd = code ~= 0 and #value.failures == 0 and value.total_failures == 0
    return ('%s in %s%s'):format(what, seconds, is_odd and ('; exit code %d'):format(code) or '')
  elseif value.total == 0 then
    return value.last_failed and 'no test failed last' or 'no tests found'
  end
  local ending = value.ok and 'passed' or ('failed with exit code %s'):format(value.exit_code or '?')
  return ('%s %s in %s'):format(value.runner, ending, seconds)
end

---@param failure table
---@param with_excerpt boolean
---@param rows string[]
local function add_failure(rows, failure, with_excerpt)
  local place = failure.path and ('%s:%d'):format(failure.path, failure.line or 1)
  local message = failure.message:match('[^\n]*')
  table.insert(rows, ('%s: %s'):format(place or failure.id, message))
  if place ~= failure.id then
    table.insert(rows, '  ' .. failure.id)
  end
  local lines = with_excerpt and failure.detail and vim.split(vim.trim(failure.detail), '\n', { plain = true }) or {}
  for i = math.max(1, #lines - MAX_EXCERPT + 1), #lines do
    local is_known = place and vim.startswith(lines[i], place .. ': in ') or lines[i]:gsub('^E%s+', '') == message
    table.insert(rows, not is_known and '  ' .. lines[i] or nil)
  end
end

--- Returns the text for agents.
---@param value table
---@param args { limit: integer, offset: integer }
---@return string
function M.render(value, args)
  local head = { head_of(value) }
  if value.fault then
    table.insert(head, value.fault)
  end
  if value.unsaved then
    table.insert(head, 'tested as on disk, with unsaved changes in the editor: ' .. table.concat(value.unsaved, ', '))
  end
  local last = args.offset + #value.failures
  if last < value.total_failures then
    local text = 'failures %d-%d of %d follow; run="%s", offset=%d continues'
    table.insert(head, text:format(args.offset + 1, last, value.total_failures, value.run, last))
  end
  local function rows(with_excerpt)
    return function()
      local list = vim.list_slice(head)
      for _, failure in ipairs(value.failures) do
        add_failure(list, failure, with_excerpt)
      end
      if value.output then
        table.insert(list, (value.output_cut and 'end of the output:\n' or 'output:\n') .. vim.trim(value.output))
      end
      return list
    end
  end
  return result.longest({
    { text = rows(true) },
    { text = rows(false), without = 'excerpts' },
  }, 'run one file or test')
end

return M

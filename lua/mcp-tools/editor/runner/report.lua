--- Result of a test run: failures with details; if that is too long, without details, or counts per file.

local access = require('mcp-tools.privacy.access')
local result = require('mcp-tools.editor.result')

local M = {}

--- Arguments of tools that return a run.
M.ARGS = {
  limit = { type = 'integer', description = 'At most so many failures', default = 20, minimum = 0, maximum = 500 },
  offset = { type = 'integer', description = 'Failures to pass over', default = 0, minimum = 0 },
}

--- Maximum number of bytes of failures, and of output if no failures are known.
local MAX_FAILURES, MAX_OUTPUT = 32 * 1024, 8 * 1024

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
function M.of(run, args)
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
      local output, is_cut = result.tail(run.output, MAX_OUTPUT)
      answer.output, answer.output_cut = output, is_cut or nil
    end
  end
  return answer
end

return M

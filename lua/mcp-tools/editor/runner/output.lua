--- What a run of tests printed, read for results, and made ready to be given.
---
--- Receives: a run, what its program printed, results that are known otherwise.
--- Sends: results and output in the run: plain text, without secrets.
--- Does not know about: how it was run.

local paths = require('mcp-tools.files.paths')
local printed_secrets = require('mcp-tools.editor.process.printed_secrets')
local problem_matcher = require('mcp-tools.editor.runner.problem_matcher')
local redacted_text = require('mcp-tools.editor.result.redacted_text')
local tap = require('mcp-tools.editor.runner.tap')
local time_slice = require('mcp-tools.util.time_slice')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Of what was printed, the end.
local MAX_OUTPUT = 64 * 1024
--- The end that is read for places.
local MAX_READ = 256 * 1024
local MAX_MESSAGE, MAX_DETAIL = 1000, 4000

--- Takes results over, with texts as they may be given. In a coroutine.
---@param ctx mcp-tools.Task
---@param run mcp-tools.runner.Run
---@param results mcp-tools.runner.Results
function M.finish(ctx, run, results)
  printed_secrets.learn(ctx, run.root)
  for _, failure in ipairs(results.failures) do
    failure.id = utf8.repair(failure.id)
    failure.message = utf8.cut(trim(redacted_text.output(ctx, failure.message)), MAX_MESSAGE)
    if failure.detail then
      failure.detail = utf8.cut(redacted_text.output(ctx, failure.detail), MAX_DETAIL)
    end
  end
  run.results = results
end

--- The file that a program names, if it is one of the project.
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

--- Reads what was printed. In a coroutine.
---@param ctx mcp-tools.Task
---@param run mcp-tools.runner.Run
---@param results mcp-tools.runner.Results? as the runner has told them otherwise
---@param done mcp-tools.process.Result
function M.read(ctx, run, results, done)
  local pause, find = time_slice.of(ctx), finder(run)
  if not results and tap.is_tap(done.stdout) then
    results = tap.results(redacted_text.plain(ctx, done.stdout), function(path)
      return find(path) ~= nil
    end, pause)
  elseif not results and run.exit_code ~= 0 then
    local text = done.stdout:sub(-MAX_READ) .. '\n' .. done.stderr
    local failures = problem_matcher.failures(redacted_text.plain(ctx, text), find, pause)
    if #failures > 0 then
      run.from_output = true
      results = { failures = failures }
    end
  end
  if results then
    M.finish(ctx, run, results)
  else
    printed_secrets.learn(ctx, run.root)
  end
  local said = done.stdout:sub(-MAX_OUTPUT)
  if done.stderr ~= '' then
    said = said .. (said ~= '' and not said:find('\n$') and '\n' or '') .. done.stderr:sub(-MAX_OUTPUT)
  end
  run.output = redacted_text.output(ctx, said)
end

return M

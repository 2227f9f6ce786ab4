--- Finds failures in the output of a test run and prepares the output for a result: plain text without secrets.

local paths = require('mcp-tools.files.paths')
local redacted_text = require('mcp-tools.editor.result.redacted_text')
local time_slice = require('mcp-tools.util.time_slice')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum number of bytes of output kept, from its end.
local MAX_OUTPUT = 64 * 1024
--- Maximum number of bytes searched for failures, from the end.
local MAX_READ = 256 * 1024
local MAX_MESSAGE, MAX_DETAIL = 1000, 4000

--- Stores results with redacted texts. Runs in a coroutine.
---@param ctx mcp-tools.Task
---@param run mcp-tools.runner.Run
---@param results mcp-tools.runner.Results
function M.finish(ctx, run, results)
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
function M.read(ctx, run, results, done)
  local pause, find = time_slice.of(ctx), finder(run)
  if not results and run.exit_code ~= 0 then
    local text = done.stdout:sub(-MAX_READ) .. '\n' .. done.stderr
    local failures = failures_in(redacted_text.plain(ctx, text), find, pause)
    if #failures > 0 then
      run.from_output = true
      results = { failures = failures }
    end
  end
  if results then
    M.finish(ctx, run, results)
  else
    redacted_text.learn(ctx, run.root)
  end
  local text = done.stdout:sub(-MAX_OUTPUT)
  if done.stderr ~= '' then
    text = text .. (text ~= '' and not text:find('\n$') and '\n' or '') .. done.stderr:sub(-MAX_OUTPUT)
  end
  run.output = redacted_text.output(ctx, text)
end

return M

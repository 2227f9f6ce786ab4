--- Reads the definitions of Python tools, in a process of its own.

local interpreter = require('mcp-tools.bridge.interpreter')
local process = require('mcp-tools.editor.process')
local log = require('mcp-tools.log')
local strings = require('mcp-tools.util.strings')
local trim = require('mcp-tools.util.trim')
local worker = require('mcp-tools.python_worker.worker')

local M = {}

--- In ms, for one process; to import a large library from a cold disk takes seconds.
M.TIMEOUT = 20000
local MAX_OUTPUT = 8 * 1024 * 1024

---@class mcp-tools.python_worker.Scanned
---@field path string?
---@field tools table[]
---@field faults string[]
---@field ms integer?

--- Handles a line of the process.
---@param line string
---@param results table<string, mcp-tools.python_worker.Scanned>
---@return string? begun key of the module that it begins to read
local function parse(line, results)
  local ok, report = pcall(vim.json.decode, line)
  if not ok or type(report) ~= 'table' then
    return nil
  elseif report.begin then
    return report.begin
  end
  local faults = report.faults or {}
  if report.error then
    log.error('%s: %s', report.key, report.trace or report.error)
    faults = { report.error }
  end
  local path = type(report.path) == 'string' and report.path or nil
  results[report.key] = { path = path, tools = report.tools, faults = faults, ms = report.ms }
end

--- Reads modules, with a further process for those that are left after a crash.
---@param python string
---@param sources table[]
---@param results table<string, mcp-tools.python_worker.Scanned>
---@param done fun(fault: string?)
local function run(python, sources, results, done)
  if #sources == 0 then
    return done()
  end
  local cwd = vim.fn.stdpath('data') --[[@as string]]
  local opts = { cwd = vim.uv.fs_stat(cwd) and cwd or '/', timeout = M.TIMEOUT, limit = MAX_OUTPUT }
  process.run(worker.scan_command(python, sources), opts, function(ended)
    local begun
    for line in ended.stdout:gmatch('[^\n]+') do
      begun = parse(line, results) or begun
    end
    if not begun then
      local message = strings.last_line(trim(ended.stderr))
      return done(
        ("'%s' cannot read modules: %s"):format(python, message ~= '' and message or ended.fault or 'no output')
      )
    end
    local left = {}
    for _, source in ipairs(sources) do
      if not results[source.key] and source.key == begun then
        -- The process ended at this module. Each run finishes at least one, so the runs come to an end.
        local why = ended.fault or 'the process ended'
        results[source.key] = { tools = {}, faults = { 'importing it failed: ' .. why:gsub('^.-python%S* ', 'it ') } }
        log.error('%s: %s', source.key, ended.stderr ~= '' and ended.stderr or why)
      elseif not results[source.key] then
        table.insert(left, source)
      end
    end
    run(python, left, results, done)
  end)
end

--- Reads modules.
---@param sources { key: string, path: string?, module: string?, sha256: string? }[]
---@param cb fun(results: table<string, mcp-tools.python_worker.Scanned>?, fault: string?) may be called at once
function M.read(sources, cb)
  interpreter.resolve_python(function(runtime, fault)
    if not runtime then
      return cb(nil, ('%s. %s'):format(fault.message, fault.advice))
    end
    local results = {}
    run(runtime.python, sources, results, function(broken)
      cb(not broken and results or nil, broken)
    end)
  end)
end

return M

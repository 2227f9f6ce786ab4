--- Modules read by a process that lives no longer than that.

local process = require('mcp-tools.editor.process')
local log = require('mcp-tools.log')
local command = require('mcp-tools.python_worker.command')
local strings = require('mcp-tools.util.strings')
local trim = require('mcp-tools.util.trim')

local M = {}

--- ms for one process. Importing a large library from a cold disk takes seconds.
M.TIMEOUT = 20000
local MAX_OUTPUT = 8 * 1024 * 1024

---@class mcp-tools.python_worker.Scanned
---@field path string?
---@field tools table[]
---@field faults string[]
---@field ms integer?

---@param line string
---@param results table<string, mcp-tools.python_worker.Scanned>
---@return string? begun
local function take(line, results)
  local ok, said = pcall(vim.json.decode, line)
  if not ok or type(said) ~= 'table' then
    return nil
  elseif said.begin then
    return said.begin
  end
  local faults = said.faults or {}
  if said.error then
    log.error('%s: %s', said.key, said.trace or said.error)
    faults = { said.error }
  end
  local path = type(said.path) == 'string' and said.path or nil
  results[said.key] = { path = path, tools = said.tools, faults = faults, ms = said.ms }
end

---@param python string
---@param sources table[]
---@param results table<string, mcp-tools.python_worker.Scanned>
---@param done fun(fault: string?)
local function run(python, sources, results, done)
  if #sources == 0 then
    return done()
  end
  local opts = {
    cwd = vim.fn.stdpath('data') --[[@as string]],
    timeout = M.TIMEOUT,
    limit = MAX_OUTPUT,
  }
  opts.cwd = vim.uv.fs_stat(opts.cwd) and opts.cwd or '/'
  process.run(command.scan_command(python, sources), opts, function(ended)
    local begun
    for line in ended.stdout:gmatch('[^\n]+') do
      begun = take(line, results) or begun
    end
    if not begun then
      local said = strings.last_line(trim(ended.stderr))
      return done(
        ('%s cannot read modules: %s'):format(python, said ~= '' and said or ended.fault or 'it said nothing')
      )
    end
    local left = {}
    for _, source in ipairs(sources) do
      if not results[source.key] and source.key == begun then
        -- The one that it was at, so that each run gets rid of one at least.
        local why = ended.fault or 'the process that read it ended'
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
---@param cb fun(results: table<string, mcp-tools.python_worker.Scanned>?, fault: string?) on the main loop, or at once
function M.read(sources, cb)
  command.resolve(function(python, fault)
    if not python then
      return cb(nil, ('%s. %s'):format(fault.message, fault.advice))
    end
    local results = {}
    run(python, sources, results, function(broken)
      cb(not broken and results or nil, broken)
    end)
  end)
end

return M

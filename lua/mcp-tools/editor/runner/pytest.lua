--- pytest: its command, the tests in a file's text, and its results.

local paths = require('mcp-tools.files.paths')
local read_sync = require('mcp-tools.util.read_sync')

local M = {}

local PLUGIN = vim.fs.dirname(vim.uv.fs_realpath(debug.getinfo(1, 'S').source:sub(2)) or '') .. '/pytest'

--- Files in the root that show that pytest is used, with the text that they must contain.
local MARKERS = {
  { 'pytest.ini' },
  { '.pytest.ini' },
  { 'conftest.py' },
  { 'pyproject.toml', '[tool.pytest' },
  { 'setup.cfg', '[tool:pytest]' },
  { 'tox.ini', '[pytest]' },
}
local MAX_MARKER = 256 * 1024
--- Directories searched for tests, and the maximum number of entries of each.
local DIRECTORIES, MAX_ENTRIES = { '', '/tests', '/test' }, 2000

--- Returns whether the project uses pytest.
---@param root string
---@return string? why the file that shows it
function M.used_in(root)
  for _, marker in ipairs(MARKERS) do
    local path = root .. '/' .. marker[1]
    local stat = vim.uv.fs_stat(path)
    if
      stat
      and stat.type == 'file'
      and (not marker[2] or (read_sync(path, MAX_MARKER) or ''):find(marker[2], 1, true))
    then
      return marker[1]
    end
  end
  for _, directory in ipairs(DIRECTORIES) do
    local seen = 0
    for name in vim.fs.dir(root .. directory) do
      seen = seen + 1
      if name:find('^test_.*%.py$') or name:find('_test%.py$') then
        return (directory .. '/' .. name):sub(2)
      elseif seen >= MAX_ENTRIES then
        break
      end
    end
  end
end

---@class mcp-tools.runner.Test
---@field name string classes and function, with "::" between
---@field line integer

--- Returns tests and classes by line, without running anything.
---@param lines string[]
---@return mcp-tools.runner.Test[]
function M.tests(lines)
  local open, found = {}, {}
  for number, line in ipairs(lines) do
    local indent, class = line:match('^(%s*)class%s+([%w_]+)')
    local name = class
    if not name then
      indent, name = line:match('^(%s*)def%s+(test[%w_]*)%s*%(')
    end
    if not name then
      indent, name = line:match('^(%s*)async%s+def%s+(test[%w_]*)%s*%(')
    end
    if name then
      while open[#open] and open[#open].indent >= #indent do
        table.remove(open)
      end
      local parent = open[#open]
      name = parent and parent.name .. '::' .. name or name
      table.insert(found, { name = name, line = number })
      if class then
        table.insert(open, { name = name, indent = #indent })
      end
    end
  end
  return found
end

--- Returns the project's Python: of the active environment, of one in the project, or any.
---@param root string
---@return string
local function python(root)
  local active = vim.env.VIRTUAL_ENV
  for _, directory in ipairs({ active or '', root .. '/.venv', root .. '/venv' }) do
    local program = directory .. '/bin/python'
    if directory ~= '' and vim.uv.fs_stat(program) then
      return program
    end
  end
  return vim.fn.executable('python3') == 1 and 'python3' or 'python'
end

--- Returns the command and its environment.
---@param root string
---@param files string[] where to look for tests; empty: everywhere
---@param names string[] names or ids of tests; empty: all
---@param options string[]
---@return string[] argv
---@return table<string, string> env without `EVENTS`
function M.command(root, files, names, options)
  local argv = { python(root), '-m', 'pytest', '-p', 'mcp_tools_pytest', '-v', '--color=no', '--tb=short' }
  if #names > 0 and #files == 0 then
    table.insert(argv, '--continue-on-collection-errors') -- of files that may not have the tests
  end
  vim.list_extend(argv, options)
  vim.list_extend(argv, files)
  local path = vim.env.PYTHONPATH
  return argv,
    {
      PYTHONPATH = path and path ~= '' and PLUGIN .. ':' .. path or PLUGIN,
      -- The plugin selects them, because it also knows those that are generated, inherited or similar.
      MCP_TOOLS_TESTS = #names > 0 and vim.json.encode(names) or nil,
    }
end

--- Environment variable with the path of the results file.
M.EVENTS = 'MCP_TOOLS_TEST_EVENTS'

---@class mcp-tools.runner.Failure
---@field id string the runner's id
---@field kind 'failed'|'error'
---@field path string? absolute
---@field line integer?
---@field message string
---@field detail string?

---@class mcp-tools.runner.Results
---@field passed integer
---@field failed integer
---@field errors integer
---@field skipped integer
---@field total integer?
---@field unknown { name: string, near: string[] }? a name that no test has
---@field failures mcp-tools.runner.Failure[]

local COUNTS = { passed = 'passed', failed = 'failed', error = 'errors', skipped = 'skipped' }
--- Maximum number of failures kept.
local MAX_FAILURES = 500

--- Parses the results that our pytest plugin has written.
---@param text string
---@param pause fun()
---@return mcp-tools.runner.Results? nil: no results
function M.results(text, pause)
  local results, any = { passed = 0, failed = 0, errors = 0, skipped = 0, failures = {} }, false
  for line in text:gmatch('[^\n]+') do
    local ok, event = pcall(vim.json.decode, line, { luanil = { object = true } })
    local is_event = ok and type(event) == 'table'
    if is_event and event.total then
      results.total, any = event.total, true
    elseif is_event and event.unknown then
      results.unknown, any = { name = event.unknown, near = event.near }, true
    elseif is_event and event.id and COUNTS[event.outcome] then
      any = true
      local count = COUNTS[event.outcome]
      results[count] = results[count] + 1
      if COUNTS[event.before] then -- a fixture failed after the test had passed
        local before = COUNTS[event.before]
        results[before] = results[before] - 1
      end
      if event.message and #results.failures < MAX_FAILURES then
        table.insert(results.failures, {
          id = event.id,
          kind = event.outcome,
          path = event.path and paths.resolve(event.path),
          line = event.line,
          message = event.message,
          detail = event.detail,
        })
      end
    end
    pause()
  end
  return any and results or nil
end

return M

--- pytest: its command, its tests by the text of their files, and what they came to.

local paths = require('mcp-tools.files.paths')
local read_now = require('mcp-tools.files.read_sync')

local M = {}

local PLUGIN = vim.fs.dirname(vim.uv.fs_realpath(debug.getinfo(1, 'S').source:sub(2)) or '') .. '/pytest'

--- Files in the root that say that it is used; with the text that must stand in them.
local MARKERS = {
  { 'pytest.ini' },
  { '.pytest.ini' },
  { 'conftest.py' },
  { 'pyproject.toml', '[tool.pytest' },
  { 'setup.cfg', '[tool:pytest]' },
  { 'tox.ini', '[pytest]' },
}
local MAX_MARKER = 256 * 1024
--- Folders that tests are looked for in, and so many entries of each.
local FOLDERS, ENTRIES = { '', '/tests', '/test' }, 2000

--- Is it a file that pytest takes for tests?
---@param name string last part of a path
---@return boolean
function M.is_test_file(name)
  return name:find('^test_.*%.py$') ~= nil or name:find('_test%.py$') ~= nil
end

--- Does the project use it?
---@param root string
---@return string? why the file that says so
function M.used_in(root)
  for _, marker in ipairs(MARKERS) do
    local path = root .. '/' .. marker[1]
    local stat = vim.uv.fs_stat(path)
    if
      stat
      and stat.type == 'file'
      and (not marker[2] or (read_now(path, MAX_MARKER) or ''):find(marker[2], 1, true))
    then
      return marker[1]
    end
  end
  for _, folder in ipairs(FOLDERS) do
    local seen = 0
    for name in vim.fs.dir(root .. folder) do
      seen = seen + 1
      if M.is_test_file(name) then
        return (folder .. '/' .. name):sub(2)
      elseif seen >= ENTRIES then
        break
      end
    end
  end
end

---@class mcp-tools.runner.Test
---@field name string classes and function, with "::" between
---@field line integer
---@field is_group boolean a class

--- Tests and classes in the order of the lines, without running anything.
---@param lines string[]
---@param pause? fun()
---@return mcp-tools.runner.Test[]
function M.tests(lines, pause)
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
      table.insert(found, { name = name, line = number, is_group = class ~= nil })
      if class then
        table.insert(open, { name = name, indent = #indent })
      end
    end
    if pause then
      pause()
    end
  end
  return found
end

--- The Python that the project uses: of the environment that is active, of one that lies in it, or any.
---@param root string
---@return string
function M.python(root)
  local active = vim.env.VIRTUAL_ENV
  for _, folder in ipairs({ active or '', root .. '/.venv', root .. '/venv' }) do
    local program = folder .. '/bin/python'
    if folder ~= '' and vim.uv.fs_stat(program) then
      return program
    end
  end
  return vim.fn.executable('python3') == 1 and 'python3' or 'python'
end

--- The command, and what its environment must have.
---@param root string
---@param tests string[] ids or paths
---@param extra string[]
---@return string[] argv
---@return table<string, string> env without the name of the file
function M.command(root, tests, extra)
  local argv = { M.python(root), '-m', 'pytest', '-p', 'mcp_tools_pytest', '-v', '--color=no', '--tb=short' }
  vim.list_extend(argv, extra)
  vim.list_extend(argv, tests)
  local path = vim.env.PYTHONPATH
  return argv, { PYTHONPATH = path and path ~= '' and PLUGIN .. ':' .. path or PLUGIN }
end

--- The variable that names the file for its results.
M.EVENTS = 'MCP_TOOLS_TEST_EVENTS'

---@class mcp-tools.runner.Failure
---@field id string as the runner knows it
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
---@field failures mcp-tools.runner.Failure[]

local COUNTS = { passed = 'passed', failed = 'failed', error = 'errors', skipped = 'skipped' }
--- Failures that are kept.
local MAX_FAILURES = 500

--- What the plugin has written.
---@param text string
---@param pause fun()
---@return mcp-tools.runner.Results? nil: it has written nothing
function M.results(text, pause)
  local results, any = { passed = 0, failed = 0, errors = 0, skipped = 0, failures = {} }, false
  for line in text:gmatch('[^\n]+') do
    local ok, event = pcall(vim.json.decode, line, { luanil = { object = true } })
    ok = ok and type(event) == 'table'
    if ok and event.total then
      results.total, any = event.total, true
    elseif ok and event.id and COUNTS[event.outcome] then
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

--- Decides which tests run and with which command, without running anything.
---
--- Commands that a file of the project defines (scripts, make targets) only run if the user trusts that file.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local command = require('mcp-tools.editor.shell.command')
local errors = require('mcp-tools.errors')
local focus = require('mcp-tools.editor.user.focus')
local neotest = require('mcp-tools.editor.runner.neotest')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')
local pytest = require('mcp-tools.editor.runner.pytest')
local read_sync = require('mcp-tools.util.read_sync')
local scripts = require('mcp-tools.editor.runner.scripts')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum size of a file that is searched for tests, in bytes.
local MAX_FILE = 2 * 1024 * 1024

--- Error of runners that do not know single tests.
local SINGLE = 'only pytest and neotest can run single tests, but the runner is %s; %s'

---@class mcp-tools.runner.Target
---@field path string? resolved; nil: all files
---@field bufnr integer?
---@field line integer?
---@field tests string[]? names or ids
---@field last_failed boolean?
---@field extra string[]

---@class mcp-tools.runner.Plan
---@field runner string
---@field command mcp-tools.shell.Command? nil: neotest builds the command
---@field target mcp-tools.runner.Target

--- Returns the file or directory of a test's id. Approval does not check ids, so it must be in the project.
---@param test string
---@param root string resolved
---@return string? path resolved; nil: it does not exist
---@return mcp-tools.Error? err
local function file_of(test, root)
  local file = test:match('^(.-)::') or test
  local path, bad = paths.resolve(file:sub(1, 1) == '/' and file or root .. '/' .. file)
  if bad or not vim.uv.fs_stat(path) then
    return nil
  elseif not paths.inside(path, root) then
    return nil, errors.new('access_denied', ('tests: %s is outside the project; give path'):format(utf8.cut(test, 200)))
  end
  return path
end

--- Finds the file that the arguments name.
---@param args table
---@return { path: string?, bufnr: integer?, line: integer? }?
---@return mcp-tools.Error? err
local function place_of(args)
  local bufnr = args.at_cursor and buffers.current()
  if args.at_cursor and not bufnr then
    return nil, errors.new('not_found', 'at_cursor: the user has no file open')
  elseif not (bufnr or args.path or args.bufnr) then
    return { line = args.line }
  end
  local found, err = buffers.find(bufnr and { bufnr = bufnr } or args)
  if not found then
    return nil, err
  elseif not found.path or found.path == '' then
    return nil, errors.new('not_found', (bufnr and 'at_cursor' or 'bufnr') .. ': the buffer has no file')
  end
  local path = paths.resolve(found.path)
  if not vim.uv.fs_stat(path) then
    local name = access.shown(path, project.root())
    return nil, errors.new('not_found', ('there is no file %s; unsaved files cannot be tested'):format(name))
  end
  return { path = path, bufnr = found.bufnr, line = bufnr and focus.place(bufnr) or args.line }
end

---@param args table
---@param root string resolved
---@return mcp-tools.runner.Target?
---@return mcp-tools.Error?
local function target_of(args, root)
  local place, err = place_of(args)
  if not place then
    return nil, err
  elseif place.line and not place.path then
    return nil, errors.new('validation_error', 'line: needs path')
  elseif place.line and args.tests then
    return nil, errors.new('validation_error', 'tests: cannot be combined with line or at_cursor')
  end
  for _, test in ipairs(args.tests or {}) do
    local _, refused = file_of(test, root)
    if refused then
      return nil, refused
    end
  end
  return vim.tbl_extend('error', place, {
    tests = args.tests,
    last_failed = args.last_failed,
    extra = args.args or {},
  })
end

--- Returns the test at or above the target's line.
---@param target mcp-tools.runner.Target
---@return string? name
---@return mcp-tools.Error? err
local function nearest(target)
  local lines
  if target.bufnr then
    lines = vim.api.nvim_buf_get_lines(target.bufnr, 0, -1, false)
  else
    lines = vim.split(read_sync(target.path, MAX_FILE) or '', '\n', { plain = true })
  end
  local name
  for _, test in ipairs(pytest.tests(lines)) do
    name = test.line <= target.line and test.name or name
  end
  local text = ('line: no test begins at or above line %d'):format(target.line)
  return name, not name and errors.new('not_found', text) or nil
end

--- Returns a path relative to a directory if it is inside.
---@param path string
---@param directory string
---@return string
local function relative(path, directory)
  directory = paths.real_root(directory)
  return vim.startswith(path, directory .. '/') and path:sub(#directory + 2) or path
end

--- Returns a path as an argument that cannot be mistaken for an option.
---@param path string
---@param directory string
---@return string
local function argument_of(path, directory)
  local name = relative(path, directory)
  return name:find('^[-@]') and './' .. name or name
end

---@param target mcp-tools.runner.Target
---@param root string
---@return mcp-tools.shell.Command?
---@return mcp-tools.Error?
local function by_pytest(target, root)
  local files, names, is_complete = {}, {}, true
  for _, test in ipairs(target.tests or {}) do
    local file = file_of(test, root)
    if file then
      table.insert(files, argument_of(file, root))
      test = relative(file, root) .. (test:match('::.*') or '')
    end
    is_complete = is_complete and file ~= nil
    table.insert(names, test)
  end
  files = is_complete and vim.fn.uniq(vim.fn.sort(files)) --[[@as string[] ]] or {}
  if target.path then
    files = { argument_of(target.path, root) }
  end
  if target.line then
    local name, err = nearest(target)
    if not name then
      return nil, err
    end
    names = { name }
  end
  local options = target.last_failed and { '--last-failed', '--last-failed-no-failures=none' } or {}
  local argv, env = pytest.command(root, files, names, vim.list_extend(options, target.extra))
  return { argv = argv, cwd = root, env = env, shown = command.line(argv) }
end

---@param target mcp-tools.runner.Target
---@param root string
---@param script string
---@return mcp-tools.shell.Command?
---@return mcp-tools.Error?
local function by_script(target, root, script)
  local found, err = scripts.package(target.path or root, root)
  if not found then
    return nil, err
  elseif target.tests or target.line or target.last_failed then
    return nil, errors.new('validation_error', SINGLE:format('a script', 'leave out all but path'))
  end
  local file = target.path ~= found.directory and target.path and argument_of(target.path, found.directory) or nil
  return scripts.command(found, script, file, target.extra)
end

---@param target mcp-tools.runner.Target
---@param root string
---@param name string name of a target
---@return mcp-tools.shell.Command?
---@return mcp-tools.Error?
local function by_make(target, root, name)
  if target.path or target.tests or target.last_failed then
    return nil, errors.new('validation_error', SINGLE:format('make', 'leave out path, tests and last_failed'))
  end
  return scripts.make(root, name, target.extra)
end

--- File extensions of JavaScript and TypeScript.
local SCRIPTS = { 'js', 'mjs', 'cjs', 'jsx', 'ts', 'mts', 'cts', 'tsx' }

--- Chooses a runner if the call does not name one.
---@param target mcp-tools.runner.Target
---@param root string
---@return string? runner
---@return mcp-tools.Error? err
local function choose(target, root)
  local named = target.path or target.tests and target.tests[1]:match('^[^:]*')
  local extension = named and named:match('%.(%w+)$')
  local is_single = target.tests or target.last_failed
  if extension == 'py' or is_single and pytest.used_in(root) then -- it also knows what failed in a terminal
    return 'pytest'
  elseif neotest.client() then
    return 'neotest'
  elseif vim.list_contains(SCRIPTS, extension) then
    return 'npm:test'
  elseif target.path and extension then
    local text = 'path: no runner for .%s files is known; give runner: neotest, npm:<script> or make:<target>'
    return nil, errors.new('not_found', text:format(extension))
  elseif pytest.used_in(root) then
    return 'pytest'
  end
  local other = scripts.test_runner(root)
  if other then
    return other
  end
  local text = 'no test runner was found: no pytest, no script "test" in package.json, no make target "test"'
  return nil, errors.new('not_found', text .. '; give runner')
end

--- Returns the plan for a runner.
---@param target mcp-tools.runner.Target
---@param runner string
---@param root string
---@return mcp-tools.runner.Plan?
---@return mcp-tools.Error? err
local function by(target, runner, root)
  local kind, name = runner:match('^(%w+):?(.*)$')
  local planned, err
  if runner == 'neotest' then
    if not neotest.client() then
      return nil, errors.new('not_found', 'runner: neotest is not set up in this editor')
    end
    return { runner = runner, target = target }
  elseif runner == 'pytest' then
    planned, err = by_pytest(target, root)
  elseif kind == 'npm' then
    planned, err = by_script(target, root, name ~= '' and name or 'test')
  elseif kind == 'make' then
    planned, err = by_make(target, root, name ~= '' and name or 'test')
  else
    err = errors.new('validation_error', 'runner: one of neotest, pytest, npm:<script>, make:<target>')
  end
  return planned and { runner = runner, command = planned, target = target }, err
end

--- Returns the plan for a call's arguments.
---@param args { path: string?, bufnr: integer?, line: integer?, at_cursor: boolean?, tests: string[]?,
---  last_failed: boolean?, runner: string?, args: string[]? }
---@param root string
---@return mcp-tools.runner.Plan?
---@return mcp-tools.Error? err
function M.of(args, root)
  root = paths.real_root(root)
  local target, err = target_of(args, root)
  if not target then
    return nil, err
  end
  local runner = args.runner
  if not runner then
    runner, err = choose(target, root)
  end
  if not runner then
    return nil, err
  end
  return by(target, runner, root)
end

--- Describes the plan for the approval question.
---@param args table
---@param root string
---@return string?
---@return mcp-tools.Error? err
function M.preview(args, root)
  local plan, err = M.of(args, root)
  if not plan then
    return nil, err
  elseif plan.command then
    return command.preview(plan.command)
  end
  local target = plan.target
  local tests = target.tests and table.concat(target.tests, '\n') or target.last_failed and 'tests that failed last'
  local where = target.path and (target.line and '%s:%d' or '%s'):format(target.path, target.line) or root
  return ('neotest, whose adapter builds the command:\n%s in %s'):format(tests or 'tests', where)
end

return M

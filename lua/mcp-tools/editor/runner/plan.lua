--- Decides which tests run and with which command, without running anything.
---
--- Commands that a file of the project defines (scripts, make targets) only run if the user trusts that file.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local command = require('mcp-tools.editor.shell.command')
local errors = require('mcp-tools.errors')
local neotest = require('mcp-tools.editor.runner.neotest')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')
local pytest = require('mcp-tools.editor.runner.pytest')
local read_sync = require('mcp-tools.files.read_sync')
local scripts = require('mcp-tools.editor.runner.scripts')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum size of a file that is searched for tests, in bytes.
local MAX_FILE = 2 * 1024 * 1024

---@class mcp-tools.runner.Target
---@field scope 'nearest'|'file'|'all'
---@field path string? resolved
---@field bufnr integer?
---@field line integer?
---@field tests string[]? ids
---@field extra string[]

---@class mcp-tools.runner.Plan
---@field runner string
---@field command mcp-tools.shell.Command? nil: neotest builds the command
---@field target mcp-tools.runner.Target

--- Returns why an id cannot be passed to a runner. Approval does not check ids, so they must be in the project.
---@param test string
---@param root string resolved
---@return mcp-tools.Error?
local function id_refusal(test, root)
  if test:find('^[-@]') then -- `@file` reads options from a file
    return errors.new('validation_error', ('tests: %s is an option, not a test'):format(test))
  end
  local file = test:match('^(.-)::') or test
  local path, bad = paths.resolve(file:sub(1, 1) == '/' and file or root .. '/' .. file)
  if bad or not paths.inside(path, root) then
    return errors.new('access_denied', ('tests: %s is outside the project; give path'):format(utf8.cut(test, 200)))
  end
end

---@param args table
---@param root string resolved
---@return mcp-tools.runner.Target?
---@return mcp-tools.Error?
local function target_of(args, root)
  local target = { tests = args.tests, extra = args.args or {}, line = args.line }
  if args.path or args.bufnr then
    local found, err = buffers.find(args)
    if not found then
      return nil, err
    elseif not found.path or found.path == '' then
      return nil, errors.new('not_found', 'bufnr: the buffer has no file')
    end
    target.path, target.bufnr = paths.resolve(found.path), found.bufnr
  end
  target.scope = args.scope or (args.line and 'nearest') or (target.path and 'file') or 'all'
  if args.tests and (target.path or args.scope) then
    return nil, errors.new('validation_error', 'tests: cannot be combined with scope, path or bufnr')
  elseif target.scope == 'all' and target.path then
    return nil, errors.new('validation_error', 'scope: all runs every test; leave out path and bufnr')
  elseif target.scope ~= 'all' and not target.path then
    local text = ('scope: %s needs path or bufnr (bufnr 0 is the current buffer)'):format(target.scope)
    return nil, errors.new('validation_error', text)
  elseif target.path and not vim.uv.fs_stat(target.path) then
    local name = access.shown(target.path, project.root())
    return nil, errors.new('not_found', ('there is no file %s; unsaved files cannot be tested'):format(name))
  end
  for _, test in ipairs(args.tests or {}) do
    local refused = id_refusal(test, root)
    if refused then
      return nil, refused
    end
  end
  return target
end

--- Returns the cursor line if the buffer is in a window.
---@param bufnr integer?
---@return integer?
local function cursor_line(bufnr)
  local window = bufnr and vim.fn.bufwinid(bufnr) or -1
  return window > 0 and vim.api.nvim_win_get_cursor(window)[1] or nil
end

--- Returns the test at or above the target's line.
---@param target mcp-tools.runner.Target
---@return string? name
---@return mcp-tools.Error? err
local function nearest(target)
  local line = target.line or cursor_line(target.bufnr)
  if not line then
    return nil, errors.new('validation_error', 'line: required, because the file is in no window')
  end
  local lines
  if target.bufnr then
    lines = vim.api.nvim_buf_get_lines(target.bufnr, 0, -1, false)
  else
    lines = vim.split(read_sync(target.path, MAX_FILE) or '', '\n', { plain = true })
  end
  local name
  for _, test in ipairs(pytest.tests(lines)) do
    name = test.line <= line and test.name or name
  end
  return name, not name and errors.new('not_found', ('line: no test begins at or above line %d'):format(line)) or nil
end

--- Returns a path as an argument that cannot be mistaken for an option.
---@param path string
---@param directory string
---@return string
local function argument_of(path, directory)
  directory = paths.real_root(directory)
  local relative = vim.startswith(path, directory .. '/') and path:sub(#directory + 2) or path
  return relative:find('^[-@]') and './' .. relative or relative
end

---@param target mcp-tools.runner.Target
---@param root string
---@return mcp-tools.shell.Command?
---@return mcp-tools.Error?
local function by_pytest(target, root)
  local tests = target.tests or {}
  if target.path then
    tests = { argument_of(target.path, root) }
  end
  if target.scope == 'nearest' then
    local name, err = nearest(target)
    if not name then
      return nil, err
    end
    tests = { tests[1] .. '::' .. name }
  end
  local argv, env = pytest.command(root, tests, target.extra)
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
  elseif target.tests then
    return nil, errors.new('validation_error', 'tests: only pytest and neotest take tests; give path or args')
  elseif target.scope == 'nearest' then
    local text = 'scope: a script cannot run a single test; give scope=file, and args that select the test'
    return nil, errors.new('validation_error', text)
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
  if target.path or target.tests then
    return nil, errors.new('validation_error', 'runner: make only runs whole targets; leave out path, bufnr and tests')
  end
  return scripts.make(root, name, target.extra)
end

--- File extensions of JavaScript and TypeScript.
local IS_SCRIPT = {}
for extension in ('js mjs cjs jsx ts mts cts tsx'):gmatch('%S+') do
  IS_SCRIPT[extension] = true
end

--- Chooses a runner if the call does not name one.
---@param target mcp-tools.runner.Target
---@param root string
---@return string? runner
---@return mcp-tools.Error? err
local function choose(target, root)
  local named = target.path or target.tests and target.tests[1]:match('^[^:]*')
  local extension = named and named:match('%.(%w+)$')
  if extension == 'py' then
    return 'pytest'
  elseif neotest.client() then
    return 'neotest'
  elseif target.tests then
    return 'pytest'
  elseif IS_SCRIPT[extension] then
    return 'npm:test'
  elseif target.path and extension then
    local text = 'path: no runner for .%s files is known; give runner (runner_discover lists them)'
    return nil, errors.new('not_found', text:format(extension))
  elseif pytest.used_in(root) then
    return 'pytest'
  end
  local other = scripts.runners(root)[1]
  if other then
    return other.id
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
---@param args { scope: string?, path: string?, bufnr: integer?, line: integer?, tests: string[]?, runner: string?,
---  args: string[]? }
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
  local what = target.tests and table.concat(target.tests, '\n') or target.path or 'all tests of ' .. root
  return ('neotest, whose adapter builds the command:\n%s of %s'):format(target.scope, what)
end

return M

--- Lists tests and the runners of the project.

local access = require('mcp-tools.privacy.access')
local errors = require('mcp-tools.errors')
local file_names = require('mcp-tools.editor.search.names')
local neotest = require('mcp-tools.editor.runner.neotest')
local paths = require('mcp-tools.files.paths')
local pytest = require('mcp-tools.editor.runner.pytest')
local read = require('mcp-tools.privacy.read')
local redact = require('mcp-tools.privacy.redact')
local scripts = require('mcp-tools.editor.runner.scripts')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum number of listed tests; more are counted per file.
local MAX_TESTS = 400
--- Maximum size of a file that is searched for tests, in bytes.
local MAX_FILE = 1024 * 1024
--- Patterns for names of test files, except Python's.
local TEST_NAMES = {
  '%.test%.[cm]?[jt]sx?$',
  '%.spec%.[cm]?[jt]sx?$',
  '__tests__/.*%.[cm]?[jt]sx?$',
  '_spec%.lua$',
  '_test%.go$',
  '_test%.rb$',
  '_spec%.rb$',
}
--- Directories with code of dependencies; without a git repository they are not ignored.
local DEPENDENCIES = { '/node_modules/', '/%.?venv/', '/target/' }
--- Maximum length of the command of a script, in bytes.
local MAX_COMMAND = 500

---@param root string
---@return table[]
local function runners(root)
  local list = {}
  if neotest.client() then
    table.insert(list, { id = 'neotest' })
  end
  local why = pytest.used_in(root)
  if why then
    table.insert(list, { id = 'pytest', from = why })
  end
  for _, each in ipairs(scripts.runners(root)) do
    each.command = each.command and redact.line(utf8.cut(each.command, MAX_COMMAND)) -- it may contain a secret
    table.insert(list, each)
  end
  return list
end

---@param name string below a directory
---@return boolean
local function is_test_file(name)
  name = '/' .. name
  local function fits(pattern)
    return name:find(pattern) ~= nil
  end
  return (pytest.is_test_file(vim.fs.basename(name)) or vim.iter(TEST_NAMES):any(fits))
    and not vim.iter(DEPENDENCIES):any(fits)
end

--- Returns the files whose names are those of tests.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param path string resolved file or directory
---@return string[] paths absolute, sorted
---@return boolean is_cut there may be more
local function test_files(ctx, path)
  local stat = vim.uv.fs_stat(path)
  if stat and stat.type == 'file' then
    return { path }, false
  end
  local names, _, is_cut = file_names.list(ctx, path, {})
  local list, pause = {}, time_slice.of(ctx)
  for _, name in ipairs(names) do
    if is_test_file(name) then
      table.insert(list, path .. '/' .. name)
    end
    pause()
  end
  return list, is_cut
end

--- Returns the tests of a Python file.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param path string absolute
---@return { id: string, line: integer }[]? tests nil for other languages and withheld files
---@return string? withheld reason
local function tests_of(ctx, path)
  local resolved, why = access.path(path, ctx.root)
  if not resolved then
    return nil, why
  end
  local text = path:find('%.py$') and ctx:await(function(done)
    read.read(resolved, MAX_FILE, done)
  end)
  if not text then
    return nil
  end
  local tests, shown = {}, utf8.repair(access.shown(resolved, ctx.root))
  for _, test in ipairs(pytest.tests(vim.split(text, '\n', { plain = true }), time_slice.of(ctx))) do
    if not test.is_group then
      table.insert(tests, { id = ('%s::%s'):format(shown, utf8.repair(test.name)), line = test.line })
    end
  end
  return tests
end

return {
  name = 'runner_discover',
  title = 'Discover tests',
  description = 'Lists test runners (ids for runner of runner_run) and tests found in the text of files: id and line in'
    .. ' Python, other files by name. Runs nothing. Too many tests are returned as counts per file; then give path.',
  args = {
    path = { type = 'string', description = 'Only this file or directory' },
    limit = { type = 'integer', description = 'Maximum number of files', default = 100, minimum = 1, maximum = 1000 },
    offset = { type = 'integer', description = 'Number of files to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local root = paths.real_root(ctx.root)
    local path, nowhere = root, not args.path and access.no_project(root) ---@type string?, string|false|nil
    if nowhere then
      return nil, errors.new('access_denied', nowhere)
    elseif args.path then
      local why
      path, why = access.path((paths.resolve(args.path)), ctx.root)
      if not path then
        return nil, errors.new('access_denied', ('path: it cannot be looked at, it is %s'):format(why))
      elseif not vim.uv.fs_stat(path) then
        return nil, errors.new('not_found', ('path: there is no file or folder %s'):format(path))
      end
    end
    redact.refresh(time_slice.of(ctx))
    local files, is_cut = test_files(ctx, path)
    local list, total = {}, 0
    for i = args.offset + 1, math.min(#files, args.offset + args.limit) do
      local tests, withheld = tests_of(ctx, files[i])
      local entry = { path = utf8.repair(access.shown(files[i], root)), withheld = withheld }
      if tests then
        entry.tests, entry.count = tests, #tests
        total = total + #tests
      end
      table.insert(list, entry)
    end
    local is_much = total > MAX_TESTS
    for _, entry in ipairs(list) do
      entry.tests = not is_much and entry.tests or nil
      entry.count = (is_much or not entry.tests) and entry.count or nil
    end
    local last = args.offset + #list
    return {
      runners = runners(root),
      files = list,
      total_files = #files,
      shown = is_much and 'counts per file' or nil,
      narrow = is_much and 'give path, or a smaller limit' or nil,
      cut = is_cut and 'there are more files than were looked at; give path' or nil,
      next_offset = last < #files and last or nil,
    }
  end,
}

--- Tests, and what can run them.

local access = require('mcp-tools.files.access')
local discover = require('mcp-tools.editor.runner.discover')
local errors = require('mcp-tools.errors')
local neotest = require('mcp-tools.editor.runner.neotest')
local paths = require('mcp-tools.files.paths')
local pytest = require('mcp-tools.editor.runner.pytest')
local redact = require('mcp-tools.files.redact')
local scripts = require('mcp-tools.editor.runner.scripts')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

--- More tests come as counts per file.
local MAX_TESTS = 400
--- Bytes of a script that are shown.
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
    each.command = each.command and redact.line(utf8.cut(each.command, MAX_COMMAND)) -- it may set what it needs
    table.insert(list, each)
  end
  return list
end

return {
  name = 'runner_discover',
  description = 'What can run tests here (ids for runner of runner_run), and the tests by the text of their files: id'
    .. ' and line in Python, JavaScript and TypeScript, other files by name. Nothing is run. Too many come as counts'
    .. ' per file; then give path.',
  args = {
    path = { type = 'string', description = 'Only this file or folder' },
    limit = { type = 'integer', description = 'At most so many files', default = 100, minimum = 1, maximum = 1000 },
    offset = { type = 'integer', description = 'Files to pass over', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local root = paths.real_root(ctx.root)
    local path, nowhere = root, not args.path and access.no_project(root) ---@type string?, string|false|nil
    if nowhere then
      return ctx(nil, errors.new('access_denied', nowhere))
    elseif args.path then
      local why
      path, why = access.path((paths.resolve(args.path)), ctx.root)
      if not path then
        return ctx(nil, errors.new('access_denied', ('path: it cannot be looked at, it is %s'):format(why)))
      elseif not vim.uv.fs_stat(path) then
        return ctx(nil, errors.new('not_found', ('path: there is no file or folder %s'):format(path)))
      end
    end
    redact.refresh(time_slice.of(ctx))
    local files, is_cut = discover.files(ctx, path)
    local list, total = {}, 0
    for i = args.offset + 1, math.min(#files, args.offset + args.limit) do
      local tests, withheld = discover.tests(ctx, files[i])
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

--- Scripts of package.json and targets of a Makefile, as commands; only of files that the person trusts.
---
--- Receives: folders of the project, names.
--- Sends: what could run tests; commands, or why they must not be run.
--- Does not know about: who asks.

local access = require('mcp-tools.files.access')
local command = require('mcp-tools.editor.shell.command')
local errors = require('mcp-tools.errors')
local read_now = require('mcp-tools.files.read_now')
local targets = require('mcp-tools.editor.runner.targets')
local trusted = require('mcp-tools.files.trusted')

local M = {}

local MAX_FILE = 1024 * 1024
--- Maximum number of scripts, and of targets, that are named.
local MAX_RUNNERS = 50

--- Lock files → the program that runs scripts, and what stands between a script and its arguments.
local MANAGERS = {
  { 'pnpm-lock.yaml', { 'pnpm', 'run' } },
  { 'yarn.lock', { 'yarn', 'run' } },
  { 'bun.lock', { 'bun', 'run' } },
  { 'bun.lockb', { 'bun', 'run' } },
  { 'package-lock.json', { 'npm', 'run' }, '--' },
}

--- Programs in a script → how they say what became of each test, and how one test is named.
local REPORTERS = {
  { 'node .*%-%-test', '--test-reporter=tap', '--test-name-pattern=%s' },
  { 'vitest', '--reporter=tap-flat', '--testNamePattern=%s' },
  { 'mocha', '--reporter=tap', '--grep=%s' },
  { 'jest', nil, '--testNamePattern=%s' },
}

--- What npm itself writes into a new package.json.
local NO_TESTS = 'no test specified'

---@class mcp-tools.runner.Package
---@field folder string
---@field path string
---@field scripts table<string, string>

--- The text of a file of the project, wherever its links lead: else only of one that the person has trusted.
---@param path string
---@param root string
---@return string?
local function text_of(path, root)
  if not access.path(path, root) and not trusted.read(path) then
    return nil
  end
  return (read_now(path, MAX_FILE))
end

--- The package that a file is of: the nearest package.json up to the root.
---@param from string resolved file or folder
---@param root string
---@return mcp-tools.runner.Package?
---@return mcp-tools.Error?
function M.package(from, root)
  local stat = vim.uv.fs_stat(from)
  local folder = stat and stat.type == 'directory' and from or vim.fs.dirname(from)
  while vim.startswith(folder .. '/', root .. '/') do
    local path = folder .. '/package.json'
    local text = text_of(path, root)
    if text then
      local scripts = targets.scripts(text)
      if not scripts then
        return nil, errors.new('tool_error', ('%s cannot be read: it is not JSON'):format(path))
      end
      return { folder = folder, path = path, scripts = scripts }
    end
    folder = vim.fs.dirname(folder)
  end
  return nil, errors.new('not_found', 'runner: there is no package.json up to the root of the project')
end

--- May what this file names be run?
---@param path string
---@return mcp-tools.Error? err
local function distrusted(path)
  local text, why = trusted.read(path)
  if not text then
    return errors.new('access_denied', ('%s names what is to be run, and %s'):format(path, why))
  end
end

--- A text that stands for itself in a regular expression.
---@param text string
---@return string
local function literal(text)
  return (text:gsub('[%^%$%.%*%+%?%(%)%[%]{}|\\]', '\\%0'))
end

--- A script with what it is to test.
---@param package mcp-tools.runner.Package
---@param name string of the script
---@param file string? relative to the package
---@param test string? name of one test
---@param extra string[]
---@return mcp-tools.shell.Command?
---@return mcp-tools.Error?
function M.command(package, name, file, test, extra)
  local script = package.scripts[name]
  if not script then
    local known = vim.tbl_keys(package.scripts)
    table.sort(known)
    local text = 'runner: %s has no script "%s" (there are: %s)'
    local shown = table.concat(known, ', ', 1, math.min(#known, MAX_RUNNERS))
    return nil,
      errors.new('not_found', text:format(package.path, name, shown .. (#known > MAX_RUNNERS and ', …' or '')))
  end
  local err = distrusted(package.path)
  if err then
    return nil, err
  end
  local argv, separator = { 'npm', 'run' }, '--'
  for _, manager in ipairs(MANAGERS) do
    if vim.uv.fs_stat(package.folder .. '/' .. manager[1]) then
      argv, separator = vim.list_slice(manager[2]), manager[3]
      break
    end
  end
  table.insert(argv, name)
  local options, is_simple = {}, not script:find('[;&|]')
  for _, reporter in ipairs(is_simple and REPORTERS or {}) do
    if script:find(reporter[1]) then
      if reporter[2] and not script:find('reporter', 1, true) then
        table.insert(options, reporter[2])
      end
      if test then
        table.insert(options, (reporter[3]:gsub('%%s', (literal(test):gsub('%%', '%%%%')))))
        test = nil
      end
      break
    end
  end
  if test then
    local text = 'scope: it is not known how the script "%s" runs one test; give scope=file'
    return nil, errors.new('validation_error', text:format(script))
  end
  vim.list_extend(vim.list_extend(options, extra), { file })
  if #options > 0 then
    vim.list_extend(vim.list_extend(argv, { separator }), options)
  end
  return { argv = argv, cwd = package.folder, shown = command.line(argv) }
end

--- The Makefile of the project.
---@param root string
---@return string? path
---@return string? text
local function makefile(root)
  for _, name in ipairs(targets.MAKEFILES) do
    local text = text_of(root .. '/' .. name, root)
    if text then
      return root .. '/' .. name, text
    end
  end
end

--- Options that have make read another file than the one that the person trusts, abbreviated too.
local ELSEWHERE = { '^%-%a*[fCIE]', '^%-%-f', '^%-%-mak', '^%-%-dir', '^%-%-inc', '^%-%-ev', '^MAKEFILES=' }

---@param extra string[]
---@return mcp-tools.Error?
local function strays(extra)
  for _, argument in ipairs(extra) do
    for _, pattern in ipairs(ELSEWHERE) do
      if argument:find(pattern) then
        local text = 'args: %s would have make read something else than the Makefile of the project'
        return errors.new('validation_error', text:format(argument))
      end
    end
  end
end

--- A target of make.
---@param root string
---@param name string
---@param extra string[]
---@return mcp-tools.shell.Command?
---@return mcp-tools.Error?
function M.make(root, name, extra)
  local path, text = makefile(root)
  if not path then
    return nil, errors.new('not_found', 'runner: there is no Makefile in the root of the project')
  end
  local known = false
  for _, target in
    ipairs(targets.make(text --[[@as string]]))
  do
    known = known or target.name == name
  end
  if not known then
    return nil, errors.new('not_found', ('runner: %s has no target "%s"; workflow_list names them'):format(path, name))
  end
  local err = strays(extra) or distrusted(path)
  if err then
    return nil, err
  end
  local argv = vim.list_extend({ 'make', '--no-print-directory', name }, extra)
  return { argv = argv, cwd = root, shown = command.line(argv) }
end

---@class mcp-tools.runner.Runner
---@field id string
---@field from string the file that names it
---@field command string?
---@field not_trusted boolean?

--- Scripts and targets of the root that are called tests, the likeliest first.
---@param root string
---@return mcp-tools.runner.Runner[]
function M.runners(root)
  local list = {}
  local package = M.package(root, root)
  local found = package and vim.tbl_keys(package.scripts) or {}
  table.sort(found)
  -- The whole file is read and hashed for it.
  local not_trusted = package and trusted.read(package.path) == nil or nil
  for _, name in ipairs(found) do
    local script = package.scripts[name]
    if #list >= MAX_RUNNERS then
      break
    elseif (name == 'test' or name:find('^test[:-]')) and not script:find(NO_TESTS, 1, true) then
      table.insert(list, {
        id = 'npm:' .. name,
        from = 'package.json',
        command = script,
        not_trusted = not_trusted,
      })
    end
  end
  local path, text = makefile(root)
  not_trusted = path and trusted.read(path) == nil or nil
  for _, target in
    ipairs(path and targets.make(text --[[@as string]]) or {})
  do
    if #list >= 2 * MAX_RUNNERS then
      break
    elseif target.name:find('^tests?$') or target.name:find('^check$') or target.name:find('^test%-') then
      table.insert(list, {
        id = 'make:' .. target.name,
        from = vim.fs.basename(path),
        command = target.description,
        not_trusted = not_trusted,
      })
    end
  end
  return list
end

return M

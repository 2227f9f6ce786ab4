--- Scripts of package.json and targets of a Makefile. Only files that the user trusts provide commands.

local access = require('mcp-tools.privacy.access')
local command = require('mcp-tools.editor.shell.command')
local errors = require('mcp-tools.errors')
local read_sync = require('mcp-tools.util.read_sync')
local trim = require('mcp-tools.util.trim')
local trusted = require('mcp-tools.privacy.trusted')

local M = {}

local MAX_FILE = 1024 * 1024
--- Maximum number of scripts in an error.
local MAX_SHOWN = 50

--- Lock files and their package managers; default: npm.
local MANAGERS = {
  { 'pnpm-lock.yaml', 'pnpm' },
  { 'yarn.lock', 'yarn' },
  { 'bun.lock', 'bun' },
  { 'bun.lockb', 'bun' },
}

--- Part of the script "test" that npm writes into a new package.json.
local NO_TESTS = 'no test specified'

--- In make's order of precedence.
M.MAKEFILES = { 'GNUmakefile', 'makefile', 'Makefile' }

--- Maximum number of targets of a Makefile.
local MAX_TARGETS = 500

--- Returns the description of a target after `##`.
---@param rest string
---@return string?
local function description_of(rest)
  local text = rest:match('##(.*)$')
  return text and trim(text)
end

--- Returns targets in file order, without patterns, paths and names with variables.
---@param text string text of a Makefile
---@return { name: string, description: string? }[]
function M.targets(text)
  local list, seen = {}, {}
  for line in vim.gsplit(text, '\n', { plain = true }) do
    local names, rest = line:match('^([%w_][%w_%-. ]*)::?(.*)$')
    if names and not rest:find('^=') then
      for name in names:gmatch('%S+') do
        if not seen[name] and #list < MAX_TARGETS then
          seen[name] = true
          table.insert(list, { name = name, description = description_of(rest) })
        end
      end
    end
  end
  return list
end

--- Returns scripts by name.
---@param text string text of a package.json
---@return table<string, string>? scripts nil: not valid JSON
function M.scripts(text)
  local ok, value = pcall(vim.json.decode, text, { luanil = { object = true, array = true } })
  if not ok or type(value) ~= 'table' then
    return nil
  end
  local scripts = {}
  for name, script in pairs(type(value.scripts) == 'table' and value.scripts or {}) do
    if type(name) == 'string' and type(script) == 'string' then
      scripts[name] = script
    end
  end
  return scripts
end

---@class mcp-tools.runner.Package
---@field directory string
---@field path string
---@field scripts table<string, string>

--- Returns the text of a readable file of the project or of a trusted file.
---@param path string
---@param root string
---@return string?
local function text_of(path, root)
  if not access.path(path, root) and not trusted.read(path) then
    return nil
  end
  return (read_sync(path, MAX_FILE))
end

--- Returns the package of a file: the nearest package.json up to the root.
---@param from string resolved file or directory
---@param root string
---@return mcp-tools.runner.Package?
---@return mcp-tools.Error?
function M.package(from, root)
  local stat = vim.uv.fs_stat(from)
  local directory = stat and stat.type == 'directory' and from or vim.fs.dirname(from)
  while vim.startswith(directory .. '/', root .. '/') do
    local path = directory .. '/package.json'
    local text = text_of(path, root)
    if text then
      local scripts = M.scripts(text)
      if not scripts then
        return nil, errors.new('tool_error', ('%s is not valid JSON'):format(path))
      end
      return { directory = directory, path = path, scripts = scripts }
    end
    directory = vim.fs.dirname(directory)
  end
  return nil, errors.new('not_found', 'runner: there is no package.json between the file and the project root')
end

--- Returns an error if the user does not trust a file.
---@param path string
---@return mcp-tools.Error? err
local function distrusted(path)
  local text, why = trusted.read(path)
  if not text then
    return errors.new('access_denied', ('cannot run commands of %s: %s'):format(path, why))
  end
end

--- Returns the command that runs a script.
---@param package mcp-tools.runner.Package
---@param name string name of the script
---@param file string? relative to the package
---@param extra string[]
---@return mcp-tools.shell.Command?
---@return mcp-tools.Error?
function M.command(package, name, file, extra)
  if not package.scripts[name] then
    local known = vim.tbl_keys(package.scripts)
    table.sort(known)
    local text = 'runner: %s has no script "%s" (scripts: %s)'
    local shown = table.concat(known, ', ', 1, math.min(#known, MAX_SHOWN))
    return nil,
      errors.new('not_found', text:format(package.path, name, shown .. (#known > MAX_SHOWN and ', …' or '')))
  end
  local err = distrusted(package.path)
  if err then
    return nil, err
  end
  local manager = vim.iter(MANAGERS):find(function(each)
    return vim.uv.fs_stat(package.directory .. '/' .. each[1]) ~= nil
  end)
  local argv = { manager and manager[2] or 'npm', 'run', name }
  local options = vim.list_extend(vim.list_slice(extra), { file })
  if not manager and #options > 0 then
    table.insert(argv, '--')
  end
  vim.list_extend(argv, options)
  return { argv = argv, cwd = package.directory, shown = command.line(argv) }
end

--- Returns the project's Makefile.
---@param root string
---@return string? path
---@return string? text
local function makefile(root)
  for _, name in ipairs(M.MAKEFILES) do
    local text = text_of(root .. '/' .. name, root)
    if text then
      return root .. '/' .. name, text
    end
  end
end

--- Options, also abbreviated, that make `make` read other files than the trusted Makefile.
local FILE_OPTIONS = { '^%-%a*[fCIE]', '^%-%-f', '^%-%-mak', '^%-%-dir', '^%-%-inc', '^%-%-ev', '^MAKEFILES=' }

---@param extra string[]
---@return mcp-tools.Error?
local function option_refusal(extra)
  for _, argument in ipairs(extra) do
    for _, pattern in ipairs(FILE_OPTIONS) do
      if argument:find(pattern) then
        local text = 'args: %s is not allowed: make would read other files than the project Makefile'
        return errors.new('validation_error', text:format(argument))
      end
    end
  end
end

--- Returns the command that runs a make target.
---@param root string
---@param name string
---@param extra string[]
---@return mcp-tools.shell.Command?
---@return mcp-tools.Error?
function M.make(root, name, extra)
  local path, text = makefile(root)
  if not path then
    return nil, errors.new('not_found', 'runner: there is no Makefile in the project root')
  end
  local is_known = vim.iter(M.targets(text --[[@as string]])):any(function(target)
    return target.name == name
  end)
  if not is_known then
    return nil, errors.new('not_found', ('runner: %s has no target "%s"; workflow_list lists them'):format(path, name))
  end
  local err = option_refusal(extra) or distrusted(path)
  if err then
    return nil, err
  end
  local argv = vim.list_extend({ 'make', '--no-print-directory', name }, extra)
  return { argv = argv, cwd = root, shown = command.line(argv) }
end

--- Returns the script or target of the root that is named like tests.
---@param root string
---@return string? runner
function M.test_runner(root)
  local package = M.package(root, root)
  local script = package and package.scripts.test
  if script and not script:find(NO_TESTS, 1, true) then
    return 'npm:test'
  end
  local _, text = makefile(root)
  local target = vim.iter(M.targets(text or '')):find(function(each)
    return each.name:find('^tests?$') or each.name == 'check'
  end)
  return target and 'make:' .. target.name
end

return M

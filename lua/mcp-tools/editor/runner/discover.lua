--- Tests of a project, found by the names of files and by their text; nothing is run.
---
--- Receives: the root of the project, a file or folder.
--- Sends: files with the tests in them.
--- Does not know about: runners, arguments of tools.

local access = require('mcp-tools.files.access')
local git = require('mcp-tools.editor.git')
local names = require('mcp-tools.editor.runner.names')
local pytest = require('mcp-tools.editor.runner.pytest')
local read = require('mcp-tools.files.read')
local sort = require('mcp-tools.util.sort')
local strings = require('mcp-tools.util.strings')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

local MAX_FILE = 1024 * 1024
--- Without git folders are walked; so many entries, and not these.
local MAX_ENTRIES = 50000
local SKIPPED =
  { ['.git'] = true, node_modules = true, ['.venv'] = true, venv = true, __pycache__ = true, target = true }

local OTHER_NAMES =
  { '%.test%.[cm]?[jt]sx?$', '%.spec%.[cm]?[jt]sx?$', '_spec%.lua$', '_test%.go$', '_test%.rb$', '_spec%.rb$' }

--- Is it called as files with tests are?
---@param path string
---@return boolean
function M.is_test_file(path)
  local name = path:match('^.*/(.*)$') or path
  if pytest.is_test_file(name) then
    return true
  end
  for _, pattern in ipairs(OTHER_NAMES) do
    if name:find(pattern) then
      return true
    end
  end
  return path:find('__tests__/', 1, true) ~= nil and names.language(path) ~= nil
end

--- Entries of a folder.
---@param ctx mcp-tools.Ctx
---@param folder string
---@return { name: string, type: string }[]
function M.entries(ctx, folder)
  return ctx:await(function(done)
    vim.uv.fs_scandir(folder, function(_, handle)
      local list = {}
      while handle do
        local name, kind = vim.uv.fs_scandir_next(handle)
        if not name then
          break
        end
        table.insert(list, { name = name, type = kind })
      end
      vim.schedule(function()
        done(list)
      end)
    end)
  end)
end

---@param ctx mcp-tools.Ctx
---@param folder string resolved
---@param pause fun()
---@return string[] paths
---@return boolean cut
local function walk(ctx, folder, pause)
  local list, todo, seen = {}, { folder }, 0
  while #todo > 0 and seen < MAX_ENTRIES do
    local here = table.remove(todo)
    for _, entry in ipairs(M.entries(ctx, here)) do
      seen = seen + 1
      if entry.type == 'directory' and not SKIPPED[entry.name] then
        table.insert(todo, here .. '/' .. entry.name)
      elseif entry.type == 'file' then
        table.insert(list, here .. '/' .. entry.name)
      end
      pause()
    end
  end
  return list, #todo > 0
end

--- Files with tests, by their names, sorted. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param path string resolved file or folder
---@return string[] paths absolute
---@return boolean cut there may be more
function M.files(ctx, path)
  local stat = vim.uv.fs_stat(path)
  if stat and stat.type == 'file' then
    return { path }, false
  end
  local pause, list = time_slice.of(ctx), {}
  local args = { 'ls-files', '-z', '--cached', '--others', '--exclude-standard', '--deduplicate', '--', '.' }
  local done = git.await(args, { ctx = ctx, cwd = path, limit = 8 * 1024 * 1024 })
  local function take(name)
    if M.is_test_file(name) then
      table.insert(list, name)
    end
    pause()
  end
  local is_cut = done.cut
  if done.ok then
    for name in strings.each_ended(done.stdout, '\0') do
      take(path .. '/' .. name)
    end
  else
    local names_found
    names_found, is_cut = walk(ctx, path, pause)
    for _, name in ipairs(names_found) do
      take(name)
    end
  end
  list = sort(list, function(a, b)
    return a < b
  end, pause)
  return list, is_cut
end

--- Tests of a file; nil when nothing is known of its language, or it must not be read. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param path string absolute
---@return { id: string, line: integer }[]? tests
---@return string? why it is withheld
function M.tests(ctx, path)
  local resolved, why = access.path(path, ctx.root)
  if not resolved then
    return nil, why
  end
  local language = names.language(path)
  local text = language and ctx:await(function(done)
    read.read(resolved, MAX_FILE, done)
  end)
  if not text then
    return nil
  end
  local tests, shown = {}, utf8.repair(access.shown(resolved, ctx.root))
  local is_python = path:find('%.py$') ~= nil
  for _, test in ipairs(names.all(vim.split(text, '\n', { plain = true }), language, time_slice.of(ctx))) do
    if not test.group then
      local name = utf8.repair(test.name)
      table.insert(tests, { id = is_python and shown .. '::' .. name or name, line = test.line })
    end
  end
  return tests
end

return M

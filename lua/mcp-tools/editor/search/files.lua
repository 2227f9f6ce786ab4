--- Files of a search: the names of the files in a directory, without those that git ignores; the directory or file to
--- search, globs, and access to each file.
---
--- Names come from git, or else from ripgrep without configuration, or else from walking the directory tree, where only
--- `.git` is ignored. Repositories inside the directory are left out, whatever their name.

local access = require('mcp-tools.privacy.access')
local errors = require('mcp-tools.errors')
local git = require('mcp-tools.editor.git')
local glob = require('mcp-tools.files.glob')
local paths = require('mcp-tools.files.paths')
local process = require('mcp-tools.editor.process')
local sensitive = require('mcp-tools.privacy.sensitive')
local sort = require('mcp-tools.util.sort')
local task = require('mcp-tools.util.task')
local time_slice = require('mcp-tools.util.time_slice')

local uv = vim.uv

local M = {}

-- Names ---------------------------------------------------------------------------------------------------------

--- Maximum size of all names, in bytes.
local MAX_BYTES = 64 * 1024 * 1024
local TIMEOUT = 30000
--- Maximum number of files found by walking.
local MAX_WALKED = 200000

---@param text string names, each with a NUL after it
---@param pause fun()
---@return string[]
local function names_of(text, pause)
  local list = {}
  for name in text:gmatch('[^%z]+') do
    list[#list + 1] = name
    pause()
  end
  return list
end

--- Sorts names by bytes and removes duplicates.
---@param list string[]
---@param pause fun()
---@return string[]
local function sorted(list, pause)
  local names, out = sort(list, function(a, b)
    return a < b
  end, pause), {}
  for i, name in ipairs(names) do
    if name ~= names[i - 1] then
      out[#out + 1] = name
    end
    pause()
  end
  return out
end

--- Lists files with git. Its index still has deleted files, which are removed here.
---@param ctx mcp-tools.Ctx
---@param directory string
---@param pause fun()
---@return string[]?
local function by_git(ctx, directory, pause)
  local opts = { ctx = ctx, cwd = directory, limit = MAX_BYTES, timeout = TIMEOUT }
  -- With a letter before each name: a deleted file is listed twice, once with "R".
  local done = git.await({ 'ls-files', '-z', '-t', '--cached', '--deleted', '--others', '--exclude-standard' }, opts)
  if not done.ok or done.cut then
    return nil
  end
  local deleted, list = {}, {}
  for _, entry in ipairs(names_of(done.stdout, pause)) do
    local name = entry:sub(3)
    if entry:sub(1, 1) == 'R' then
      deleted[name] = true
    else
      list[#list + 1] = name
    end
    pause()
  end
  if next(deleted) then
    list = vim.tbl_filter(function(name)
      return not deleted[name]
    end, list)
  end
  return list
end

---@param ctx mcp-tools.Ctx
---@param directory string
---@param pause fun()
---@return string[]?
local function by_rg(ctx, directory, pause)
  local done = process.await(
    { 'rg', '--no-config', '--files', '--null', '--hidden', '--glob=!.git', '--no-ignore-dot', '--', '.' },
    { ctx = ctx, cwd = directory, limit = MAX_BYTES, timeout = TIMEOUT, env = { PATH = process.search_path() } }
  )
  if done.cut or not (done.ok or done.quiet) then
    return nil
  end
  local list = names_of(done.stdout, pause)
  for i, name in ipairs(list) do
    list[i] = name:gsub('^%./', '')
  end
  return list
end

--- Iterates over the entries of a directory; links are not followed.
---@param ctx mcp-tools.Ctx
---@param directory string
---@return fun(): string?, string? next name and type
local function entries_of(ctx, directory)
  local handle = task.uv(ctx, uv.fs_scandir, directory)
  return function()
    if handle then
      return uv.fs_scandir_next(handle)
    end
  end
end

---@param ctx mcp-tools.Ctx
---@param directory string
---@param pause fun()
---@return string[] list
---@return boolean cut
local function by_walk(ctx, directory, pause)
  local list, todo = {}, { '' }
  while #todo > 0 do
    local below = table.remove(todo)
    for name, kind in entries_of(ctx, directory .. '/' .. below) do
      if kind == 'directory' then
        if name ~= '.git' and not sensitive.is_repository(directory .. '/' .. below .. name) then
          table.insert(todo, below .. name .. '/')
        end
      elseif #list >= MAX_WALKED then
        return sorted(list, pause), true
      else
        table.insert(list, below .. name)
      end
      pause()
    end
  end
  return sorted(list, pause), false
end

--- Removes files in repositories that are not called `.git`.
---@param list string[]
---@param directory string
---@param pause fun()
---@return string[]
local function without_repositories(list, directory, pause)
  local repositories = {}
  for _, name in ipairs(list) do
    local place = name:sub(-5) == '/HEAD' and name:sub(1, -6)
    if place and sensitive.is_repository(directory .. '/' .. place) then
      repositories[place] = true
    end
    pause()
  end
  if next(repositories) == nil then
    return list
  end
  local kept = {}
  for _, name in ipairs(list) do
    local is_kept = true
    for before in name:gmatch('()/') do
      is_kept = is_kept and not repositories[name:sub(1, before - 1)]
    end
    if is_kept then
      kept[#kept + 1] = name
    end
    pause()
  end
  return kept
end

--- Returns the names of the files. Call it in a coroutine.
---@param ctx mcp-tools.Ctx
---@param directory string resolved
---@param opts { ignored: boolean? } `ignored`: include files that git ignores
---@return string[] names relative to the directory, sorted by bytes
---@return 'git'|'rg'|'walk' source
---@return boolean cut there are more
function M.names(ctx, directory, opts)
  local pause = time_slice.of(ctx)
  if not opts.ignored then
    local list = by_git(ctx, directory, pause)
    if list then
      return without_repositories(sorted(list, pause), directory, pause), 'git', false
    end
    list = by_rg(ctx, directory, pause)
    if list then
      return without_repositories(sorted(list, pause), directory, pause), 'rg', false
    end
  end
  local list, cut = by_walk(ctx, directory, pause)
  return list, 'walk', cut
end

-- Places --------------------------------------------------------------------------------------------------------

--- Maximum number of globs, and of their bytes: matching takes time proportional to both lengths.
local MAX_GLOBS, MAX_GLOB_BYTES = 50, 2000

---@class mcp-tools.search.Place
---@field path string resolved
---@field is_directory boolean
---@field allowed boolean outside the project, and the user allowed it

--- Resolves a `path` argument; default: the project.
---@param ctx mcp-tools.Ctx
---@param path string?
---@return mcp-tools.search.Place?
---@return mcp-tools.Error? err
function M.place(ctx, path)
  local resolved, bad = paths.real_root(ctx.root), nil
  local nowhere = not path and access.no_project(resolved)
  if nowhere then
    return nil, errors.new('access_denied', nowhere)
  elseif path then
    resolved, bad = paths.resolve(path)
  end
  local stat = not bad and uv.fs_stat(resolved)
  if not stat then
    local shown = resolved and access.shown(resolved, ctx.root) or path
    return nil, errors.new('not_found', ('there is no file %s'):format(shown))
  elseif stat.type ~= 'file' and stat.type ~= 'directory' then
    return nil, errors.new('validation_error', ('path: %s is a %s'):format(path, stat.type))
  end
  local inside = paths.inside(resolved, ctx.root)
  if not inside and not ctx:covers(resolved) then
    local text = 'path: %s is outside the project; use a directory of the project'
    return nil, errors.new('access_denied', text:format(resolved))
  end
  return { path = resolved, is_directory = stat.type == 'directory', allowed = not inside }
end

--- Compiles globs to one function. Globs without `/` match names, others match relative paths; those that begin with
--- `!` exclude.
---@param globs string[]?
---@return (fun(relative: string): boolean)?
---@return mcp-tools.Error? err
function M.matcher(globs)
  if globs and #globs > MAX_GLOBS then
    return nil, errors.new('validation_error', ('globs: the maximum is %d'):format(MAX_GLOBS))
  elseif #table.concat(globs or {}) > MAX_GLOB_BYTES then
    return nil, errors.new('validation_error', ('globs: the maximum is %d bytes in total'):format(MAX_GLOB_BYTES))
  end
  local included, excluded = {}, {}
  for _, each in ipairs(globs or {}) do
    local out, pattern = each:match('^(!?)(.*)$')
    pattern = pattern:gsub('^%./', ''):gsub('^/', '')
    if not each:find('/', 1, true) then
      pattern = '**/' .. pattern
    elseif pattern:sub(-1) == '/' then
      pattern = pattern .. '**'
    end
    table.insert(out == '!' and excluded or included, glob.compile(pattern))
  end
  local function any(list, relative)
    for _, fits in ipairs(list) do
      if fits(relative) then
        return true
      end
    end
    return false
  end
  return function(relative)
    return (#included == 0 or any(included, relative)) and not any(excluded, relative)
  end
end

--- Returns a function that checks access to paths, and the list of those that it withholds.
---@param ctx mcp-tools.Ctx
---@param place mcp-tools.search.Place
---@return fun(path: string): string? resolved path if clients may read it
---@return { path: string, why: string }[] withheld
function M.access_filter(ctx, place)
  local withheld, readable = {}, access.files(place.allowed and place.path or ctx.root)
  return function(path)
    local resolved, why = readable(path)
    if resolved or why ~= 'sensitive' and ctx:covers(path) then
      return resolved or path
    end
    table.insert(withheld, { path = access.shown(path, ctx.root), why = why })
  end,
    withheld
end

--- Lists the files of a place that match globs. Access to them was not checked.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param place mcp-tools.search.Place
---@param globs? string[]
---@return string[]? sorted absolute paths
---@return mcp-tools.Error|boolean? err_or_cut
function M.list(ctx, place, globs)
  if not place.is_directory then
    return { place.path }
  end
  local matches, err = M.matcher(globs)
  if not matches then
    return nil, err
  end
  local names, _, cut = M.names(ctx, place.path, {})
  local found, pause = {}, time_slice.of(ctx)
  for _, name in ipairs(names) do
    if matches(name) then
      table.insert(found, place.path .. '/' .. name)
    end
    pause()
  end
  return found, cut -- sorted, as the names are
end

--- Returns withheld files as one line of text.
---@param withheld { path: string, why: string }[]
---@return string?
function M.withheld_text(withheld)
  if #withheld == 0 then
    return nil
  end
  local parts = {}
  for i = 1, math.min(#withheld, 5) do
    table.insert(parts, ('%s (%s)'):format(withheld[i].path, withheld[i].why))
  end
  local more = #withheld > 5 and (' and %d more'):format(#withheld - 5) or ''
  return ('withheld: %s%s'):format(table.concat(parts, ', '), more)
end

return M

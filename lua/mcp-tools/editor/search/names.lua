--- Names of the files in a directory, without those that git ignores.
---
--- They come from git, or else from ripgrep without configuration, or else from walking the directory tree, where only
--- `.git` is ignored. Repositories inside the directory are left out, whatever their name.

local git = require('mcp-tools.editor.git')
local process = require('mcp-tools.editor.process')
local sensitive = require('mcp-tools.privacy.sensitive')
local sort = require('mcp-tools.util.sort')
local task = require('mcp-tools.util.task')
local time_slice = require('mcp-tools.util.time_slice')

local uv = vim.uv

local M = {}

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
function M.list(ctx, directory, opts)
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

return M

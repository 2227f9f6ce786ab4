--- Files of a search: the directory or file to search, globs, and access to each file.

local access = require('mcp-tools.privacy.access')
local errors = require('mcp-tools.errors')
local file_names = require('mcp-tools.editor.search.names')
local glob = require('mcp-tools.files.glob')
local paths = require('mcp-tools.files.paths')
local time_slice = require('mcp-tools.util.time_slice')

local uv = vim.uv

local M = {}

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
  local names, _, cut = file_names.list(ctx, place.path, {})
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

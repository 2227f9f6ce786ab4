--- Files of a place that globs take, and which of them may be read.

local access = require('mcp-tools.privacy.access')
local errors = require('mcp-tools.errors')
local file_names = require('mcp-tools.editor.search.names')
local glob = require('mcp-tools.files.glob')
local paths = require('mcp-tools.files.paths')
local time_slice = require('mcp-tools.util.time_slice')

local uv = vim.uv

local M = {}

--- Beyond it a search takes longer than anybody waits.
M.MAX_FILES = 100000
--- Globs of one call, and bytes of all: each byte is looked at for each byte of a path.
local MAX_GLOBS, MAX_GLOB_BYTES = 50, 2000

---@class mcp-tools.search.Place
---@field path string resolved
---@field folder boolean
---@field allowed boolean outside of the project, and the person allowed it

--- What a `path` argument means; without one the project.
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
    return nil, errors.new('not_found', ('path: there is no %s'):format(path or resolved))
  elseif stat.type ~= 'file' and stat.type ~= 'directory' then
    return nil, errors.new('validation_error', ('path: %s is a %s'):format(path, stat.type))
  end
  local inside = paths.inside(resolved, ctx.root)
  if not inside and not ctx:covers(resolved) then
    local text = 'path: %s is outside the project; name a folder of it'
    return nil, errors.new('access_denied', text:format(resolved))
  end
  return { path = resolved, folder = stat.type == 'directory', allowed = not inside }
end

--- A function that says whether globs take a path. Those without `/` are of names, the others of paths below the
--- place; those that begin with `!` leave out.
---@param globs string[]?
---@return (fun(relative: string): boolean)?
---@return mcp-tools.Error? err
function M.matcher(globs)
  if globs and #globs > MAX_GLOBS then
    return nil, errors.new('validation_error', ('globs: at most %d'):format(MAX_GLOBS))
  elseif #table.concat(globs or {}) > MAX_GLOB_BYTES then
    return nil, errors.new('validation_error', ('globs: at most %d bytes in all'):format(MAX_GLOB_BYTES))
  end
  local takes, leaves = {}, {}
  for _, each in ipairs(globs or {}) do
    local out, pattern = each:match('^(!?)(.*)$')
    pattern = pattern:gsub('^%./', ''):gsub('^/', '')
    if not each:find('/', 1, true) then
      pattern = '**/' .. pattern
    elseif pattern:sub(-1) == '/' then
      pattern = pattern .. '**'
    end
    table.insert(out == '!' and leaves or takes, glob.compile(pattern))
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
    return (#takes == 0 or any(takes, relative)) and not any(leaves, relative)
  end
end

--- Judges paths one after the other, and tells why some are withheld.
---@param ctx mcp-tools.Ctx
---@param place mcp-tools.search.Place
---@return fun(path: string): string? resolved path of one that may be read
---@return { path: string, why: string }[] withheld
function M.judge(ctx, place)
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

--- Names of files below a place that globs take. Nobody has judged them yet.
---@param ctx mcp-tools.Ctx in a coroutine
---@param place mcp-tools.search.Place
---@param globs? string[]
---@return string[]? absolute, sorted
---@return mcp-tools.Error|boolean? err_or_cut
function M.list(ctx, place, globs)
  if not place.folder then
    return { place.path }
  end
  local takes, err = M.matcher(globs)
  if not takes then
    return nil, err
  end
  local names, _, cut = file_names.list(ctx, place.path, {})
  local found, pause = {}, time_slice.of(ctx)
  for _, name in ipairs(names) do
    if takes(name) then
      table.insert(found, place.path .. '/' .. name)
    end
    pause()
  end
  return found, cut -- sorted as the names are
end

--- What was withheld, in a line.
---@param withheld { path: string, why: string }[]
---@return string?
function M.told(withheld)
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

--- Files that may hold a query: by ripgrep, else by git, else all.
---
--- Receives: a query, a place.
--- Sends: paths that nobody has judged yet. A file too many does no harm: each is looked at again.
--- Does not know about: buffers, matches.

local files = require('mcp-tools.editor.search.files')
local git = require('mcp-tools.editor.git')
local process = require('mcp-tools.editor.process')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

--- Bytes of names.
local MAX_NAMES = 16 * 1024 * 1024
local TIMEOUT = 30000

--- The longest line of a plain query: programs look at lines.
---@param text string
---@return string
local function longest_line(text)
  local best = ''
  for line in vim.gsplit(text, '\n', { plain = true }) do
    best = #line > #best and line or best
  end
  return best
end

---@param query mcp-tools.search.Query
---@return string[]
local function options(query)
  local list = {}
  if not query.regex then
    table.insert(list, '-F')
  end
  if query.ignore_case then
    table.insert(list, '-i')
  end
  return list
end

---@param done mcp-tools.process.Result
---@return string[]?
local function names_of(done)
  if done.ok or done.quiet or done.code == 1 and done.stdout == '' then
    return vim.split(done.stdout, '\0', { plain = true, trimempty = true })
  end
end

---@param ctx mcp-tools.Ctx
---@param place mcp-tools.search.Place
---@param query mcp-tools.search.Query
---@param text string
---@return string[]? paths
local function by_ripgrep(ctx, place, query, text)
  local command = { 'rg', '--no-config', '--files-with-matches', '--null', '--hidden', '--glob=!.git', '--no-messages' }
  vim.list_extend(command, options(query))
  vim.list_extend(command, { '--regexp=' .. text, '--', place.path })
  local folder = place.folder and place.path or vim.fs.dirname(place.path)
  return names_of(process.await(command, {
    ctx = ctx,
    cwd = folder,
    env = { PATH = process.search_path() },
    limit = MAX_NAMES,
    timeout = TIMEOUT,
  }))
end

---@param ctx mcp-tools.Ctx
---@param place mcp-tools.search.Place
---@param query mcp-tools.search.Query
---@param text string
---@return string[]? paths
local function by_git(ctx, place, query, text)
  local args = { 'grep', '--untracked', '-I', '-l', '-z' }
  vim.list_extend(args, options(query))
  vim.list_extend(args, query.regex and { '-P' } or {})
  vim.list_extend(args, { '-e', text, '--', '.' })
  local done = git.await(args, { ctx = ctx, cwd = place.path, limit = MAX_NAMES, timeout = TIMEOUT })
  local names = names_of(done)
  return names and vim.tbl_map(function(name)
    return place.path .. '/' .. name
  end, names)
end

--- Files that may hold the query.
---@param ctx mcp-tools.Ctx in a coroutine
---@param place mcp-tools.search.Place
---@param query mcp-tools.search.Query
---@param globs? string[]
---@return string[]? absolute, sorted
---@return mcp-tools.Error|boolean? err_or_cut
function M.find(ctx, place, query, globs)
  if not place.folder then
    return { place.path }
  end
  local takes, err = files.matcher(globs)
  if not takes then
    return nil, err
  end
  local text = query.regex and query.query or longest_line(query.query)
  local found = text ~= '' and (by_ripgrep(ctx, place, query, text) or by_git(ctx, place, query, text))
  if not found then
    return files.list(ctx, place, globs)
  end
  local pause, kept = time_slice.of(ctx), {}
  for _, path in ipairs(found) do
    if vim.startswith(path, place.path .. '/') and takes(path:sub(#place.path + 2)) then
      table.insert(kept, path)
    end
    pause()
  end
  table.sort(kept)
  return kept, #found >= files.MAX_FILES
end

return M

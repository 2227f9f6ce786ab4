--- Finds git repositories that are not named `.git`: bare ones and those created with `--separate-git-dir`.
---
--- A worktree inside a repository directory (`project.git/main`, next to `project.git/objects`) is not part of the
--- repository: the nearest of the two decides.

local uv = vim.uv

local M = {}

--- Lifetime of a cached directory in ns.
local FRESH = 2e9
--- Maximum number of cached directories.
local MAX_CACHED = 10000

---@class mcp-tools.CachedDirectory
---@field at integer ns
---@field exists boolean
---@field repository string? the repository that it is in

---@type table<string, mcp-tools.CachedDirectory>
local cache, count = {}, 0

---@param path string
---@return string?
local function type_of(path)
  local stat = uv.fs_stat(path)
  return stat and stat.type
end

--- Returns whether a directory is a repository by its contents; `*.git` needs fewer of them.
---@param directory string
---@return boolean
function M.is(directory)
  local head = uv.fs_lstat(directory .. '/HEAD') -- it may be a link to a branch that does not exist yet
  if head and head.type ~= 'directory' then
    return type_of(directory .. '/objects') == 'directory' and type_of(directory .. '/refs') == 'directory'
  end
  return directory:find('%.[gG][iI][tT]$') ~= nil
    and (type_of(directory .. '/config') == 'file' or type_of(directory .. '/objects') == 'directory')
end

--- Looks up a directory from the top, so that nothing is searched below a missing one.
---@param directory string '' is the root
---@return mcp-tools.CachedDirectory
local function lookup(directory)
  local now, found = uv.hrtime(), cache[directory]
  if found and now - found.at < FRESH then
    return found
  end
  if count >= MAX_CACHED then
    cache, count = {}, 0
  end
  local above = directory ~= '' and lookup((directory:match('^(.*)/'))) or nil
  local exists = (not above or above.exists) and type_of(directory .. '/') == 'directory'
  local repository = above and above.repository
  if exists and M.is(directory) then
    repository = directory
  elseif exists and repository and uv.fs_lstat(directory .. '/.git') then
    repository = nil
  end
  count = cache[directory] and count or count + 1
  cache[directory] = { at = now, exists = exists, repository = repository }
  return cache[directory]
end

--- Returns the path as if its repository were named `.git`.
---@param path string
---@return string? renamed nil: not in a repository
function M.as_dot_git(path)
  if path:sub(1, 1) ~= '/' then
    return nil
  end
  local repository = lookup((path:match('^(.*)/[^/]*$'))).repository
  return repository and repository:match('^(.*)/') .. '/.git' .. path:sub(#repository + 1) or nil
end

return M

--- Repositories of git that are not called `.git`: bare ones, and those that were made with `--separate-git-dir`.
---
--- A work tree in a repository's folder (`project.git/main`, next to `project.git/objects`) is none of it: what counts
--- is which of the two is nearer.

local uv = vim.uv

local M = {}

--- So long it is believed what a folder is, ns.
local FRESH = 2e9
--- Folders that are remembered.
local MAX_KNOWN = 10000

---@class mcp-tools.KnownFolder
---@field at integer ns
---@field there boolean does it exist?
---@field repository string? which it is of

---@type table<string, mcp-tools.KnownFolder>
local known, count = {}, 0

---@param path string
---@return string?
local function type_of(path)
  local stat = uv.fs_stat(path)
  return stat and stat.type
end

--- Is it the folder of a repository, by what is in it? One that is called so is, when less of it is left.
---@param folder string
---@return boolean
function M.is(folder)
  local head = uv.fs_lstat(folder .. '/HEAD') -- it may be a link to a branch that is yet to be
  if head and head.type ~= 'directory' then
    return type_of(folder .. '/objects') == 'directory' and type_of(folder .. '/refs') == 'directory'
  end
  return folder:find('%.[gG][iI][tT]$') ~= nil
    and (type_of(folder .. '/config') == 'file' or type_of(folder .. '/objects') == 'directory')
end

--- From the top, so that nothing is looked for in what does not exist.
---@param folder string '' is the top
---@return mcp-tools.KnownFolder
local function look(folder)
  local now, found = uv.hrtime(), known[folder]
  if found and now - found.at < FRESH then
    return found
  end
  if count >= MAX_KNOWN then
    known, count = {}, 0
  end
  local above = folder ~= '' and look((folder:match('^(.*)/'))) or nil
  local there = (not above or above.there) and type_of(folder .. '/') == 'directory'
  local repository = above and above.repository
  if there and M.is(folder) then
    repository = folder
  elseif there and repository and uv.fs_lstat(folder .. '/.git') then
    repository = nil
  end
  count = known[folder] and count or count + 1
  known[folder] = { at = now, there = there, repository = repository }
  return known[folder]
end

--- The path as it would be if the repository that it lies in were called `.git`.
---@param path string
---@return string? renamed nil when it lies in none
function M.as_dot_git(path)
  if path:sub(1, 1) ~= '/' then
    return nil
  end
  local repository = look((path:match('^(.*)/[^/]*$'))).repository
  return repository and repository:match('^(.*)/') .. '/.git' .. path:sub(#repository + 1) or nil
end

return M

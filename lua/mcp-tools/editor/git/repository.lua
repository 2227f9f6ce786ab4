--- Decides which repository a directory belongs to, without asking git.
---
--- A foreign directory must not expose the history of another repository. What a `.git` file points to must name that
--- directory in turn, and objects may be borrowed only from directories that the user allows (`git.alternates`). git is
--- given the result, so that it does not decide again.

local config = require('mcp-tools.config')
local read_sync = require('mcp-tools.util.read_sync')

local uv = vim.uv

local M = {}

---@class mcp-tools.git.Repository
---@field worktree string directory that contains `.git`, resolved
---@field gitdir string what `.git` is or points to, resolved
---@field common string repository with the history: `gitdir`, or the main one of a linked work tree
---@field is_ours boolean the user of this process owns all of them

--- Maximum size of `.git`, `gitdir` and `commondir` files, in bytes.
local MAX_POINTER = 4096
--- Maximum size of other files that are read here, in bytes.
local MAX_FILE = 64 * 1024
--- Maximum number of entries of `objects/`; git creates 258.
local MAX_ENTRIES = 1024
--- Maximum number of object directories of one repository.
local MAX_LENDERS = 16

--- Whether git may regard a directory as a repository. If in doubt, true.
---@param directory string
---@return boolean
local function is_repository(directory)
  local function has(name)
    return uv.fs_lstat(directory .. '/' .. name) ~= nil
  end
  return has('HEAD') and (has('commondir') or (has('objects') and has('refs')))
end

---@param path string
---@param base string directory of a relative path
local function absolute(path, base)
  return path:sub(1, 1) == '/' and path or base .. '/' .. path
end

--- Reads a file that contains one path. git reads the whole file, so more than one line is an error.
---@param file string
---@param base string directory of a relative path
---@param prefix? string expected before the path
---@return string? resolved
local function read_pointer(file, base, prefix)
  local text = read_sync(file, MAX_POINTER + 1) or ''
  local line = text:gsub('[\r\n]+$', '') -- bounded: MAX_POINTER
  if #text > MAX_POINTER or line:find('[%z\r\n]') or not vim.startswith(line, prefix or '') then
    return nil
  end
  local path = line:sub(#(prefix or '') + 1)
  return path ~= '' and uv.fs_realpath(absolute(path, base)) or nil
end

---@param path string
---@param directory string
local function is_below(path, directory)
  return vim.startswith(path, directory == '/' and '/' or directory .. '/')
end

--- Whether the target of a `.git` file names this directory: a linked work tree has a file with the path of its `.git`,
--- a submodule a setting with its work tree.
---@param gitdir string resolved
---@param directory string resolved
---@return boolean
local function points_back(gitdir, directory)
  if read_pointer(gitdir .. '/gitdir', gitdir) == directory .. '/.git' then
    return true
  end
  local settings = read_sync(gitdir .. '/config', MAX_FILE) or ''
  local worktree = settings:match('%f[%w]worktree%s*=%s*"?([^\n"]+)')
  return worktree ~= nil and uv.fs_realpath(absolute(worktree, gitdir)) == directory
end

---@param gitdir string resolved
---@return string?
local function common_of(gitdir)
  if not uv.fs_lstat(gitdir .. '/commondir') then
    return gitdir
  end
  local common = read_pointer(gitdir .. '/commondir', gitdir)
  return common and is_below(gitdir, common .. '/worktrees') and common or nil
end

---@param path string
---@return boolean
local function is_own(path)
  local stat = uv.fs_stat(path)
  return stat ~= nil and stat.uid == uv.getuid()
end

--- Returns the repository of a directory that contains `.git`.
---@param directory string
---@return mcp-tools.git.Repository?
---@return string? fault nil if the directory has no usable `.git`
function M.at(directory)
  directory = uv.fs_realpath(directory) or directory
  local dot_git = (directory == '/' and '' or directory) .. '/.git'
  local stat = uv.fs_stat(dot_git)
  if not stat or not (stat.type == 'file' or is_repository(dot_git)) then
    return nil
  end
  local gitdir = uv.fs_realpath(dot_git)
  if stat.type == 'file' then
    gitdir = read_pointer(dot_git, directory, 'gitdir: ')
  end
  local common = gitdir and common_of(gitdir)
  if not common or not (is_below(gitdir, directory) or points_back(gitdir, directory)) then
    return nil, ('%s points to a repository that does not point back'):format(dot_git)
  end
  return {
    worktree = directory,
    gitdir = gitdir,
    common = common,
    is_ours = is_own(directory) and is_own(dot_git) and is_own(gitdir) and is_own(common),
  }
end

--- Whether the user allows borrowing objects from here.
---@param path string resolved
local function is_allowed(path)
  return vim.iter(config.get().git.alternates):any(function(allowed)
    local directory = uv.fs_realpath(vim.fs.normalize(allowed))
    return directory ~= nil and (path == directory or is_below(path, directory))
  end)
end

--- Reads the alternates of an object directory.
---@param objects string resolved
---@return string[]? directories as written or resolved
---@return string? fault
local function read_alternates(objects)
  local file = objects .. '/info/alternates'
  local text = uv.fs_lstat(file) and (read_sync(file, MAX_FILE + 1) or ('x'):rep(MAX_FILE + 1)) or ''
  if #text > MAX_FILE then
    return nil, ('%s cannot be read'):format(file)
  elseif ('\n' .. text):find('\n"', 1, true) then
    return nil, ('%s has a quoted path'):format(file) -- git would unquote it
  end
  local directories = {}
  for line in text:gmatch('[^\n]+') do
    if line:sub(1, 1) ~= '#' then
      local path = absolute(line, objects)
      table.insert(directories, uv.fs_realpath(path) or path)
    end
  end
  return directories
end

--- Returns the targets of links in an object directory.
---@param objects string resolved
---@return string[]? targets resolved
---@return string? fault
local function read_links(objects)
  local handle = uv.fs_opendir(objects, nil, MAX_ENTRIES)
  local entries = handle and uv.fs_readdir(handle) or {}
  local is_long = handle and uv.fs_readdir(handle) ~= nil
  if handle then
    uv.fs_closedir(handle)
  end
  if is_long then
    return nil, ('%s has more entries than git creates'):format(objects)
  end
  local targets = {}
  for _, entry in ipairs(entries) do
    local path = objects .. '/' .. entry.name
    local kind = entry.type ~= 'unknown' and entry.type or (uv.fs_lstat(path) or {}).type
    if kind == 'link' then
      table.insert(targets, uv.fs_realpath(path) or path)
    end
  end
  return targets
end

--- Checks that a repository has its own objects, or borrows them, by links and alternates, from directories that the
--- user allows. Otherwise the name of a revision could lead to another repository.
---@param common string resolved
---@return string? fault
local function objects_fault(common)
  local own = common .. '/objects'
  local first = uv.fs_realpath(own)
  if not first then
    return uv.fs_lstat(own) and ('%s cannot be read'):format(own) or nil
  end
  local function refusal(objects, lender)
    local text = '%s borrows objects from %s; to allow it, add its directory to the option git.alternates'
    return lender ~= own and not is_allowed(lender) and text:format(objects, lender) or nil
  end
  local fault, all, at = refusal(own, first), { first }, 1
  while not fault and all[at] do
    local objects = all[at]
    local links, alternates
    links, fault = read_links(objects)
    if links then
      alternates, fault = read_alternates(objects)
    end
    for _, lender in ipairs(alternates and vim.list_extend(links, alternates) or {}) do
      fault = fault or refusal(objects, lender)
    end
    vim.list_extend(all, alternates or {})
    fault = fault or #all > MAX_LENDERS and ('%s borrows objects from too many directories'):format(own) or nil
    at = at + 1
  end
  return fault
end

--- Finds the repository of a directory: `.git` in it, or in the nearest parent directory.
---@param directory string
---@return mcp-tools.git.Repository?
---@return string? fault
function M.find(directory)
  directory = uv.fs_realpath(directory) or directory
  while true do
    local found, fault = M.at(directory)
    if found then
      fault = objects_fault(found.common)
      return not fault and found or nil, fault
    elseif fault then
      return nil, fault
    elseif is_repository(directory) then
      return nil, ('%s is a bare repository'):format(directory)
    elseif directory == '/' then
      return nil, 'not a git repository'
    end
    directory = directory:match('^(.*)/[^/]*$')
    directory = directory == '' and '/' or directory
  end
end

return M

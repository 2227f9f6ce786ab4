--- Decides by name whether a file is sensitive: it matches `sensitive.patterns`, is a copy of such a file, or is part
--- of a git repository.

local config = require('mcp-tools.config')
local glob = require('mcp-tools.files.glob')
local lru = require('mcp-tools.util.lru')

local uv = vim.uv

local M = {}

---@class mcp-tools.Patterns `sensitive.patterns` by how they are matched; most need no glob
---@field names table<string, true> whole names
---@field edges mcp-tools.Edges[] names with one `*`
---@field directories string[] directories anywhere in a path
---@field tails mcp-tools.Tail[]
---@field name_globs (fun(name: string): boolean)[]
---@field path_globs (fun(path: string): boolean)[]

--- A name with one `*`: the parts before and after it.
---@class mcp-tools.Edges
---@field first string
---@field last string

--- The last two parts of a path.
---@class mcp-tools.Tail
---@field parent string with a leading slash
---@field name string?
---@field edges mcp-tools.Edges?

local patterns, patterns_of

local PLAIN = '[^%*%?%[%]{}/\\]+'
local MAY_BE_PLAIN = PLAIN:sub(1, -2) .. '*'

---@param pattern string pattern for a name
---@return mcp-tools.Edges?
local function edges_of(pattern)
  local first, last = pattern:match('^(' .. MAY_BE_PLAIN .. ')%*(' .. MAY_BE_PLAIN .. ')$')
  return first and { first = first, last = last }
end

---@param name string
---@param edges mcp-tools.Edges
local function has_edges(name, edges)
  local first, last = edges.first, edges.last
  return #name >= #first + #last and name:sub(1, #first) == first and (last == '' or name:sub(-#last) == last)
end

--- Anchors a pattern with a slash: unless it starts with `/` or `~/`, it matches anywhere.
---@param pattern string
---@return string
local function rooted(pattern)
  if pattern:find('^~/') then
    pattern = (uv.os_homedir() or ''):lower() .. pattern:sub(2)
  elseif pattern:sub(1, 1) ~= '/' and pattern:sub(1, 3) ~= '**/' then
    pattern = '**/' .. pattern
  end
  return pattern:sub(-1) == '/' and pattern .. '**' or pattern
end

---@param sorted mcp-tools.Patterns
---@param pattern string
local function sort(sorted, pattern)
  if not pattern:find('/', 1, true) then
    local edges = edges_of(pattern)
    if pattern:match('^' .. PLAIN .. '$') then
      sorted.names[pattern] = true
    elseif edges then
      table.insert(sorted.edges, edges)
    else
      table.insert(sorted.name_globs, glob.compile(pattern))
    end
    return
  end
  pattern = rooted(pattern)
  local directory = pattern:match('^%*%*/(' .. PLAIN .. ')/%*%*$')
  local parent, name = pattern:match('^%*%*(/' .. PLAIN .. ')/([^/]+)$')
  local edges = name and edges_of(name)
  if directory then
    table.insert(sorted.directories, '/' .. directory .. '/')
  elseif name and (edges or name:match('^' .. PLAIN .. '$')) then
    table.insert(sorted.tails, { parent = parent, name = not edges and name or nil, edges = edges })
  else
    table.insert(sorted.path_globs, glob.compile(pattern))
  end
end

--- Returns the compiled patterns of the option. Case is ignored: on some file systems `.ENV` is `.env`.
---@return mcp-tools.Patterns
local function compiled()
  local option = config.get().sensitive.patterns
  if patterns_of ~= option then
    local sorted = { names = {}, edges = {}, directories = {}, tails = {}, name_globs = {}, path_globs = {} }
    for _, pattern in ipairs(option) do
      sort(sorted, pattern:lower())
    end
    patterns, patterns_of = sorted, option
  end
  return patterns
end

---@param path string absolute, lower case
---@param name string file name
---@return boolean
local function is_matched(path, name)
  local sorted = compiled()
  if sorted.names[name] then
    return true
  end
  for _, edges in ipairs(sorted.edges) do
    if has_edges(name, edges) then
      return true
    end
  end
  local directory_path = path .. '/'
  for _, directory in ipairs(sorted.directories) do
    if directory_path:find(directory, 1, true) then
      return true
    end
  end
  local parent = path:sub(1, -#name - 2)
  for _, tail in ipairs(sorted.tails) do
    if
      parent:sub(-#tail.parent) == tail.parent and (tail.name == name or tail.edges and has_edges(name, tail.edges))
    then
      return true
    end
  end
  for _, matches in ipairs(sorted.name_globs) do
    if matches(name) then
      return true
    end
  end
  for _, matches in ipairs(sorted.path_globs) do
    if matches(path) then
      return true
    end
  end
  return false
end

--- Names of copies: pattern of the last character (so that few are tried), and pattern that captures the original name.
local COPIES = {
  { '~', '^%.(.+)%.un~$' },
  { '~', '^(.+)%.~%d+~$' },
  { '~', '^(.+)~$' },
  { '%l', '^%.(.+)%.s[a-w][a-z]$' }, -- swap files
  { 'p', '^%.(.+)%.kate%-swp$' },
  { '#', '^#(.+)#$' },
  { '.', '^%.#(.+)$' },
  { '.', '^copy of (.+)$' },
  { 'v', '^(.+),v$' }, -- RCS
  { 'k', '^(.+)[._-]bak$' },
  { 'p', '^(.+)[._-]backup$' },
  { 'y', '^(.+) %- copy$' },
  { 'y', '^(.+)[ ._-]copy$' },
  { 'd', '^(.+)[._-]old$' },
  { 'g', '^(.+)[._-]orig$' },
  { 'e', '^(.+)[._-]save$' },
  { '%l', '^(.+)%.sw[a-z]$' },
  { 'p', '^(.+)[._-]tmp$' },
  { '%d', '^(.+)[.~]%d+$' },
  { '%d', '^(.+)[._-]bak%d+$' },
  { '%)', '^(.+) %([^()]*%)$' },
}
--- Maximum number of nested copies.
local MAX_COPIES = 4

---@param name string
---@return string? original name of the copied file
local function original(name)
  local last = name:sub(-1)
  for _, copy in ipairs(COPIES) do
    local found = last:find(copy[1]) and name:match(copy[2])
    if found then
      return found
    end
  end
end

--- Returns whether a file in a directory could be sensitive because of the directory's name.
---@param directory string absolute
---@return boolean
function M.depends_on_name(directory)
  local sorted, name = compiled(), '/' .. (directory:match('^.*/(.*)$') or directory):lower()
  for _, tail in ipairs(sorted.tails) do
    if tail.parent == name then
      return true
    end
  end
  return #sorted.path_globs > 0
end

--- Returns whether a path is sensitive by its name.
---@param path string
---@return boolean
function M.matches(path)
  path = path:lower()
  if path:sub(1, 1) ~= '/' then
    path = '/' .. path
  end
  local directory, name = path:match('^(.*)/([^/]*)$')
  for _ = 0, MAX_COPIES do
    if is_matched(directory .. '/' .. name, name) then
      return true
    end
    -- Backup, swap and undo files in a common directory have the whole path as their name.
    local whole = name:find('%', 1, true) and name:gsub('%%', '/')
    if whole and is_matched('/' .. whole, whole:match('^.*/(.*)$')) then
      return true
    end
    local before = original(name)
    if not before then
      return false
    end
    name = before
  end
  return false
end

-- Git repositories that are not named `.git`: bare ones and those created with `--separate-git-dir` -----------------

--- Lifetime of a cached directory in ns.
local FRESH = 2e9
--- Maximum number of cached directories.
local MAX_CACHED = 10000

---@class mcp-tools.CachedDirectory
---@field at integer ns
---@field exists boolean
---@field repository string? the repository that it is in

local directories = lru(MAX_CACHED)

---@param path string
---@return string?
local function type_of(path)
  local stat = uv.fs_stat(path)
  return stat and stat.type
end

--- Returns whether a directory is a repository by its contents; `*.git` needs fewer of them.
---@param directory string
---@return boolean
function M.is_repository(directory)
  local head = uv.fs_lstat(directory .. '/HEAD') -- it may be a link to a branch that does not exist yet
  if head and head.type ~= 'directory' then
    return type_of(directory .. '/objects') == 'directory' and type_of(directory .. '/refs') == 'directory'
  end
  return directory:find('%.[gG][iI][tT]$') ~= nil
    and (type_of(directory .. '/config') == 'file' or type_of(directory .. '/objects') == 'directory')
end

--- Looks up a directory from the top, so that nothing is searched below a missing one. A worktree inside a repository
--- directory (`project.git/main`, next to `project.git/objects`) is not part of the repository: the nearest of the two
--- decides.
---@param directory string '' is the root
---@return mcp-tools.CachedDirectory
local function lookup(directory)
  local now, found = uv.hrtime(), directories:get(directory)
  if found and now - found.at < FRESH then
    return found
  end
  local above = directory ~= '' and lookup((directory:match('^(.*)/'))) or nil
  local exists = (not above or above.exists) and type_of(directory .. '/') == 'directory'
  local repository = above and above.repository
  if exists and M.is_repository(directory) then
    repository = directory
  elseif exists and repository and uv.fs_lstat(directory .. '/.git') then
    repository = nil
  end
  found = { at = now, exists = exists, repository = repository }
  directories:set(directory, found)
  return found
end

--- Returns the path as if its repository were named `.git`.
---@param path string
---@return string? renamed nil: not in a repository
local function as_dot_git(path)
  if path:sub(1, 1) ~= '/' then
    return nil
  end
  local repository = lookup((path:match('^(.*)/[^/]*$'))).repository
  return repository and repository:match('^(.*)/') .. '/.git' .. path:sub(#repository + 1) or nil
end

--- Returns whether a path is sensitive by its name or as part of a git repository with another name than `.git`.
---@param path string
---@return boolean
function M.is_sensitive(path)
  if M.matches(path) then
    return true
  end
  local renamed = as_dot_git(path)
  return renamed ~= nil and M.matches(renamed)
end

return M

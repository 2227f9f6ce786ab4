--- Sensitive files, by their names: those that `sensitive.patterns` match, and copies of such files.

local config = require('mcp-tools.config')
local glob = require('mcp-tools.files.glob')
local repository = require('mcp-tools.privacy.repository')

local M = {}

---@class mcp-tools.Patterns `sensitive.patterns`, sorted by how they are matched; most need no glob
---@field names table<string, true> whole names
---@field edges mcp-tools.Edges[] of names
---@field folders string[] that a path goes through
---@field tails mcp-tools.Tail[]
---@field name_globs (fun(name: string): boolean)[]
---@field path_globs (fun(path: string): boolean)[]

--- A name with one `*`: what stands before and behind it.
---@class mcp-tools.Edges
---@field first string
---@field last string

--- The last two parts of a path.
---@class mcp-tools.Tail
---@field folder string behind a slash
---@field name string?
---@field edges mcp-tools.Edges?

local patterns, patterns_of

local PLAIN = '[^%*%?%[%]{}/\\]+'
local MAY_BE_PLAIN = PLAIN:sub(1, -2) .. '*'

---@param pattern string of a name
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

--- A pattern with a slash says whether it counts from the top; one that does not holds anywhere.
---@param pattern string
---@return string
local function rooted(pattern)
  if pattern:find('^~/') then
    pattern = (vim.uv.os_homedir() or ''):lower() .. pattern:sub(2)
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
  local folder = pattern:match('^%*%*/(' .. PLAIN .. ')/%*%*$')
  local parent, name = pattern:match('^%*%*(/' .. PLAIN .. ')/([^/]+)$')
  local edges = name and edges_of(name)
  if folder then
    table.insert(sorted.folders, '/' .. folder .. '/')
  elseif name and (edges or name:match('^' .. PLAIN .. '$')) then
    table.insert(sorted.tails, { folder = parent, name = not edges and name or nil, edges = edges })
  else
    table.insert(sorted.path_globs, glob.compile(pattern))
  end
end

--- Patterns, sorted anew when the option changes. Letter case is ignored: on some file systems `.ENV` is `.env`.
---@return mcp-tools.Patterns
local function compiled()
  local option = config.get().sensitive.patterns
  if patterns_of ~= option then
    local sorted = { names = {}, edges = {}, folders = {}, tails = {}, name_globs = {}, path_globs = {} }
    for _, pattern in ipairs(option) do
      sort(sorted, pattern:lower())
    end
    patterns, patterns_of = sorted, option
  end
  return patterns
end

---@param path string absolute, in small letters
---@param name string its last part
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
  local folder_path = path .. '/'
  for _, folder in ipairs(sorted.folders) do
    if folder_path:find(folder, 1, true) then
      return true
    end
  end
  local parent = path:sub(1, -#name - 2)
  for _, tail in ipairs(sorted.tails) do
    if
      parent:sub(-#tail.folder) == tail.folder and (tail.name == name or tail.edges and has_edges(name, tail.edges))
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

--- What programs and people add to the name of a copy, by the last character, so that few are tried; the capture is
--- the name of what was copied.
local COPIES = {
  { '~', '^%.(.+)%.un~$' },
  { '~', '^(.+)%.~%d+~$' },
  { '~', '^(.+)~$' },
  { '%l', '^%.(.+)%.s[a-w][a-z]$' }, -- swap files
  { '#', '^#(.+)#$' },
  { '.', '^%.#(.+)$' },
  { 'k', '^(.+)%.bak$' },
  { 'p', '^(.+)%.backup$' },
  { 'y', '^(.+)%.copy$' },
  { 'd', '^(.+)%.old$' },
  { 'g', '^(.+)%.orig$' },
  { 'e', '^(.+)%.save$' },
  { '%l', '^(.+)%.sw[a-z]$' },
  { 'p', '^(.+)%.tmp$' },
  { '%d', '^(.+)%.%d+$' },
  { 'y', '^(.+) copy$' },
  { '%)', '^(.+) %([^()]*%)$' },
}
--- Copies of copies that are seen through.
local MAX_COPIES = 4

---@param name string
---@return string? name of what it is a copy of
local function original(name)
  local last = name:sub(-1)
  for _, form in ipairs(COPIES) do
    local found = last:find(form[1]) and name:match(form[2])
    if found then
      return found
    end
  end
end

--- Might a file below a folder be sensitive because of what the folder is called?
---@param folder string absolute
---@return boolean
function M.depends_on_name(folder)
  local sorted, name = compiled(), '/' .. (folder:match('^.*/(.*)$') or folder):lower()
  for _, tail in ipairs(sorted.tails) do
    if tail.folder == name then
      return true
    end
  end
  return #sorted.path_globs > 0
end

--- Is its text off limits?
---@param path string
---@return boolean
function M.matches(path)
  path = path:lower()
  if path:sub(1, 1) ~= '/' then
    path = '/' .. path
  end
  local folder, name = path:match('^(.*)/([^/]*)$')
  for _ = 0, MAX_COPIES do
    if is_matched(folder .. '/' .. name, name) then
      return true
    end
    -- Backups, swap and undo files that are kept in one folder have the whole path as their name.
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

--- Is its text off limits, by its name, or as a part of a repository that has another name than `.git`?
---@param path string
---@return boolean
function M.is_sensitive(path)
  if M.matches(path) then
    return true
  end
  local renamed = repository.as_dot_git(path)
  return renamed ~= nil and M.matches(renamed)
end

return M

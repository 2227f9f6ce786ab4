--- Sensitive files, by their names: those that `sensitive.patterns` match, and copies of such files.
---
--- Receives: paths; the option.
--- Sends: yes or no.
--- Does not know about: what is in a file, where its links lead (files/paths.lua).

local config = require('mcp-tools.config')
local glob = require('mcp-tools.files.glob')

local M = {}

---@class mcp-tools.Patterns `sensitive.patterns`, sorted by how they are matched; most need no glob
---@field names table<string, true> whole names
---@field endings string[] of names
---@field folders string[] that a path goes through
---@field tails string[] of paths
---@field name_globs (fun(name: string): boolean)[]
---@field path_globs (fun(path: string): boolean)[]

local patterns, patterns_of

local PLAIN = '[^%*%?%[%]{}/\\]+'

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
    local ending = pattern:match('^%*(' .. PLAIN .. ')$')
    if pattern:match('^' .. PLAIN .. '$') then
      sorted.names[pattern] = true
    elseif ending then
      table.insert(sorted.endings, ending)
    else
      table.insert(sorted.name_globs, glob.compile(pattern))
    end
    return
  end
  pattern = rooted(pattern)
  local folder = pattern:match('^%*%*/(' .. PLAIN .. ')/%*%*$')
  local tail = pattern:match('^%*%*(/' .. PLAIN .. '/' .. PLAIN .. ')$')
  if folder then
    table.insert(sorted.folders, '/' .. folder .. '/')
  elseif tail then
    table.insert(sorted.tails, tail)
  else
    table.insert(sorted.path_globs, glob.compile(pattern))
  end
end

--- Patterns, sorted anew when the option changes. Letter case is ignored: on some file systems `.ENV` is `.env`.
---@return mcp-tools.Patterns
local function compiled()
  local option = config.get().sensitive.patterns
  if patterns_of ~= option then
    local sorted = { names = {}, endings = {}, folders = {}, tails = {}, name_globs = {}, path_globs = {} }
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
  for _, ending in ipairs(sorted.endings) do
    if name:sub(-#ending) == ending then
      return true
    end
  end
  local folder_path = path .. '/'
  for _, folder in ipairs(sorted.folders) do
    if folder_path:find(folder, 1, true) then
      return true
    end
  end
  for _, tail in ipairs(sorted.tails) do
    if path:sub(-#tail) == tail then
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

--- What programs and people add to the name of a copy; the capture is the name of what was copied.
local COPIES = {
  '^%.(.+)%.un~$',
  '^(.+)%.~%d+~$',
  '^(.+)~$',
  '^%.(.+)%.s[a-w][a-z]$', -- swap files
  '^#(.+)#$',
  '^%.#(.+)$',
  '^(.+)%.bak$',
  '^(.+)%.backup$',
  '^(.+)%.copy$',
  '^(.+)%.old$',
  '^(.+)%.orig$',
  '^(.+)%.save$',
  '^(.+)%.sw[a-z]$',
  '^(.+)%.tmp$',
  '^(.+)%.%d+$',
  '^(.+) copy$',
  '^(.+) %([^()]*%)$',
}
--- Copies of copies that are seen through.
local MAX_COPIES = 4

---@param name string
---@return string? name of what it is a copy of
local function original(name)
  for _, form in ipairs(COPIES) do
    local found = name:match(form)
    if found then
      return found
    end
  end
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
    if whole and is_matched('/' .. whole, whole:match('[^/]*$')) then
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

return M

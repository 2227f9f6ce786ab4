--- Files and buffers that arguments name: where they really are, and which of them are off limits.
---
--- Receives: paths and buffer numbers as clients write them.
--- Sends: resolved paths, and verdicts "inside the root?", "sensitive?".
--- Does not know about: tools, decisions, people.

local config = require('mcp-tools.config')

local uv = vim.uv

local M = {}

--- Arguments that hold a path or a buffer, by the names that tools use, at any depth.
local KEYS = {}
for _, key in ipairs({
  'path paths filename filenames file files filepath file_path filePath dir dirs directory directories folder',
  'cwd root program old_path new_path source_path target_path',
}) do
  for name in key:gmatch('%S+') do
    KEYS[name] = 'path'
  end
end
KEYS.uri, KEYS.uris = 'uri', 'uri'
KEYS.bufnr, KEYS.bufnrs = 'buffer', 'buffer'

--- Links that lead to links; as many as the system follows.
local MAX_LINKS = 40

--- Takes `.` and `..` out of an absolute path by its text alone; right only where no part is a symlink.
---@param path string
---@return string
local function flatten(path)
  local parts = {}
  for part in path:gmatch('[^/]+') do
    if part == '..' then
      table.remove(parts)
    elseif part ~= '.' then
      parts[#parts + 1] = part
    end
  end
  return '/' .. table.concat(parts, '/')
end

--- The path of a file URI; anything else as it is.
---@param text string
---@return string
local function from_uri(text)
  local rest = text:find('://', 1, true) and text:match('^[fF][iI][lL][eE]://[^/]*(/.*)$')
  return rest and rest:gsub('%%(%x%x)', function(hex)
    return string.char(tonumber(hex, 16))
  end) or text
end

---@param path string absolute
---@param links integer followed so far
---@return string path, boolean? endless its links lead nowhere
local function follow(path, links)
  local existing, rest = path, ''
  while existing ~= '' do
    local real = uv.fs_realpath(existing)
    if real then
      return rest == '' and real or flatten(real .. rest)
    end
    local parent, name = existing:match('^(.*)/([^/]*)$')
    -- A link whose target does not exist yet: what is written to it lands there.
    local target = name ~= '' and uv.fs_readlink(existing)
    if target then
      if links >= MAX_LINKS then
        return flatten(path), true
      end
      return follow((target:sub(1, 1) == '/' and target or parent .. '/' .. target) .. rest, links + 1)
    end
    existing, rest = parent, '/' .. name .. rest
  end
  return flatten(rest)
end

--- The absolute form of a path, with symlinks resolved, so that a new file is judged by the folder that it would really
--- land in.
---@param path string relative ones count from the working directory; or a file URI
---@return string path
---@return boolean? endless its links lead in a circle
function M.resolve(path)
  path = from_uri(path)
  if path == '~' or path:sub(1, 2) == '~/' then
    path = uv.os_homedir() .. path:sub(2)
  elseif path:sub(1, 1) ~= '/' then
    path = uv.cwd() .. '/' .. path
  end
  return follow(path, 0)
end

local real_root, root_of

--- The project's root with its links resolved. One that was resolved stays what it was: when it is made a link later,
--- what lies in it is outside.
---@param root string
---@return string
function M.real_root(root)
  if root_of ~= root then
    local real = uv.fs_realpath(root)
    if not real then
      return root
    end
    real_root, root_of = real, root
  end
  return real_root
end

--- Is a resolved path the root or below it?
---@param path string resolved
---@param root string
---@return boolean
function M.inside(path, root)
  root = M.real_root(root)
  return path == root or vim.startswith(path, root:sub(-1) == '/' and root or root .. '/')
end

---@class mcp-tools.Patterns `sensitive.patterns`, sorted by how they are matched; most need no glob
---@field names table<string, true> whole names
---@field endings string[] of names
---@field folders string[] that a path goes through
---@field tails string[] of paths
---@field globs { glob: vim.lpeg.Pattern, name_only: boolean }[]

local patterns, patterns_of

local PLAIN = '[^%*%?%[%]{}/\\]+'

--- Patterns, sorted anew when the option changes. Letter case is ignored: on some file systems `.ENV` is `.env`.
---@return mcp-tools.Patterns
local function compiled()
  local option = config.get().sensitive.patterns
  if patterns_of == option then
    return patterns
  end
  local sorted = { names = {}, endings = {}, folders = {}, tails = {}, globs = {} }
  for _, pattern in ipairs(option) do
    pattern = pattern:lower()
    local ending = pattern:match('^%*(' .. PLAIN .. ')$')
    local folder = pattern:match('^%*%*/(' .. PLAIN .. ')/%*%*$')
    local tail = pattern:match('^%*%*(/' .. PLAIN .. '/' .. PLAIN .. ')$')
    if pattern:match('^' .. PLAIN .. '$') then
      sorted.names[pattern] = true
    elseif ending then
      table.insert(sorted.endings, ending)
    elseif folder then
      table.insert(sorted.folders, '/' .. folder .. '/')
    elseif tail then
      table.insert(sorted.tails, tail)
    else
      local name_only = not pattern:find('/', 1, true)
      table.insert(sorted.globs, { glob = vim.glob.to_lpeg(pattern), name_only = name_only })
    end
  end
  patterns, patterns_of = sorted, option
  return patterns
end

--- Does a pattern of `sensitive.patterns` match a path?
---@param path string
---@return boolean
function M.sensitive(path)
  local sorted = compiled()
  local lower = path:lower()
  local name = lower:match('[^/]*$')
  if sorted.names[name] then
    return true
  end
  for _, ending in ipairs(sorted.endings) do
    if name:sub(-#ending) == ending then
      return true
    end
  end
  local anchored = lower:sub(1, 1) == '/' and lower or '/' .. lower
  for _, folder in ipairs(sorted.folders) do
    if anchored:find(folder, 1, true) then
      return true
    end
  end
  for _, tail in ipairs(sorted.tails) do
    if anchored:sub(-#tail) == tail then
      return true
    end
  end
  for _, entry in ipairs(sorted.globs) do
    if entry.glob:match(entry.name_only and name or lower) then
      return true
    end
  end
  return false
end

---@class mcp-tools.Place
---@field given string as the arguments have it
---@field path string? resolved; nil for a buffer without a file
---@field bad string? why it cannot be judged
---@field sensitive boolean
---@field unclear boolean? a tool may take it for another path

--- Does a tool that expands it come somewhere else?
---@param text string
local function is_unclear(text)
  if text:find('`', 1, true) or text:find('^~[^/]') then
    return true
  end
  if text:find('$', 1, true) then
    for name in text:gmatch('%$[{%(]?([%w_]+)') do
      if vim.env[name] then
        return true
      end
    end
  end
  return false
end

---@param given string
---@return mcp-tools.Place
local function place_of_path(given)
  local plain = from_uri(given)
  if plain:find('%z') then
    return { given = given, bad = 'a path with a NUL byte', sensitive = true }
  end
  local path, endless = M.resolve(plain)
  if endless then
    return { given = given, path = path, bad = 'a link that leads in a circle', sensitive = true }
  end
  return {
    given = given,
    path = path,
    sensitive = M.sensitive(path) or plain ~= path and M.sensitive(plain),
    unclear = is_unclear(plain) or nil,
  }
end

local function place_of_buffer(bufnr)
  if type(bufnr) ~= 'number' or not vim.api.nvim_buf_is_valid(bufnr) then
    return nil -- the tool says so better
  end
  local name = vim.api.nvim_buf_get_name(bufnr)
  local marked = vim.b[bufnr].sensitive == true
  if name == '' or vim.bo[bufnr].buftype ~= '' then
    return marked and { given = 'buffer ' .. bufnr, sensitive = true } or nil
  end
  local place = place_of_path(name)
  place.sensitive = place.sensitive or marked
  return place
end

---@param places mcp-tools.Place[]
---@param kind 'path'|'uri'|'buffer'
---@param value any
local function add(places, kind, value)
  if kind == 'buffer' then
    places[#places + 1] = place_of_buffer(value)
  elseif type(value) == 'string' and value ~= '' then
    local scheme = kind == 'uri' and value:match('^(%a[%w+.-]*):')
    if not scheme or scheme:lower() == 'file' then
      places[#places + 1] = place_of_path(value)
    end
  end
end

---@param places mcp-tools.Place[]
---@param value table
local function collect(places, value)
  for key, item in pairs(value) do
    local kind = KEYS[key]
    if type(item) == 'table' then
      for _, one in ipairs(kind and item or {}) do
        add(places, kind, one)
      end
      collect(places, item)
    elseif kind then
      add(places, kind, item)
    end
  end
end

--- Every file and buffer that arguments name.
---@param args table
---@return mcp-tools.Place[] sorted
function M.named_by(args)
  local places = {}
  collect(places, args)
  if #places > 1 then
    table.sort(places, function(a, b)
      return (a.path or a.given) < (b.path or b.given)
    end)
  end
  return places
end

return M

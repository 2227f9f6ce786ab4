--- Files and buffers that arguments name: where they really are, and which of them are off limits.
---
--- Receives: paths and buffer numbers as clients write them.
--- Sends: resolved paths, and verdicts "inside the root?", "sensitive?".
--- Does not know about: tools, decisions, people.

local config = require('mcp-tools.config')

local uv = vim.uv

local M = {}

--- Arguments that hold a path or a buffer, by the names that tools use.
local PATH_KEYS = { 'path', 'paths', 'filename', 'file', 'files', 'dir', 'cwd', 'program' }
local BUFFER_KEYS = { 'bufnr', 'bufnrs' }

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

--- The absolute form of a path, with symlinks of its existing part resolved, so that a new file is judged by the
--- folder that it would really land in.
---@param path string relative ones count from the working directory
---@return string
function M.resolve(path)
  path = path:gsub('^file://', ''):gsub('^~/', uv.os_homedir() .. '/')
  if path:sub(1, 1) ~= '/' then
    path = uv.cwd() .. '/' .. path
  end
  local existing, rest = path, ''
  while existing ~= '' do
    local real = uv.fs_realpath(existing)
    if real then
      return flatten(real .. rest)
    end
    local parent, name = existing:match('^(.*)/([^/]*)$')
    existing, rest = parent, '/' .. name .. rest
  end
  return flatten(rest)
end

--- Is a resolved path the root or below it?
---@param path string resolved
---@param root string
---@return boolean
function M.inside(path, root)
  root = uv.fs_realpath(root) or root
  return path == root or vim.startswith(path, root:sub(-1) == '/' and root or root .. '/')
end

local globs, globs_of

--- Compiled patterns, remade when the option changes. Letter case is ignored: on some file systems `.ENV` is `.env`.
local function compiled()
  local patterns = config.get().sensitive.patterns
  if globs_of ~= patterns then
    globs, globs_of = {}, patterns
    for i, pattern in ipairs(patterns) do
      globs[i] = { glob = vim.glob.to_lpeg(pattern:lower()), name_only = not pattern:find('/', 1, true) }
    end
  end
  return globs
end

--- Does a pattern of `sensitive.patterns` match a path?
---@param path string
---@return boolean
function M.sensitive(path)
  local lower = path:lower()
  local name = vim.fs.basename(lower)
  for _, entry in ipairs(compiled()) do
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

local function place_of_path(given)
  if given:find('%z') then
    return { given = given, bad = 'a path with a NUL byte', sensitive = true }
  end
  local path = M.resolve(given)
  return { given = given, path = path, sensitive = M.sensitive(path) or M.sensitive(given) }
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

local function each(value, fn)
  for _, item in ipairs(type(value) == 'table' and value or { value }) do
    fn(item)
  end
end

--- Every file and buffer that arguments name.
---@param args table
---@return mcp-tools.Place[]
function M.named_by(args)
  local places = {}
  for _, key in ipairs(PATH_KEYS) do
    if args[key] ~= nil then
      each(args[key], function(item)
        if type(item) == 'string' and item ~= '' then
          places[#places + 1] = place_of_path(item)
        end
      end)
    end
  end
  for _, key in ipairs(BUFFER_KEYS) do
    if args[key] ~= nil then
      each(args[key], function(item)
        places[#places + 1] = place_of_buffer(item)
      end)
    end
  end
  return places
end

return M

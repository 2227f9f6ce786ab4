--- Files and buffers that the arguments of a call name.
---
--- Receives: checked arguments.
--- Sends: places: where they really are, and what speaks against them.
--- Does not know about: tools, decisions, people.

local access = require('mcp-tools.files.access')
local buffer = require('mcp-tools.files.buffer')
local buffers = require('mcp-tools.editor.buffers')
local paths = require('mcp-tools.files.paths')

local uv = vim.uv

local M = {}

--- Arguments that hold a path or a buffer, by the names that tools use, at any depth: in small letters, without `_`.
local KEYS = {}
for kind, names in pairs({
  path = 'path paths file files filename filenames fname filepath filepaths dir dirs directory directories folder'
    .. ' folders cwd workdir workingdir workingdirectory root program oldpath newpath sourcepath targetpath dest'
    .. ' destination absolutepath relativepath',
  uri = 'uri uris fileuri',
  buffer = 'bufnr bufnrs buf buffer buffers',
}) do
  for name in names:gmatch('%S+') do
    KEYS[name] = kind
  end
end

--- A name that is longer is no spelling of these.
local MAX_KEY = 64
--- Of what cannot be judged, for the reason.
local MAX_SHOWN = 200
--- Files of one call: a person reads no more of them, and each takes the editor some time.
local MAX_PLACES = 128
--- Values that name none, such as addresses of other kinds, are looked at sooner.
local MAX_VALUES = 2000

---@param key any
---@return 'path'|'uri'|'buffer'|nil
local function kind_of(key)
  if type(key) ~= 'string' or #key > MAX_KEY then
    return nil
  end
  return KEYS[key] or KEYS[key:gsub('[_-]', ''):lower()]
end

---@class mcp-tools.Place
---@field given string as the arguments have it
---@field path string? resolved, or the name of what is no file; nil for a buffer without a file
---@field bad string? why it cannot be judged
---@field sensitive boolean
---@field unclear boolean? a tool may take it for another path
---@field other boolean? it is a buffer that shows no file: what is said of it counts once
---@field bufnr integer? of a buffer that shows no file

--- Does a tool that expands it come somewhere else?
---@param text string
local function is_unclear(text)
  if text:find('`', 1, true) or text:find('^~[^/]') or text:find('^[%%#<]') then
    return true
  end
  if text:find('[%*%?%[{]') then
    -- Files and folders may be called so. Where there is none, it is a pattern for others.
    for upto, name in text:gmatch('()([^/]+)') do
      if name:find('[%*%?%[{]') and not uv.fs_lstat((paths.resolve(text:sub(1, upto + #name - 1)))) then
        return true
      end
    end
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

--- What is found in one set of arguments.
---@class mcp-tools.Places
---@field list mcp-tools.Place[]
---@field seen table<string, true> kind and value: many arguments may name one file
---@field count integer values looked at
---@field marked table<string, true>? files whose buffers the person marked; looked up when there is a path
---@field beside boolean does the tool take buffer 0 for the file beside a terminal or float?

---@param places mcp-tools.Places
---@param given string
---@return mcp-tools.Place
local function place_of_path(places, given)
  local function unknown(bad)
    return { given = given:sub(1, MAX_SHOWN), bad = bad, sensitive = true }
  end
  if #given > 4 * paths.MAX_PATH then -- percent-encoded
    return unknown(paths.TOO_LONG)
  end
  local plain, doubtful = paths.from_uri(given)
  if plain:find('%z') then
    return unknown('a path with a NUL byte')
  end
  local path, bad = paths.resolve(plain)
  if bad then
    return unknown(bad)
  end
  places.marked = places.marked or buffer.marked()
  local without = doubtful and paths.from_uri(given:match('^[^#?]*')) or plain
  return {
    given = given,
    path = path,
    sensitive = paths.sensitive(path)
      or plain ~= path and paths.sensitive(plain)
      or without ~= plain and paths.sensitive(without)
      or places.marked[path] == true,
    unclear = doubtful or is_unclear(plain) or nil,
  }
end

---@param places mcp-tools.Places
---@param bufnr any
---@return mcp-tools.Place?
local function place_of_buffer(places, bufnr)
  if type(bufnr) ~= 'number' or not vim.api.nvim_buf_is_valid(bufnr) then
    return nil -- the tool says so better
  end
  bufnr = bufnr == 0 and vim.api.nvim_get_current_buf() or bufnr
  local kind, name = buffer.kind(bufnr)
  local label, marked = 'buffer ' .. bufnr, buffer.is_marked(bufnr)
  if kind == 'unnamed' then
    return marked and { given = label, sensitive = true } or nil
  elseif kind == 'other' then
    return {
      given = label,
      path = name ~= '' and access.name(name) or label,
      sensitive = marked or buffer.is_sensitive_name(name, kind),
      unclear = true,
      other = true,
      bufnr = bufnr,
    }
  end
  local place = place_of_path(places, name)
  place.sensitive = place.sensitive or marked
  return place
end

---@param places mcp-tools.Places
---@param kind 'path'|'uri'|'buffer'
---@param value any
local function add(places, kind, value)
  local key = kind .. ' ' .. tostring(value)
  if places.seen[key] then
    return
  end
  places.seen[key] = true
  places.count = places.count + 1
  local list = places.list
  if kind == 'buffer' then
    local current = value == 0 and buffers.current()
    if current then
      list[#list + 1] = place_of_buffer(places, current)
    end
    if not current or not places.beside and current ~= vim.api.nvim_get_current_buf() then
      list[#list + 1] = place_of_buffer(places, value)
    end
  elseif type(value) == 'string' and value ~= '' then
    local scheme = kind == 'uri' and value:match('^(%a[%w+.-]*):')
    if not scheme or scheme:lower() == 'file' then
      list[#list + 1] = place_of_path(places, value)
    end
  end
end

---@param places mcp-tools.Places
local function is_too_much(places)
  return #places.list > MAX_PLACES or places.count > MAX_VALUES
end

--- What stands right below a name that means files: lists, in lists, too.
---@param places mcp-tools.Places
---@param kind 'path'|'uri'|'buffer'
---@param list table
local function add_all(places, kind, list)
  for _, item in ipairs(list) do
    if is_too_much(places) then
      return
    elseif type(item) == 'table' then
      add_all(places, kind, item)
    else
      add(places, kind, item)
    end
  end
end

---@param places mcp-tools.Places
---@param value table
local function collect(places, value)
  for key, item in pairs(value) do
    if is_too_much(places) then
      return
    end
    local kind = kind_of(key)
    if type(item) == 'table' then
      if kind then
        add_all(places, kind, item)
      end
      collect(places, item)
    elseif kind then
      add(places, kind, item)
    end
  end
end

--- Every file and buffer that arguments name.
---@param args table
---@param beside? boolean does the tool take buffer 0 for the file beside a terminal or float?
---@return mcp-tools.Place[] sorted
function M.by(args, beside)
  local places = { list = {}, seen = {}, count = 0, beside = beside == true }
  collect(places, args)
  local list = places.list
  if is_too_much(places) then
    local bad = ('more than %d, too many to judge'):format(MAX_PLACES)
    return { { given = 'the number of files that it names', bad = bad, sensitive = true } }
  end
  if #list > 1 then
    table.sort(list, function(a, b)
      return (a.path or a.given) < (b.path or b.given)
    end)
  end
  return list
end

return M

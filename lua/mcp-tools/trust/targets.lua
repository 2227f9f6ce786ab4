--- Files and buffers that the arguments of a call name.
---
--- Receives: checked arguments.
--- Sends: places: where they really are, and what speaks against them.
--- Does not know about: tools, decisions, people.

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

---@param key any
---@return 'path'|'uri'|'buffer'|nil
local function kind_of(key)
  if type(key) ~= 'string' then
    return nil
  end
  return KEYS[key] or KEYS[key:gsub('[_-]', ''):lower()]
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

--- Did the person mark the buffer of this file as sensitive?
---@param path string resolved
local function is_marked(path)
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    -- Not `vim.b`, which costs the 15-fold for each buffer.
    if vim.fn.getbufvar(bufnr, 'sensitive') == true and paths.resolve(vim.api.nvim_buf_get_name(bufnr)) == path then
      return true
    end
  end
  return false
end

---@param given string
---@return mcp-tools.Place
local function place_of_path(given)
  local plain, doubtful = paths.from_uri(given)
  if plain:find('%z') then
    return { given = given, bad = 'a path with a NUL byte', sensitive = true }
  end
  local path, endless = paths.resolve(plain)
  if endless then
    return { given = given, path = path, bad = 'a link that leads in a circle', sensitive = true }
  end
  local without = doubtful and paths.from_uri(given:match('^[^#?]*')) or plain
  return {
    given = given,
    path = path,
    sensitive = paths.sensitive(path)
      or plain ~= path and paths.sensitive(plain)
      or without ~= plain and paths.sensitive(without)
      or is_marked(path),
    unclear = doubtful or is_unclear(plain) or nil,
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
    if value == 0 then -- bundled tools take it for the file beside a terminal or a float
      local current = buffers.current()
      if current and current ~= vim.api.nvim_get_current_buf() then
        places[#places + 1] = place_of_buffer(current)
      end
    end
  elseif type(value) == 'string' and value ~= '' then
    local scheme = kind == 'uri' and value:match('^(%a[%w+.-]*):')
    if not scheme or scheme:lower() == 'file' then
      places[#places + 1] = place_of_path(value)
    end
  end
end

--- What stands right below a name that means files: lists, in lists, too.
---@param places mcp-tools.Place[]
---@param kind 'path'|'uri'|'buffer'
---@param list table
local function add_all(places, kind, list)
  for _, item in ipairs(list) do
    if type(item) == 'table' then
      add_all(places, kind, item)
    else
      add(places, kind, item)
    end
  end
end

---@param places mcp-tools.Place[]
---@param value table
local function collect(places, value)
  for key, item in pairs(value) do
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
---@return mcp-tools.Place[] sorted
function M.by(args)
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

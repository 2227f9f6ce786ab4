--- Finds key mappings and options, with the scripts that define and set them.

local buffers = require('mcp-tools.editor.buffer')
local focus = require('mcp-tools.editor.user.focus')
local garbage = require('mcp-tools.util.garbage')
local redact = require('mcp-tools.privacy.redact')
local sort = require('mcp-tools.util.sort')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

local M = {}

--- Returns a function from a script's number and a line to `file:line`. It remembers names, so it serves one call.
---@return fun(sid: integer?, line: integer?): string?
local function script()
  local names = {} ---@type table<integer, string>
  return function(sid, line)
    if not sid or sid <= 0 then
      return nil
    elseif not names[sid] then
      local found = vim.fn.getscriptinfo({ sid = sid })[1]
      names[sid] = found and vim.fn.fnamemodify(found.name, ':~') or ''
    end
    return names[sid] ~= '' and ('%s:%d'):format(names[sid], line or 0) or nil
  end
end

local MODES = { 'n', 'i', 'x', 's', 'o', 'c', 't' }

--- Maximum length of the right-hand side of a mapping, in bytes.
local MAX_RHS = 200

---@param map table as returned by `nvim_get_keymap`
---@param source fun(sid: integer?, line: integer?): string?
---@return string row
local function row_of(map, source)
  local lhs, leader = map.lhs, vim.g.mapleader
  if type(leader) == 'string' and leader ~= '' and vim.startswith(lhs, leader) then
    lhs = '<Leader>' .. lhs:sub(#leader + 1)
  end
  local info = map.callback and debug.getinfo(map.callback, 'S')
  local file = info and info.source:match('^@(.*)')
  local place = file and ('%s:%d'):format(vim.fn.fnamemodify(file, ':~'), info.linedefined) or source(map.sid, map.lnum)
  return ('%s %s%s: %s%s%s'):format(
    map.mode == ' ' and 'nvo' or map.mode,
    lhs:gsub(' ', '<Space>'),
    map.buffer ~= 0 and ' (this buffer)' or '',
    map.desc and map.desc .. ' -> ' or '',
    map.rhs and redact.line(utf8.cut(map.rhs, MAX_RHS)) or 'Lua function',
    place and (' (%s)'):format(place) or ''
  )
end

--- Returns mappings of all modes, those of the current buffer first.
---@param query string? text in the row; lower case
---@param pause fun()
---@return string[] rows
function M.mappings(query, pause)
  local rows, seen, source, bufnr = {}, {}, script(), buffers.current()
  redact.refresh(pause)
  local function add(maps)
    local sorted = sort(maps, function(a, b)
      return a.lhs < b.lhs
    end, pause)
    for _, map in ipairs(sorted) do
      local key = ('%d %s %s'):format(map.buffer, map.mode, map.lhs)
      if not seen[key] then -- one mapping of several modes
        seen[key] = true
        local row = row_of(map, source)
        if not query or (row .. map.lhs):lower():find(query, 1, true) then
          table.insert(rows, row)
        end
      end
      pause()
    end
  end
  for _, mode in ipairs(bufnr and MODES or {}) do
    add(api.nvim_buf_get_keymap(bufnr, mode))
  end
  for _, mode in ipairs(MODES) do
    pause() -- Neovim copies all mappings at once
    add(garbage.without(api.nvim_get_keymap, mode))
  end
  return rows
end

--- Maximum length of a value, in bytes.
local MAX_VALUE = 500
local SCOPES = { buf = 'buffer', win = 'window', global = 'global' }

---@param value any
---@return string
local function shown(value)
  return redact.line(utf8.cut(tostring(value), MAX_VALUE))
end

--- Returns options; without a query, those whose value is not the default.
---@param query string? an option's name or a part of it; lower case
---@param pause fun()
---@return string[] rows
function M.options(query, pause)
  local rows, source, bufnr = {}, script(), buffers.current()
  local window = bufnr and focus.window(bufnr)
  redact.refresh(pause)
  for name, about in vim.spairs(api.nvim_get_all_options_info()) do
    local where = {} -- for global-local options, the value in effect
    if not about.global_local then
      where = about.scope == 'buf' and { buf = bufnr } or about.scope == 'win' and { win = window } or {}
    end
    local ok, value = pcall(api.nvim_get_option_value, name, where) -- Neovim 0.10 lists options that it has not
    local is_wanted = value ~= about.default
    if query then
      is_wanted = name:find(query, 1, true) ~= nil or about.shortname == query
    end
    if ok and is_wanted then
      local info = api.nvim_get_option_info2(name, where)
      local place = source(info.last_set_sid, info.last_set_linenr)
      local row = ('%s=%s (%s; default %s%s)'):format(
        name,
        shown(value),
        SCOPES[about.scope],
        shown(about.default),
        place and '; set in ' .. place or ''
      )
      table.insert(rows, (name == query or about.shortname == query) and 1 or #rows + 1, row)
    end
    pause()
  end
  return rows
end

return M

--- Finds key mappings.

local buffers = require('mcp-tools.editor.buffer')
local garbage = require('mcp-tools.util.garbage')
local redact = require('mcp-tools.privacy.redact')
local script = require('mcp-tools.editor.lookup.script')
local sort = require('mcp-tools.util.sort')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

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
return function(query, pause)
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

--- Mappings: what keys do, where that was defined, and what they are said to do.
---
--- Receives: a mode; a buffer.
--- Sends: mappings, those of the buffer first.
--- Does not know about: tools.

local redact = require('mcp-tools.files.redact')
local sort = require('mcp-tools.util.sort')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

local M = {}

M.MODES = { 'n', 'i', 'x', 's', 'o', 'c', 't', 'l' }

--- Of what a mapping types.
local MAX_RHS = 200

--- Where a function or script stands.
---@param map table
---@param scripts table<integer, string> names that were looked up
---@return string?
local function source_of(map, scripts)
  if map.callback then
    local info = debug.getinfo(map.callback, 'S')
    local file = info.source:match('^@(.*)')
    return file and ('%s:%d'):format(vim.fn.fnamemodify(file, ':~'), info.linedefined) or nil
  end
  if not map.sid or map.sid <= 0 then
    return nil
  elseif not scripts[map.sid] then
    local script = vim.fn.getscriptinfo({ sid = map.sid })[1]
    scripts[map.sid] = script and vim.fn.fnamemodify(script.name, ':~') or ''
  end
  return scripts[map.sid] ~= '' and ('%s:%d'):format(scripts[map.sid], map.lnum) or nil
end

---@param map table as `nvim_get_keymap` gives it
---@param own boolean of the buffer
---@param scripts table<integer, string>
---@return table
local function entry_of(map, own, scripts)
  local lhs = map.lhs
  local leader = vim.g.mapleader
  if type(leader) == 'string' and leader ~= '' and vim.startswith(map.lhs, leader) then
    lhs = '<Leader>' .. map.lhs:sub(#leader + 1)
  end
  return {
    lhs = (lhs:gsub('^ ', '<Space>')),
    rhs = map.rhs and redact.line(utf8.cut(map.rhs, MAX_RHS)) or nil,
    lua = map.callback ~= nil or nil,
    desc = map.desc,
    buffer = own or nil,
    source = source_of(map, scripts),
  }
end

---@param entry table
---@param word string in small letters
---@return boolean
local function holds(entry, word)
  for _, text in ipairs({ entry.lhs, entry.rhs or '', entry.desc or '', entry.source or '' }) do
    if text:lower():find(word, 1, true) then
      return true
    end
  end
  return false
end

--- Mappings by their keys.
---@param mode string
---@param bufnr integer? whose own come first
---@param contains string? in keys, what they do, or where it was defined
---@param pause fun()
---@return table[]
function M.get(mode, bufnr, contains, pause)
  local list, scripts = {}, {}
  redact.refresh(pause)
  local function add(maps, own)
    local sorted = sort(maps, function(a, b)
      return a.lhs < b.lhs
    end, pause)
    for _, map in ipairs(sorted) do
      local entry = entry_of(map, own, scripts)
      if not contains or holds(entry, contains:lower()) then
        table.insert(list, entry)
      end
      pause()
    end
  end
  if bufnr then
    add(api.nvim_buf_get_keymap(bufnr, mode), true)
  end
  add(api.nvim_get_keymap(mode), false)
  return list
end

return M

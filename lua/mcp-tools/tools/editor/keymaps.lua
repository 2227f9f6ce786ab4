--- Lists mappings.

local buffers = require('mcp-tools.editor.buffer')
local garbage = require('mcp-tools.util.garbage')
local result = require('mcp-tools.editor.result')
local redact = require('mcp-tools.privacy.redact')
local sort = require('mcp-tools.util.sort')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

local MODES = { 'n', 'i', 'x', 's', 'o', 'c', 't', 'l' }

--- Maximum length of the right-hand side of a mapping, in bytes.
local MAX_RHS = 200

--- Returns the file and line of a function or script.
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

---@param map table as returned by `nvim_get_keymap`
---@param own boolean local to the buffer
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
---@param word string lower case
---@return boolean
local function contains_word(entry, word)
  for _, text in ipairs({ entry.lhs, entry.rhs or '', entry.desc or '', entry.source or '' }) do
    if text:lower():find(word, 1, true) then
      return true
    end
  end
  return false
end

--- Returns mappings, sorted by their keys.
---@param mode string
---@param bufnr integer? buffer whose local mappings come first
---@param contains string? text in the keys, the action, the description or the source
---@param pause fun()
---@return table[]
local function mappings(mode, bufnr, contains, pause)
  local list, scripts = {}, {}
  redact.refresh(pause)
  local function add(maps, own)
    local sorted = sort(maps, function(a, b)
      return a.lhs < b.lhs
    end, pause)
    for _, map in ipairs(sorted) do
      local entry = entry_of(map, own, scripts)
      if not contains or contains_word(entry, contains:lower()) then
        table.insert(list, entry)
      end
      pause()
    end
  end
  if bufnr then
    add(api.nvim_buf_get_keymap(bufnr, mode), true)
  end
  pause() -- Neovim copies all mappings at once
  add(garbage.without(api.nvim_get_keymap, mode), false)
  return list
end

return {
  name = 'editor_keymaps',
  title = 'Mappings',
  description = 'Lists the mappings of a mode, buffer-local ones first: keys (lhs), action (rhs, or lua = true for a'
    .. ' function), description, and the file and line that define them. For built-in keys, use editor_help.',
  args = {
    mode = { type = 'string', enum = MODES, default = 'n', description = 'n normal, i insert, x visual, …' },
    contains = {
      type = 'string',
      description = 'Only mappings with this text in keys, action, description or file; case-insensitive',
      maxLength = 200,
    },
    path = {
      type = 'string',
      description = 'Open file whose buffer-local mappings are included; default: the current one',
    },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0 },
    limit = { type = 'integer', description = 'Maximum number of results', default = 50, minimum = 1, maximum = 1000 },
    offset = { type = 'integer', description = 'Number of mappings to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  run = function(ctx, args)
    local bufnr
    if args.path == nil and args.bufnr == nil then
      bufnr = buffers.current()
    else
      local found, err = buffers.find(args)
      if not found then
        return nil, err
      end
      bufnr = found.bufnr
    end
    local items, about = result.page(mappings(args.mode, bufnr, args.contains, time_slice.of(ctx)), args)
    about.mode, about.keymaps = args.mode, items
    return result.utf8(about)
  end,
}

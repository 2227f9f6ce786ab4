--- Quickfix and location lists: reads redacted entries, and writes lists.
---
--- A stack holds ten lists, and a new one removes the oldest. So we keep only a few and replace our oldest.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local position = require('mcp-tools.editor.position')
local redact = require('mcp-tools.privacy.redact')
local sanitize = require('mcp-tools.util.sanitize')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

local M = {}

--- Maximum size of an entry's text in bytes.
local MAX_TEXT = 1000

--- Name of each entry type.
local KINDS = { E = 'error', W = 'warning', I = 'info', N = 'note' }

---@class mcp-tools.QuickfixList
---@field window integer? window of a location list; nil: the quickfix list
---@field nr integer? position on the stack; 0 or nil: the current list

---@class mcp-tools.QuickfixEntry
---@field path string?
---@field line integer?
---@field column integer? in characters if the file is loaded
---@field end_line integer?
---@field end_column integer?
---@field kind string?
---@field text string?
---@field withheld string? why there is no text

--- Returns a window of the current file, otherwise the current window.
---@return integer
local function current_window()
  local bufnr, here = buffers.current(), api.nvim_get_current_win()
  if not bufnr or api.nvim_win_get_buf(here) == bufnr then
    return here
  end
  return vim.fn.win_findbuf(bufnr)[1] or here
end

--- Returns the list that arguments name.
---@param args { list: 'quickfix'|'location', nr: integer? }
---@return mcp-tools.QuickfixList
function M.find(args)
  return { window = args.list == 'location' and current_window() or nil, nr = args.nr }
end

--- Returns fields of a list.
---@param list mcp-tools.QuickfixList
---@param what table
---@return table
function M.get(list, what)
  what = vim.tbl_extend('keep', what, not what.id and { nr = list.nr or 0 } or {})
  if list.window then
    return vim.fn.getloclist(list.window, what)
  end
  return vim.fn.getqflist(what)
end

--- Returns a range of a list's items without copying the whole list. Neovim searches each one from the first.
---@param list mcp-tools.QuickfixList
---@param id integer
---@param first integer 1-based
---@param last integer
---@param pause fun() called between items
---@return table[] items fewer if the list is deleted meanwhile
function M.items(list, id, first, last, pause)
  local items = {}
  for i = first, last do
    items[#items + 1] = (M.get(list, { id = id, idx = i, items = 0 }).items or {})[1]
    pause()
  end
  return items
end

--- Returns whether an entry's text may be shown. An entry without a file is a note, unless it has a position: then its
--- buffer was deleted, and its file is unknown.
---@param item table
---@param root string
---@return { ok: boolean, why: string?, path: string? }
local function verdict_of(item, root)
  if item.bufnr == 0 then
    local is_note = item.lnum == 0 and item.valid == 0
    return { ok = is_note, why = not is_note and 'not a plain file' or nil }
  end
  if not api.nvim_buf_is_valid(item.bufnr) then -- deleted during a pause
    return { ok = false, why = 'not a plain file' }
  end
  local ok, why = access.buffer(item.bufnr, root)
  local path = utf8.repair(access.shown(api.nvim_buf_get_name(item.bufnr), root))
  return { ok = ok, why = why, path = path }
end

--- Returns the redacted text of an item: the line of its file as that file is shown, anything else as output.
---@param item table
---@param pause fun()
---@return string
local function text_of(item, pause)
  local is_loaded = item.lnum > 0 and api.nvim_buf_is_loaded(item.bufnr)
  local line = is_loaded and api.nvim_buf_get_lines(item.bufnr, item.lnum - 1, item.lnum, false)[1]
  return (line and trim(line) == trim(item.text) and redact.quoted or redact.line)(item.text, pause)
end

---@param item table
---@param line integer
---@param column integer 1-based byte; 0: none
---@param known mcp-tools.position.Known
---@return integer?
local function column_of(item, line, column, known)
  if column <= 0 then
    return nil
  elseif item.bufnr == 0 or item.vcol == 1 or line <= 0 then
    return column
  end
  return position.column(item.bufnr, line - 1, column - 1, known)
end

--- Converts items to redacted entries.
---@param items table[]
---@param root string
---@param pause fun() called between pieces of work
---@return mcp-tools.QuickfixEntry[]
function M.entries(items, root, pause)
  local entries, verdicts, known = {}, {}, position.known()
  redact.refresh(pause)
  for i, item in ipairs(items) do
    local verdict = verdicts[item.bufnr]
    if not verdict then
      verdict = verdict_of(item, root)
      verdicts[item.bufnr] = item.bufnr > 0 and verdict or nil
    end
    local text = verdict.ok and text_of(item, pause) or nil
    entries[i] = {
      path = verdict.path,
      line = item.lnum > 0 and item.lnum or nil,
      column = column_of(item, item.lnum, item.col, known),
      end_line = item.end_lnum > 0 and item.end_lnum or nil,
      end_column = column_of(item, item.end_lnum, item.end_col, known),
      kind = KINDS[item.type:upper()],
      text = text and utf8.cut((utf8.repair(text)), MAX_TEXT),
      withheld = verdict.why,
    }
    pause()
  end
  return entries
end

local TYPES = {}
for type, kind in pairs(KINDS) do
  TYPES[kind] = type
end

--- Converts a column in characters to bytes if the file is loaded.
---@param bufnr integer?
---@param line integer?
---@param column integer?
---@return integer?
local function byte_of(bufnr, line, column)
  local text = bufnr and line and column and api.nvim_buf_get_lines(bufnr, line - 1, line, false)[1]
  local byte = text and vim.fn.byteidxcomp((text:gsub('%z', '\n')), column - 1) -- it does not accept NUL
  return byte and (byte >= 0 and byte + 1 or #text + 1) or column
end

--- Converts an entry to an item for `setqflist()`. Line breaks and invisible characters are made visible.
---@param entry mcp-tools.QuickfixEntry
---@param loaded integer? loaded buffer of its path
---@return table
function M.item(entry, loaded)
  return {
    bufnr = loaded,
    filename = not loaded and entry.path or nil,
    lnum = entry.line,
    col = byte_of(loaded, entry.line, entry.column),
    end_lnum = entry.end_line,
    end_col = byte_of(loaded, entry.end_line, entry.end_column),
    type = entry.kind and TYPES[entry.kind] or nil,
    text = sanitize.line((entry.text or ''):gsub('[\r\n]+', ' ')),
  }
end

--- Maximum number of entries of a list that is appended to.
M.MAX_ENTRIES = 10000

---@alias mcp-tools.QuickfixKind 'mcp-tools'|'mcp-tools: tests'

---@param list mcp-tools.QuickfixList
---@return integer
local function capacity(list)
  if vim.fn.exists('&chistory') == 0 then
    return 10
  end
  return list.window and (vim.wo[list.window] --[[@as table]]).lhistory or vim.o.chistory
end

--- Returns our list on a stack.
---@param list mcp-tools.QuickfixList
---@param kind mcp-tools.QuickfixKind
---@return integer? id
---@return integer total number of lists on the stack
local function own_list(list, kind)
  local total = M.get({ window = list.window }, { nr = '$' }).nr --[[@as integer]]
  for nr = 1, total do
    local about = M.get(list, { nr = nr, id = 0, context = 0 })
    if type(about.context) == 'table' and about.context.kind == kind then
      return about.id, total
    end
  end
  return nil, total
end

--- Returns whether one of our lists is on the stack.
---@param list mcp-tools.QuickfixList
---@param kind mcp-tools.QuickfixKind
---@return boolean
function M.has_own(list, kind)
  return own_list(list, kind) ~= nil
end

--- Returns whether a new list would remove a list of the user from the stack.
---@param list mcp-tools.QuickfixList
---@param kind mcp-tools.QuickfixKind
---@return boolean
function M.is_full(list, kind)
  local id, total = own_list(list, kind)
  return not id and total >= capacity(list)
end

--- Writes items to a list, without opening a window or moving the cursor.
---@param list mcp-tools.QuickfixList
---@param action ' '|'a'|'r' add a new list, append to the current one, replace its items
---@param what { title: string?, items: table[], id: integer?, nr: '$'?, context: any }
---@return boolean ok false: it cannot be changed now
function M.change(list, action, what)
  if list.window then
    return vim.fn.setloclist(list.window, {}, action, what) == 0
  end
  return vim.fn.setqflist({}, action, what) == 0
end

--- Creates a list, in place of the earlier one of its kind, and makes it the current one.
---@param list mcp-tools.QuickfixList
---@param what { title: string, items: table[] }
---@param kind mcp-tools.QuickfixKind
---@return boolean ok
function M.new(list, what, kind)
  local id = own_list(list, kind)
  what = vim.tbl_extend('error', what, { context = { kind = kind } })
  if not id then
    return M.change(list, ' ', vim.tbl_extend('error', what, { nr = '$' }))
  elseif not M.change(list, 'r', vim.tbl_extend('error', what, { id = id })) then
    return false
  end
  local nr = M.get(list, { id = id, nr = 0 }).nr
  local command = ('silent %d%shistory'):format(nr, list.window and 'l' or 'c')
  return (pcall(api.nvim_win_call, list.window or 0, function()
    vim.cmd(command)
  end))
end

return M

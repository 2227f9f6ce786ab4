--- Clients' lists on the user's stacks of quickfix and location lists.
---
--- A stack holds ten lists, and a new one removes the oldest. So we keep only a few and replace our oldest. Neovim
--- creates a buffer for each file of a list and keeps it; buffers of our lists are deleted with the list.

local in_lists = require('mcp-tools.editor.buffer.in_lists')
local quickfix = require('mcp-tools.editor.quickfix')

local api = vim.api

local M = {}

--- Maximum number of our lists of one kind on a stack.
local MAX_OWN = 3
--- Maximum number of entries of a list that is appended to.
M.MAX_ENTRIES = 10000

---@alias mcp-tools.QuickfixKind 'mcp-tools'|'mcp-tools: tests'

--- Buffers that were created for a list, by stack and list id.
---@type table<string, { list: mcp-tools.QuickfixList, id: integer, buffers: integer[] }>
local made = {}
local count = 0

---@param list mcp-tools.QuickfixList
---@return mcp-tools.QuickfixList
local function stack_of(list)
  return { window = list.window }
end

---@param list mcp-tools.QuickfixList
---@return integer
local function capacity(list)
  if vim.fn.exists('&chistory') == 0 then
    return 10
  end
  return list.window and vim.wo[list.window].lhistory or vim.o.chistory
end

--- Returns the ids of our lists on a stack, oldest first.
---@param list mcp-tools.QuickfixList
---@param kind mcp-tools.QuickfixKind
---@return integer[] ids
---@return integer total number of lists on the stack
local function own_lists(list, kind)
  local own, total = {}, quickfix.get(stack_of(list), { nr = '$' }).nr
  for nr = 1, total do
    local about = quickfix.get(stack_of(list), { nr = nr, id = 0, context = 0 })
    local context = about.context
    if type(context) == 'table' and context.kind == kind then
      table.insert(own, { id = about.id, number = context.number })
    end
  end
  table.sort(own, function(a, b)
    return a.number < b.number
  end)
  return vim.tbl_map(function(entry)
    return entry.id
  end, own), total
end

--- Returns whether one of our lists is on the stack.
---@param list mcp-tools.QuickfixList
---@param kind mcp-tools.QuickfixKind
---@return boolean
function M.has_own(list, kind)
  return #own_lists(list, kind) > 0
end

--- Returns whether a new list would remove a list of the user from the stack.
---@param list mcp-tools.QuickfixList
---@param kind mcp-tools.QuickfixKind
---@return boolean
function M.is_full(list, kind)
  local ids, total = own_lists(list, kind)
  return #ids == 0 and total >= capacity(list)
end

---@param bufnr integer
local function drop(bufnr)
  local is_unused = api.nvim_buf_is_valid(bufnr)
    and not api.nvim_buf_is_loaded(bufnr)
    and not vim.bo[bufnr].buflisted
    and not in_lists.has(bufnr)
  if is_unused then
    pcall(api.nvim_buf_delete, bufnr, { force = true })
  end
end

--- Drops the buffers of deleted lists.
local function sweep()
  for key, entry in pairs(made) do
    local has_window = not entry.list.window or api.nvim_win_is_valid(entry.list.window)
    if not has_window or quickfix.get(entry.list, { id = entry.id }).id ~= entry.id then
      made[key] = nil
      vim.iter(entry.buffers):each(drop)
    end
  end
end

--- Writes a list and notes which buffers are created.
---@param list mcp-tools.QuickfixList
---@param action ' '|'a'|'r'
---@param what table
---@return integer? id of the list
local function set(list, action, what)
  sweep()
  local before = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    before[bufnr] = true
  end
  if not quickfix.set(list, action, what) then
    return nil
  end
  local id = what.id or quickfix.get(stack_of(list), { nr = 0, id = 0 }).id
  local key = ('%d:%d'):format(list.window or 0, id)
  local known = made[key] or { list = stack_of(list), id = id, buffers = {} }
  local old = action == 'a' and {} or known.buffers
  known.buffers = action == 'a' and known.buffers or {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if not before[bufnr] then
      table.insert(known.buffers, bufnr)
    end
  end
  if #old > 0 then
    local used = {}
    for _, item in ipairs(quickfix.get(stack_of(list), { id = id, items = 0 }).items) do
      used[item.bufnr] = true
    end
    for _, bufnr in ipairs(old) do
      if used[bufnr] then
        table.insert(known.buffers, bufnr)
      else
        drop(bufnr)
      end
    end
  end
  made[key] = known
  return id
end

--- Creates a list and makes it the current one.
---@param list mcp-tools.QuickfixList
---@param what { title: string, items: table[] }
---@param kind mcp-tools.QuickfixKind
---@param max? integer maximum number of lists of this kind
---@return boolean ok
function M.new(list, what, kind, max)
  local ids, total = own_lists(list, kind)
  count = count + 1
  what = vim.tbl_extend('error', what, { context = { kind = kind, number = count } })
  if #ids < (max or MAX_OWN) and total < capacity(list) or #ids == 0 then
    return set(list, ' ', vim.tbl_extend('error', what, { nr = '$' })) ~= nil
  end
  local id = ids[1]
  if not set(list, 'r', vim.tbl_extend('error', what, { id = id })) then
    return false
  end
  local nr = quickfix.get(stack_of(list), { id = id, nr = 0 }).nr
  local command = ('silent %d%shistory'):format(nr, list.window and 'l' or 'c')
  return pcall(api.nvim_win_call, list.window or 0, function()
    vim.cmd(command)
  end)
end

--- Changes the current list.
---@param list mcp-tools.QuickfixList
---@param action 'a'|'r'
---@param what { title: string?, items: table[] }
---@return boolean ok
function M.change(list, action, what)
  return set(list, action, what) ~= nil
end

return M

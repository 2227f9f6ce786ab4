--- Lists that are made for clients on the user's stacks of quickfix and location lists.
---
--- A stack holds ten lists, and a new one pushes the oldest off. So only a few lists are ours, and the next one takes
--- the place of the oldest of them. Neovim makes a buffer for each file of a list and keeps it; ours go with the list.

local in_lists = require('mcp-tools.editor.buffer.in_lists')
local quickfix = require('mcp-tools.editor.quickfix')

local api = vim.api

local M = {}

--- Maximum number of lists of one kind on a stack.
local MAX_OWN = 3
--- Maximum number of entries of a list that is appended to.
M.MAX_ENTRIES = 10000

---@alias mcp-tools.QuickfixKind 'mcp-tools'|'mcp-tools: tests'

--- Buffers that were made for a list, by stack and id of the list.
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

--- Ids of our lists on a stack, oldest first.
---@param list mcp-tools.QuickfixList
---@param kind mcp-tools.QuickfixKind
---@return integer[] ids
---@return integer total lists on the stack
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
  return vim.tbl_map(function(each)
    return each.id
  end, own), total
end

--- Is one of our lists on the stack?
---@param list mcp-tools.QuickfixList
---@param kind mcp-tools.QuickfixKind
---@return boolean
function M.has_own(list, kind)
  return #own_lists(list, kind) > 0
end

--- Would a new list push a list of the user off the stack?
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

--- Drops buffers of lists that are gone.
local function sweep()
  for key, each in pairs(made) do
    local is_there = not each.list.window or api.nvim_win_is_valid(each.list.window)
    if not is_there or quickfix.get(each.list, { id = each.id }).id ~= each.id then
      made[key] = nil
      vim.iter(each.buffers):each(drop)
    end
  end
end

--- Changes a list, and notes which buffers come into being by it.
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

--- Makes a list that is the current one then.
---@param list mcp-tools.QuickfixList
---@param what { title: string, items: table[] }
---@param kind mcp-tools.QuickfixKind
---@param max? integer lists of this kind
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

--- The undo tree of a buffer: its states, by sequence number of `undotree()`, and their texts.
---
--- States other than the current one are read from a copy, which gets the tree through an undo file: in the buffer
--- itself, the user would see the text change, and `changedtick` and marks would change.

local errors = require('mcp-tools.errors')
local time_slice = require('mcp-tools.util.time_slice')

local api = vim.api

local M = {}

---@param seq integer
---@return mcp-tools.Error
local function missing(seq)
  return errors.new('not_found', ('there is no undo state %d'):format(seq))
end

--- Runs an Ex command in a buffer.
---@param bufnr integer
---@param command string
---@return string? fault
local function run_in(bufnr, command)
  local ok, thrown = pcall(api.nvim_buf_call, bufnr, function()
    vim.cmd(command)
  end)
  return not ok and errors.plain(thrown) or nil
end

---@param copy integer?
local function drop(copy)
  if copy and api.nvim_buf_is_valid(copy) then
    api.nvim_buf_delete(copy, { force = true })
  end
end

--- Creates a copy of a buffer with its undo tree.
---@param bufnr integer
---@param lines string[]
---@param pause fun()
---@param ctx mcp-tools.Ctx? its cancellation deletes the copy
---@return integer? copy
---@return mcp-tools.Error? err
local function copy_of(bufnr, lines, pause, ctx)
  local file, tick = vim.fn.tempname(), api.nvim_buf_get_changedtick(bufnr)
  local copy
  if ctx then
    ctx:on_cancel(function()
      vim.fn.delete(file)
      drop(copy)
    end)
  end
  local name = vim.fn.fnameescape(file)
  local fault = run_in(bufnr, 'silent noautocmd wundo! ' .. name)
  pause()
  copy = api.nvim_create_buf(false, true)
  vim.bo[copy].undolevels = -1
  api.nvim_buf_set_lines(copy, 0, -1, false, lines)
  vim.bo[copy].undolevels = math.max(vim.bo[bufnr].undolevels, vim.go.undolevels, 1000)
  pause()
  fault = fault or run_in(copy, 'silent noautocmd rundo ' .. name)
  vim.fn.delete(file)
  if not api.nvim_buf_is_loaded(bufnr) or api.nvim_buf_get_changedtick(bufnr) ~= tick then
    fault = 'the buffer has changed; try again'
  end
  if fault then
    drop(copy)
    return nil, errors.new('busy', ('cannot read the undo tree: %s'):format(fault))
  end
  return copy
end

--- Returns the texts of states without changing the buffer.
---@param bufnr integer loaded
---@param seqs integer[]
---@param ctx? mcp-tools.Ctx of a coroutine, which pauses between pieces of work
---@return string[][]? texts in the order of `seqs`
---@return mcp-tools.Error? err
function M.texts(bufnr, seqs, ctx)
  local pause = ctx and time_slice.of(ctx) or function() end
  local tree = vim.fn.undotree(bufnr)
  local now = api.nvim_buf_get_lines(bufnr, 0, -1, false)
  local others = vim.tbl_filter(function(seq)
    return seq ~= tree.seq_cur
  end, seqs)
  for _, seq in ipairs(others) do
    if seq > tree.seq_last then
      return nil, missing(seq)
    end
  end
  local copy, err
  if #others > 0 then
    copy, err = copy_of(bufnr, now, pause, ctx)
    if not copy then
      return nil, err
    end
  end
  local texts = {} ---@type string[][]?
  for i, seq in ipairs(seqs) do
    texts[i] = now
    if seq ~= tree.seq_cur then
      local fault = run_in(copy, ('silent noautocmd undo %d'):format(seq))
      if fault then
        texts, err = nil, missing(seq)
        break
      end
      texts[i] = api.nvim_buf_get_lines(copy, 0, -1, false)
    end
    pause()
  end
  drop(copy)
  return texts, err
end

---@class mcp-tools.UndoStep
---@field seq integer
---@field parent integer the state before it
---@field at integer seconds since the epoch
---@field save integer? number of the write of this state
---@field is_applied boolean? whether the current text contains it

--- Returns the steps of the undo tree.
---@param bufnr integer
---@return table<integer, mcp-tools.UndoStep> steps by sequence number
---@return integer current state
function M.steps(bufnr)
  local tree, steps = vim.fn.undotree(bufnr), {}
  local function add(entries, parent)
    for _, entry in ipairs(entries) do
      add(entry.alt or {}, parent)
      steps[entry.seq] = { seq = entry.seq, parent = parent, at = entry.time, save = entry.save }
      parent = entry.seq
    end
  end
  add(tree.entries, 0)
  local step = steps[tree.seq_cur]
  while step do
    step.is_applied, step = true, steps[step.parent]
  end
  return steps, tree.seq_cur
end

--- Returns the state of the last write, 0 if there was none.
---@param bufnr integer
---@return integer seq
function M.saved(bufnr)
  local last = vim.fn.undotree(bufnr).save_last
  for seq, step in pairs(M.steps(bufnr)) do
    if step.save == last then
      return seq
    end
  end
  return 0
end

return M

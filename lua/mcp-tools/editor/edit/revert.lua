--- An edit of an agent, taken back: what of it is still there, whatever was changed around it since.

local buffers = require('mcp-tools.editor.buffer')
local changes = require('mcp-tools.editor.edit.changes')
local edit = require('mcp-tools.editor.edit')
local errors = require('mcp-tools.errors')
local hunk_list = require('mcp-tools.editor.text.hunks')
local open = require('mcp-tools.editor.buffer.open')
local unmake = require('mcp-tools.editor.edit.unmake')

local api = vim.api

local M = {}

---@class mcp-tools.Reverted
---@field hunks integer that were taken back
---@field left integer that were not, since their lines were changed again

---@param hunk mcp-tools.Hunk of the way back
---@return boolean
local function is_back(hunk)
  return hunk.is_there == true
end

---@param change mcp-tools.Change
---@param bufnr integer
---@param is_open boolean
---@param cb fun(done: mcp-tools.Reverted?, err: mcp-tools.Error?)
local function revert_in(change, bufnr, is_open, cb)
  local back = changes.way_back(change, api.nvim_buf_get_lines(bufnr, 0, -1, false))
  local fitting = vim.tbl_filter(function(hunk)
    return not hunk.changed
  end, back)
  local name = buffers.shown(bufnr)
  if vim.iter(back):all(is_back) then
    return cb(nil, errors.new('stale', ('what the edit made of %s is taken back already'):format(name)))
  elseif #fitting == 0 then
    return cb(nil, errors.new('stale', ('what the edit made of %s has been changed since'):format(name)))
  end
  local item = { bufnr = bufnr, edits = hunk_list.edits(fitting), changedtick = api.nvim_buf_get_changedtick(bufnr) }
  edit.apply_all({ item }, { write = not is_open }, function(files, err)
    if not files then
      return cb(nil, err)
    end
    change.reverted = true
    cb({ hunks = #fitting, left = #back - #fitting })
  end)
end

--- Takes an edit back. Open files stay unsaved, others are written. A file that it made is deleted, if nobody has
--- changed it: the person is asked before.
---@param change mcp-tools.Change
---@param cb fun(done: mcp-tools.Reverted?, err: mcp-tools.Error?) on the main loop
function M.run(change, cb)
  if change.is_new then
    return unmake.run(change.path, changes.after(change), function(err)
      if err then
        return cb(nil, err)
      end
      change.reverted = true
      cb({ hunks = #change.hunks, left = 0 })
    end)
  end
  local bufnr = change.bufnr
  if not bufnr or not api.nvim_buf_is_loaded(bufnr) or api.nvim_buf_get_name(bufnr) ~= change.path then
    bufnr = buffers.of_path(change.path)
  end
  if bufnr then
    return revert_in(change, bufnr, not buffers.is_unseen(bufnr), cb)
  end
  open.load(change.path, function(loaded, err, new)
    if not loaded then
      return cb(nil, err)
    end
    revert_in(change, loaded, not new, function(...)
      if new then
        open.drop(loaded)
      end
      cb(...)
    end)
  end)
end

return M

--- Reverts an agent's edit as far as its lines are unchanged, even if the surrounding text has changed.

local buffers = require('mcp-tools.editor.buffer')
local history = require('mcp-tools.editor.edit.history')
local edit = require('mcp-tools.editor.edit')
local errors = require('mcp-tools.errors')
local hunk_list = require('mcp-tools.editor.text.hunks')
local open = require('mcp-tools.editor.buffer.open')
local delete_created = require('mcp-tools.editor.edit.delete_created')

local api = vim.api

local M = {}

---@class mcp-tools.Reverted
---@field hunks integer number of reverted hunks
---@field left integer number of hunks whose lines have changed since

---@param hunk mcp-tools.Hunk a reverse hunk
---@return boolean
local function is_reverted(hunk)
  return hunk.is_there == true
end

---@param change mcp-tools.Change
---@param bufnr integer
---@param is_open boolean
---@param cb fun(done: mcp-tools.Reverted?, err: mcp-tools.Error?)
local function revert_in(change, bufnr, is_open, cb)
  local back = history.reverse_hunks(change, api.nvim_buf_get_lines(bufnr, 0, -1, false))
  local fitting = vim.tbl_filter(function(hunk)
    return not hunk.changed
  end, back)
  local name = buffers.shown(bufnr)
  if vim.iter(back):all(is_reverted) then
    return cb(nil, errors.new('stale', ('this change to %s has already been reverted'):format(name)))
  elseif #fitting == 0 then
    return cb(nil, errors.new('stale', ('cannot revert: %s was changed after this edit'):format(name)))
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

--- Reverts an edit. Open files stay unsaved, others are written. A file that the edit created is deleted if it has not
--- changed; the caller has asked the user.
---@param change mcp-tools.Change
---@param cb fun(done: mcp-tools.Reverted?, err: mcp-tools.Error?) on the main loop
function M.run(change, cb)
  if change.is_new then
    return delete_created(change.path, history.after(change), function(err)
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

--- History of agents' edits in this editor, with the text before each.

local hunk_list = require('mcp-tools.editor.text.hunks')
local identity = require('mcp-tools.util.session').identity
local paths = require('mcp-tools.files.paths')

local api = vim.api

local M = {}

--- Maximum number of edits kept, and of bytes in all; the oldest are dropped first.
local MAX_EDITS, MAX_BYTES = 500, 32 * 1024 * 1024

---@class mcp-tools.Change
---@field id integer
---@field at integer seconds since the epoch
---@field call string id of the call
---@field tool string
---@field client { name: string?, version: string? }
---@field owner string? identity of the client
---@field path string
---@field bufnr integer?
---@field steps integer[]? first and last sequence number in the undo tree
---@field is_new boolean whether it created the file
---@field hunks mcp-tools.Hunk[] of the text before
---@field before string[]
---@field reverted boolean?
---@field reverts mcp-tools.Change[]? the edits that it reverts
---@field parts mcp-tools.Change[]? the edits of a file that this one joins
---@field private bytes integer

---@type mcp-tools.Change[] oldest first
local kept = {}
local last_id, bytes_kept = 0, 0

--- Returns the hunks of an edit with their lines.
---@param before string[]
---@param made mcp-tools.EditHunk[]
---@param after string[]
---@return mcp-tools.Hunk[]
local function with_lines(before, made, after)
  local hunks, shift = {}, 0
  for i, hunk in ipairs(made) do
    local now = hunk.added > 0 and hunk.line or hunk.line + 1
    local start = now - shift
    hunks[i] = {
      start = start,
      count = hunk.removed,
      old = vim.list_slice(before, start, start + hunk.removed - 1),
      new = vim.list_slice(after, now, now + hunk.added - 1),
    }
    shift = shift + hunk.added - hunk.removed
  end
  return hunks
end

---@param lines string[]
---@return integer
local function bytes_of(lines)
  local bytes = #lines * 16
  for _, line in ipairs(lines) do
    bytes = bytes + #line
  end
  return bytes
end

---@class mcp-tools.ChangeFields
---@field path string
---@field bufnr integer? if the file is open
---@field steps integer[]? as in `mcp-tools.Change`
---@field before string[]
---@field after string[]
---@field hunks mcp-tools.EditHunk[]
---@field is_new boolean?

--- Adds an edit of a call.
---@param ctx mcp-tools.Ctx? edits without a call are not kept
---@param fields mcp-tools.ChangeFields
---@return integer? id nil: not kept
function M.note(ctx, fields)
  if not ctx or not ctx.call or #fields.hunks == 0 then
    return
  end
  local hunks = with_lines(fields.before, fields.hunks, fields.after)
  local bytes = bytes_of(fields.before)
  for _, hunk in ipairs(hunks) do
    bytes = bytes + bytes_of(hunk.new)
  end
  if bytes > MAX_BYTES then
    return
  end
  last_id = last_id + 1
  table.insert(kept, {
    id = last_id,
    at = os.time(),
    call = ctx.call.id,
    tool = ctx.call.name,
    client = ctx.client,
    owner = identity(ctx),
    path = fields.path,
    bufnr = fields.bufnr,
    steps = fields.steps,
    is_new = fields.is_new == true,
    before = fields.before,
    hunks = hunks,
    bytes = bytes,
  })
  bytes_kept = bytes_kept + bytes
  while #kept > MAX_EDITS or bytes_kept > MAX_BYTES do
    bytes_kept = bytes_kept - table.remove(kept, 1).bytes
  end
  return last_id
end

--- Returns whether a client made an edit: by session or, without one, by name; callers in the editor by their host.
---@param change mcp-tools.Change
---@param ctx mcp-tools.Ctx|mcp-tools.Call
---@return boolean
function M.is_of(change, ctx)
  return change.owner ~= nil and change.owner == identity(ctx)
end

--- Returns the edits, newest first.
---@param where? { path: string?, bufnr: integer? } only those of a buffer, or of a file or directory
---@return mcp-tools.Change[]
function M.list(where)
  local name, resolved = where and where.path or '', {}
  local wanted = vim.startswith(name, '/') and paths.resolve(name)
  local function is_wanted(change)
    if not where or where.bufnr and change.bufnr == where.bufnr then
      return true
    end
    local path = resolved[change.path] or paths.resolve(change.path)
    resolved[change.path] = path
    return wanted and change.path ~= '' and (path == wanted or vim.startswith(path, wanted .. '/')) or false
  end
  return vim.iter(kept):rev():filter(is_wanted):totable()
end

--- Returns an edit by id.
---@param id integer
---@return mcp-tools.Change?
function M.find(id)
  return vim.iter(kept):find(function(change)
    return change.id == id
  end)
end

--- Returns the text after an edit.
---@param change mcp-tools.Change
---@return string[]
function M.after(change)
  return hunk_list.applied(change.before, change.hunks, function()
    return true
  end)
end

--- Returns the hunks that revert an edit in the current text. Those whose lines have changed since are marked.
---@param change mcp-tools.Change
---@param now string[]
---@return mcp-tools.Hunk[]
function M.reverse_hunks(change, now)
  local back, shift = {}, 0
  for i, hunk in ipairs(change.hunks) do
    back[i] = { start = hunk.start + shift, count = #hunk.new, old = hunk.new, new = hunk.old }
    shift = shift + #hunk.new - hunk.count
  end
  hunk_list.follow(back, M.after(change), now)
  return back
end

--- Returns the loaded buffer in which an edit was made.
---@param change mcp-tools.Change
---@return integer?
function M.buffer(change)
  local bufnr = change.bufnr
  local is_same = bufnr and api.nvim_buf_is_loaded(bufnr) and api.nvim_buf_get_name(bufnr) == change.path
  return is_same and bufnr or nil
end

--- Returns where an edit is now.
---@param change mcp-tools.Change
---@return integer line the first one
---@return boolean undone with `u` or by a revert, as far as that can be determined
function M.place(change)
  local bufnr = M.buffer(change)
  local now = bufnr and api.nvim_buf_get_lines(bufnr, 0, -1, false) or M.after(change)
  local back, undone = M.reverse_hunks(change, now), true
  for _, hunk in ipairs(back) do
    undone = undone and hunk.is_there == true
  end
  if not bufnr or change.is_new then
    undone = change.reverted == true
  end
  return back[1].start, undone
end

--- Updates the paths of edits after a file or directory was moved.
---@param from string resolved
---@param to string resolved
function M.moved(from, to)
  for _, change in ipairs(kept) do
    if change.path == from or vim.startswith(change.path, from .. '/') then
      change.path = to .. change.path:sub(#from + 1)
    end
  end
end

--- Marks an edit as reverted or not, and the edits that it reverts as the opposite.
---@param change mcp-tools.Change
---@param is_reverted boolean
local function mark(change, is_reverted)
  change.reverted = is_reverted or nil
  for _, original in ipairs(change.reverts or {}) do
    mark(original, not is_reverted)
  end
end

--- Notes that an edit was reverted.
---@param change mcp-tools.Change of the history, or made for the revert
---@param by integer? id of the edit that reverted it
function M.note_revert(change, by)
  local edits = change.parts or { change }
  for _, edit in ipairs(edits) do
    mark(edit, true)
  end
  local revert = by and M.find(by)
  if revert then
    revert.reverts = edits
  end
end

return M

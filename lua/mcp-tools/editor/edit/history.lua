--- History of agents' edits in this editor, with the text before each, and before a client's session first changed a
--- buffer.

local hunk_list = require('mcp-tools.editor.text.hunks')

local M = {}

--- Maximum number of edits kept, and of bytes in all; the oldest are dropped first.
local MAX_EDITS, MAX_BYTES = 500, 32 * 1024 * 1024

---@class mcp-tools.Change
---@field id integer
---@field at integer seconds since the epoch
---@field tool string
---@field client { name: string?, version: string? }
---@field session string?
---@field path string
---@field bufnr integer?
---@field is_new boolean whether it created the file
---@field hunks mcp-tools.Hunk[] of the text before
---@field before string[]
---@field reverted boolean?
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
    tool = ctx.call.name,
    client = ctx.client,
    session = ctx.session,
    path = fields.path,
    bufnr = fields.bufnr,
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

--- Returns whether a client made an edit: in this session, or, without sessions, under its name.
---@param change mcp-tools.Change
---@param ctx mcp-tools.Ctx
---@return boolean
function M.is_of(change, ctx)
  if ctx.session or change.session then
    return ctx.session == change.session
  end
  return ctx.client.name == change.client.name
end

--- Returns all edits, newest first.
---@return mcp-tools.Change[]
function M.list()
  local list = {}
  for i = #kept, 1, -1 do
    table.insert(list, kept[i])
  end
  return list
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

-- Baselines -----------------------------------------------------------------------------------------------------------

---@class mcp-tools.Baseline
---@field session string?
---@field bufnr integer
---@field lines string[]
---@field bytes integer

---@type mcp-tools.Baseline[] oldest first
local baselines = {}
local baseline_bytes = 0

---@param i integer
local function drop_baseline(i)
  baseline_bytes = baseline_bytes - table.remove(baselines, i).bytes
end

--- Keeps the lines of a buffer, unless the session has changed the buffer before.
---@param session string?
---@param bufnr integer
---@param lines string[] must not be modified afterwards
function M.note_baseline(session, bufnr, lines)
  local bytes = bytes_of(lines)
  if M.baseline(session, bufnr) or bytes > MAX_BYTES then
    return
  end
  table.insert(baselines, { session = session, bufnr = bufnr, lines = lines, bytes = bytes })
  baseline_bytes = baseline_bytes + bytes
  while baseline_bytes > MAX_BYTES do
    drop_baseline(1)
  end
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = bufnr,
    once = true,
    desc = 'mcp-tools: drop the baselines of a deleted buffer',
    callback = function()
      for i = #baselines, 1, -1 do
        if baselines[i].bufnr == bufnr then
          drop_baseline(i)
        end
      end
    end,
  })
end

--- Returns the lines of a buffer before the session first changed it, or nil if they are not known.
---@param session string?
---@param bufnr integer
---@return string[]?
function M.baseline(session, bufnr)
  local found = vim.iter(baselines):find(function(each)
    return each.session == session and each.bufnr == bufnr
  end)
  return found and found.lines
end

return M

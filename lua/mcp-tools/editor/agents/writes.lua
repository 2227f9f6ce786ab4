--- Watches for the files that agents write after a proposal, and updates their buffers.

local buffers = require('mcp-tools.editor.buffer')
local change = require('mcp-tools.editor.edit.change')
local history = require('mcp-tools.editor.edit.history')
local disk = require('mcp-tools.editor.buffer.disk')
local disk_writes = require('mcp-tools.editor.agents.disk_writes')
local read = require('mcp-tools.privacy.read')
local text = require('mcp-tools.files.text')
local text_diff = require('mcp-tools.editor.text.diff')
local timer = require('mcp-tools.util.timer')
local watch = require('mcp-tools.editor.watch')

local api = vim.api

local M = {}

--- Time in which an agent writes an accepted file, in ms.
local WRITE_TIMEOUT_MS = 30000
--- Maximum number of files watched at a time, and remembered per session; the oldest are dropped first.
local MAX_WRITTEN = 64
--- Delay after the last event until a file is read, in ms: files are often written in several steps.
local DEBOUNCE_MS = 50
--- Maximum size of a file that is compared with the accepted text, in bytes.
local MAX_BYTES = 32 * 1024 * 1024

--- Tool name in the history: agents write with a tool of their own.
local TOOL = 'proposal'

---@param one string[]
---@param other string[]
---@return boolean
local function are_same(one, other)
  return #one == #other and text_diff.same_lines(one, other) == #one
end

--- Returns the accepted hunks by lines of the new text.
---@param proposal mcp-tools.Proposal
---@return mcp-tools.EditHunk[]
local function hunks_of(proposal)
  local hunks, shift = {}, 0
  for _, hunk in ipairs(proposal.hunks) do
    if hunk.verdict == 'accepted' and not hunk.changed and not hunk.form then
      local line = hunk.start + shift - (#hunk.new == 0 and 1 or 0)
      table.insert(hunks, { line = line, removed = hunk.count, added = #hunk.new })
      shift = shift + #hunk.new - hunk.count
    end
  end
  return hunks
end

--- Returns a function that adds the write to the history. It keeps the earlier text, which the write overwrites.
---@param session mcp-tools.agents.Session
---@param accepted mcp-tools.ReviewOutcome of one file
---@return fun(now: string[]): boolean? note call it with the written text; true: the history has it
local function expect(session, accepted)
  local proposal = accepted.proposals[1]
  local lines = proposal:final() or {}
  local before, path, is_new, hunks = proposal.base, proposal.path, proposal.is_new, hunks_of(proposal)
  local client = { name = session.client ~= '' and session.client or session.agent, version = session.version }
  return function(now)
    if #hunks == 0 or not are_same(lines, now) then
      return -- another process has written it, or the agent has not finished
    end
    local ctx = { call = { name = TOOL }, client = client, session = session.key } --[[@as any]]
    local bufnr = buffers.of_path(path)
    local fields = { path = path, bufnr = bufnr, before = before, hunks = hunks, is_new = is_new }
    local id = history.note(ctx, fields, function(first, count)
      return vim.list_slice(lines, first, first + count - 1)
    end)
    change.announce(path, bufnr, hunks, ctx, id)
    return true
  end
end

--- Updates the buffer of a written file. A buffer with unsaved changes only takes the hunks that the user accepted.
---@param path string resolved
---@param cb fun()
---@param accepted mcp-tools.ReviewOutcome?
local function update_buffer(path, cb, accepted)
  local bufnr = buffers.of_path(path)
  if not bufnr then
    return cb()
  end
  disk.refresh(bufnr, function(state)
    local wanted = accepted and accepted.files[path]
    if state ~= 'conflict' or not wanted then
      return cb()
    end
    read.read(path, MAX_BYTES, function(bytes)
      if bytes == wanted and api.nvim_buf_is_loaded(bufnr) then
        accepted.proposals[1]:sync()
        disk_writes.merge(bufnr, wanted, accepted)
      end
      cb()
    end)
  end)
end

--- Calls `note` with the current text of a file.
---@param path string resolved
---@param note fun(now: string[])
local function with_text(path, note)
  local bufnr = buffers.of_path(path)
  if bufnr then
    return note(api.nvim_buf_get_lines(bufnr, 0, -1, false))
  end
  read.read(path, MAX_BYTES, function(bytes)
    if bytes then
      note((text.lines_of(text.decode(bytes))))
    end
  end)
end

---@class mcp-tools.agents.AwaitedWrite
---@field path string resolved
---@field finish fun()

---@type mcp-tools.agents.AwaitedWrite[] oldest first
local awaited = {}

---@param awaited_write mcp-tools.agents.AwaitedWrite
local function stop_awaiting(awaited_write)
  for i, entry in ipairs(awaited) do
    if entry == awaited_write then
      table.remove(awaited, i)
      return entry.finish()
    end
  end
end

--- Moves a path to the end of a bounded list without duplicates.
---@param list string[] the oldest first
---@param path string
local function remember(list, path)
  for i, entry in ipairs(list) do
    if entry == path then
      table.remove(list, i)
      break
    end
  end
  table.insert(list, path)
  if #list > MAX_WRITTEN then
    table.remove(list, 1)
  end
end

--- Watches for an agent's write of a file.
---@param session mcp-tools.agents.Session
---@param path string resolved
---@param accepted mcp-tools.ReviewOutcome?
function M.watch(session, path, accepted)
  session.data.written = session.data.written or {}
  remember(session.data.written, path)
  for _, earlier in ipairs(awaited) do
    if earlier.path == path then
      stop_awaiting(earlier)
      break
    end
  end
  if #awaited >= MAX_WRITTEN then
    stop_awaiting(awaited[1])
  end
  local note = accepted and expect(session, accepted)
  local entry, debounce
  --- Reads the file. If its text is not the accepted one, the agent may not have finished.
  local function look()
    read.read(path, MAX_BYTES, function(bytes)
      if not accepted or bytes == accepted.files[path] then
        stop_awaiting(entry)
      end
      update_buffer(path, function()
        if note then
          with_text(path, function(now)
            note = note and not note(now) and note or nil
          end)
        end
      end, accepted)
    end)
  end
  local stop = watch.file(path, function()
    if debounce then
      debounce:stop()
    end
    debounce = timer.after(DEBOUNCE_MS, look)
  end)
  local expiry = timer.after(WRITE_TIMEOUT_MS, function()
    stop_awaiting(entry)
  end)
  entry = {
    path = path,
    finish = function()
      stop()
      expiry:stop()
      if debounce then
        debounce:stop()
      end
    end,
  }
  table.insert(awaited, entry)
end

--- Updates the buffers of the files that a session has written.
---@param session mcp-tools.agents.Session
---@param cb fun() never before this returns
function M.refresh(session, cb)
  local list = session.data.written or {}
  local waiting = #list + 1
  local function done()
    waiting = waiting - 1
    if waiting == 0 then
      cb()
    end
  end
  for _, path in ipairs(list) do
    update_buffer(path, done)
  end
  vim.schedule(done)
end

return M

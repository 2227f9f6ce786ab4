--- What companions' agents write by themselves: buffers have it as soon as it is written.

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

--- An agent writes what was accepted within so many ms; after that nobody looks out for it any more.
local WRITTEN_WITHIN = 30000
--- Files that are looked out for at a time, and that a session is taken to have written; the oldest give way.
local MAX_WRITTEN = 64
--- A file is looked at so many ms after the first sign of a change: more of it may be on its way.
local SETTLED = 50
--- Bytes of a file that is compared with what was accepted.
local MAX_BYTES = 32 * 1024 * 1024

--- What stands for the name of a tool: agents write with one of their own.
local TOOL = 'proposal'

---@param one string[]
---@param other string[]
---@return boolean
local function are_same(one, other)
  return #one == #other and text_diff.same_lines(one, other) == #one
end

--- What was accepted, by places of the new text.
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

--- Keeps in mind what is to be written: once it is, the text before is nowhere else.
---@param session mcp-tools.companion.Session
---@param accepted mcp-tools.ReviewOutcome of one file
---@return fun(now: string[]) note to be called with the text of the file, after it was written
local function expect(session, accepted)
  local proposal = accepted.proposals[1]
  local lines = proposal:final() or {}
  local before, path, is_new, hunks = proposal.base, proposal.path, proposal.is_new, hunks_of(proposal)
  local client = { name = session.client ~= '' and session.client or session.companion, version = session.version }
  return function(now)
    if #hunks == 0 or not are_same(lines, now) then
      return -- somebody else has written it
    end
    local ctx = { call = { name = TOOL }, client = client, session = session.key } --[[@as mcp-tools.Ctx]]
    local bufnr = buffers.of_path(path)
    local fields = { path = path, bufnr = bufnr, before = before, hunks = hunks, is_new = is_new }
    local id = history.note(ctx, fields, function(first, count)
      return vim.list_slice(lines, first, first + count - 1)
    end)
    change.announce(path, bufnr, hunks, ctx, id)
  end
end

--- What the agent has written is for the person to see: their buffer has it. If it has changes of its own, it takes
--- over what the person has accepted, and no more.
---@param path string resolved
---@param cb fun()
---@param accepted mcp-tools.ReviewOutcome?
local function take_in(path, cb, accepted)
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
        disk_writes.take(bufnr, wanted, accepted)
      end
      cb()
    end)
  end)
end

--- Tells of what is written, as the person has it now.
---@param path string resolved
---@param note fun(now: string[])
local function tell(path, note)
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

---@type { path: string, finish: fun() }[] files that are looked out for, the oldest first
local awaited = {}

---@param path string resolved
local function stop_awaiting(path)
  for i, each in ipairs(awaited) do
    if each.path == path then
      table.remove(awaited, i)
      return each.finish()
    end
  end
end

--- Adds to a list without doubles, which has a limit.
---@param list string[] the oldest first
---@param path string
local function remember(list, path)
  for i, each in ipairs(list) do
    if each == path then
      table.remove(list, i)
      break
    end
  end
  table.insert(list, path)
  if #list > MAX_WRITTEN then
    table.remove(list, 1)
  end
end

--- Looks out for the moment at which an agent writes a file.
---@param session mcp-tools.companion.Session
---@param path string resolved
---@param accepted mcp-tools.ReviewOutcome?
function M.await(session, path, accepted)
  session.data.written = session.data.written or {}
  remember(session.data.written, path)
  stop_awaiting(path)
  if #awaited >= MAX_WRITTEN then
    stop_awaiting(awaited[1].path)
  end
  local seen, note = false, accepted and expect(session, accepted)
  local stop = watch.file(path, function()
    if not seen then
      seen = true
      timer.after(SETTLED, function()
        stop_awaiting(path)
        take_in(path, function()
          if note then
            tell(path, note)
          end
        end, accepted)
      end)
    end
  end)
  local over = timer.after(WRITTEN_WITHIN, function()
    stop_awaiting(path)
  end)
  table.insert(awaited, {
    path = path,
    finish = function()
      stop()
      over:stop()
    end,
  })
end

--- Buffers of files that a session has written have what it wrote, before something is said of them.
---@param session mcp-tools.companion.Session
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
    take_in(path, done)
  end
  vim.schedule(done)
end

return M

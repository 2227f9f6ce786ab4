--- Proposals of agents: a text for a file that the user accepts, rejects or changes before the agent writes the file
--- itself.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local change = require('mcp-tools.editor.edit.change')
local disk = require('mcp-tools.editor.buffer.disk')
local disk_writes = require('mcp-tools.editor.agents.disk_writes')
local file_text = require('mcp-tools.files.text')
local notify = require('mcp-tools.notify')
local paths = require('mcp-tools.files.paths')
local read = require('mcp-tools.privacy.read')
local review = require('mcp-tools.editor.review')
local sensitive = require('mcp-tools.privacy.sensitive')
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
    if #hunks == 0 or not text_diff.are_equal(lines, now) then
      return -- another process has written it, or the agent has not finished
    end
    local ctx = { call = { name = TOOL }, client = client, session = session.key } --[[@as any]]
    change.publish_change(ctx, {
      path = path,
      bufnr = buffers.of_path(path),
      before = before,
      after = lines,
      hunks = hunks,
      is_new = is_new,
    })
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
      note((file_text.lines_of(file_text.decode(bytes))))
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

--- Watches for an agent's write of a file.
---@param session mcp-tools.agents.Session
---@param path string resolved
---@param accepted mcp-tools.ReviewOutcome?
local function watch_write(session, path, accepted)
  local written = vim.tbl_filter(function(earlier)
    return earlier ~= path
  end, session.data.written or {})
  table.insert(written, path)
  session.data.written = vim.list_slice(written, math.max(1, #written - MAX_WRITTEN + 1))
  for _, earlier in ipairs(vim.list_slice(awaited)) do
    if earlier.path == path or #awaited >= MAX_WRITTEN then
      stop_awaiting(earlier)
    end
  end
  local note = accepted and expect(session, accepted)
  local entry ---@type mcp-tools.agents.AwaitedWrite
  local debounce
  --- Reads the file. If its text is not the accepted one, the agent may not have finished.
  local function read_written()
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
    debounce = timer.after(DEBOUNCE_MS, read_written)
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

--- Time in which an agent can reconnect after a restart of the bridge, in ms.
local RECONNECT_MS = 20000

---@class mcp-tools.agents.Outcome
---@field state 'accepted'|'rejected'|'closed'|'busy' closed: ended undecided; busy: not shown
---@field text string? the accepted text
---@field partly boolean some of it was rejected or changed
---@field reason string? why it was rejected or closed
---@field quiet boolean? the agent closed it and expects no answer

---@class mcp-tools.agents.Proposal
---@field path string
---@field text string the proposed text
---@field editable boolean
---@field shown string the current proposal, without rejected hunks and with the user's changes
---@field is_abandoned boolean? the outcome is not reported
---@field quiet boolean?
---@field close fun(reason: string)

---@param session mcp-tools.agents.Session
---@return table<string, mcp-tools.agents.Proposal>
local function open_proposals(session)
  session.data.proposals = session.data.proposals or {}
  return session.data.proposals
end

---@param outcome mcp-tools.ReviewOutcome
---@param proposal mcp-tools.agents.Proposal
---@return mcp-tools.agents.Outcome
local function outcome_of(outcome, proposal)
  local text = outcome.files[proposal.path]
  local whole = text == proposal.text and #outcome.rejected == 0
  if outcome.state ~= 'accepted' then
    return { state = outcome.state, partly = false, reason = outcome.reason }
  elseif not text then
    return { state = 'rejected', partly = true, reason = outcome.reason }
  end
  return { state = 'accepted', text = text, partly = not whole }
end

--- Accepts a proposal that cannot be changed, unless the file has changed since: the agent would overwrite the changes.
---@param outcome mcp-tools.ReviewOutcome of one file
---@param proposal mcp-tools.agents.Proposal
---@param before string? earlier bytes of the file
---@param cb fun(outcome: mcp-tools.agents.Outcome)
local function accept_whole(outcome, proposal, before, cb)
  read.read(proposal.path, MAX_BYTES, function(bytes)
    local name = vim.fs.basename(proposal.path)
    if bytes ~= before then
      local reason = 'the file has changed on disk since the proposal'
      notify.warn(('%s: %s, so the proposal was rejected'):format(name, reason), 'Ask the agent again')
      return cb({ state = 'rejected', partly = false, reason = reason })
    end
    outcome.files[proposal.path] = proposal.text
    if #outcome.proposals[1].hunks > 0 then
      notify.info(('review finished: accepted; the agent writes %s'):format(name))
    end
    cb({ state = 'accepted', text = proposal.text, partly = false })
  end)
end

--- Returns the current proposal as text.
---@param proposed mcp-tools.Proposal?
---@param text string the agent's proposal
---@return string
local function shown_text(proposed, text)
  local is_touched = proposed
    and vim.iter(proposed.hunks):any(function(hunk)
      return hunk.edited or hunk.verdict == 'rejected'
    end)
  if not is_touched then
    return text
  end
  local line_break = text:find('\r\n', 1, true) and '\r\n' or '\n'
  return table.concat(proposed:proposed(), line_break) .. (text:sub(-1) == '\n' and line_break or '')
end

--- Reads the text that the agent's proposal is based on: the file, not a modified buffer.
---@param path string
---@param cb fun(base: string?, bytes: string?) `base`: only for a modified buffer; `bytes`: nil if unreadable
local function base_of(path, cb)
  read.read(path, MAX_BYTES, function(bytes)
    local bufnr = buffers.of_path(path)
    local is_modified = bufnr ~= nil and vim.bo[bufnr].modified
    cb(is_modified and bytes and file_text.decode(bytes) or nil, bytes)
  end)
end

--- Merges changes of the file that the editor has not noticed yet into the accepted text; where that is impossible, the
--- proposal cannot be applied.
---@param outcome mcp-tools.ReviewOutcome of one file
---@param before string? earlier bytes of the file
---@param cb fun()
local function merge_file_changes(outcome, before, cb)
  local proposed = outcome.proposals[1]
  local path = proposed.path
  read.read(path, MAX_BYTES, function(bytes)
    if bytes == before or not bytes then
      return cb()
    end
    local bufnr = buffers.of_path(path)
    local function finish(state)
      if state == 'conflict' or state == 'unreadable' or proposed.is_new then
        proposed:mark_gone('the file has changed on disk during review')
      elseif not bufnr then
        proposed:follow((file_text.lines_of(file_text.decode(bytes))))
      end
      local _, text = proposed:final()
      outcome.files[path], outcome.rejected = text, proposed:rejected()
      cb()
    end
    if bufnr then
      return disk.refresh(bufnr, finish)
    end
    finish()
  end)
end

--- Opens a review of a proposal. It replaces an earlier one with the same key.
---@param session mcp-tools.agents.Session
---@param key string
---@param spec { path: string, text: string, title: string?, editable: boolean? }
---@param cb fun(outcome: mcp-tools.agents.Outcome) called once, never before this returns
---@return boolean ok
---@return string? fault
---@return mcp-tools.ErrorCode? code of the fault if it is not `tool_error`
function M.open(session, key, spec, cb)
  local path, bad = paths.resolve(spec.path)
  if bad then
    return false, ('cannot resolve %s: %s'):format(spec.path, bad)
  elseif sensitive.is_sensitive(path) or sensitive.is_sensitive(spec.path) or access.marked()[path] then
    notify.info(("%s is sensitive and is not shown here; answer in the agent's terminal"):format(vim.fs.basename(path)))
    return false, 'the file is sensitive and is not shown'
  end
  local client = { name = session.client ~= '' and session.client or session.agent, session = session.key }
  local busy = review.busy(client, key)
  if busy then
    return false, busy, 'busy'
  end
  M.close(session, key, 'a newer proposal has replaced it', true)
  local handle, closed
  local proposal = { path = path, text = spec.text, shown = spec.text, editable = spec.editable ~= false }
  local ended = false
  local function finish(outcome, reviewed)
    if not ended then
      ended = true
      if open_proposals(session)[key] == proposal then
        open_proposals(session)[key] = nil
      end
      if outcome.state == 'accepted' then
        watch_write(session, path, reviewed)
      end
      if not proposal.is_abandoned then
        outcome.quiet = proposal.quiet
        cb(outcome)
      end
    end
  end
  function proposal.close(reason)
    closed = reason
    if handle then
      handle.close(reason)
    else
      vim.schedule(function()
        finish({ state = 'closed', partly = false, reason = reason })
      end)
    end
  end
  open_proposals(session)[key] = proposal
  base_of(path, function(base, bytes)
    if closed then
      return
    end
    handle = review.open({
      client = client,
      key = key,
      title = spec.title or vim.fs.basename(path),
      whole = not proposal.editable,
      saves = proposal.editable,
      no_reason = true,
      files = {
        { path = path, base = base, differs = bytes ~= spec.text, text = spec.text, editable = proposal.editable },
      },
      on_end = function(outcome)
        proposal.shown = shown_text(outcome.proposals[1], spec.text)
        if outcome.state ~= 'accepted' then
          return finish(outcome_of(outcome, proposal))
        elseif not proposal.editable then
          return accept_whole(outcome, proposal, bytes, function(result)
            finish(result, outcome)
          end)
        end
        merge_file_changes(outcome, bytes, function()
          finish(outcome_of(outcome, proposal), outcome)
        end)
      end,
    })
  end)
  return true
end

--- Closes a proposal that was answered elsewhere or is no longer needed.
---@param session mcp-tools.agents.Session
---@param key string
---@param reason string
---@param quiet? boolean the outcome states that no answer is expected
---@return mcp-tools.agents.Proposal? proposal the closed one
function M.close(session, key, reason, quiet)
  local proposal = open_proposals(session)[key]
  if proposal then
    open_proposals(session)[key] = nil
    proposal.quiet = quiet
    proposal.close(reason)
    watch_write(session, proposal.path) -- if accepted elsewhere, it is written now
  end
  return proposal
end

--- Closes the proposals of a session without answering, because the bridge has ended: the agent asks in its terminal
--- instead, and would take a late answer for a rejection.
---@param session mcp-tools.agents.Session
function M.abandon(session)
  for _, proposal in pairs(open_proposals(session)) do
    proposal.is_abandoned = true
    local name = vim.fs.basename(proposal.path)
    notify.info(("the bridge ended: answer the proposal for %s in the agent's terminal"):format(name))
  end
  M.close_all(session, 'the bridge has ended; the agent asks in its terminal')
end

--- Closes all proposals of a session.
---@param session mcp-tools.agents.Session
---@param reason string
---@return integer count
function M.close_all(session, reason)
  local count = 0
  for _, key in ipairs(vim.tbl_keys(open_proposals(session))) do
    count = count + (M.close(session, key, reason) and 1 or 0)
  end
  return count
end

---@type table<string, { data: table, expiry: mcp-tools.Timer }> by key of a disconnected session
local suspended = {}

--- Keeps the proposals of a session open while its agent reconnects.
---@param session mcp-tools.agents.Session
function M.suspend(session)
  suspended[session.key] = {
    data = session.data,
    expiry = timer.after(RECONNECT_MS, function()
      suspended[session.key] = nil
      M.close_all(session, 'the agent has disconnected')
    end),
  }
end

--- Restores the data of a session that has reconnected.
---@param session mcp-tools.agents.Session
---@return boolean resumed
function M.resume(session)
  local entry = suspended[session.key]
  if not entry then
    return false
  end
  suspended[session.key] = nil
  entry.expiry:stop()
  session.data = entry.data
  return true
end

return M

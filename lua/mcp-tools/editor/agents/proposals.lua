--- Proposals of companions' agents: a text for a file, which the person accepts, rejects or changes before the agent
--- itself writes it.

local buffer_kind = require('mcp-tools.privacy.buffer_kind')
local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local file_text = require('mcp-tools.files.text')
local notify = require('mcp-tools.notify')
local paths = require('mcp-tools.files.paths')
local sensitive = require('mcp-tools.privacy.sensitive')
local read = require('mcp-tools.privacy.read')
local review = require('mcp-tools.editor.review')
local timer = require('mcp-tools.util.timer')
local writes = require('mcp-tools.editor.agents.writes')

local M = {}

--- An agent whose bridge was started anew is back within so many ms, or does not come back.
local BACK_WITHIN = 20000
--- Bytes of the file that a proposal is for; what is larger is not compared.
local MAX_BASE = 32 * 1024 * 1024

---@class mcp-tools.companion.Outcome
---@field state 'accepted'|'rejected'|'closed'|'busy' closed: nobody has decided; busy: nobody was asked
---@field text string? the text that is to be, of what was accepted
---@field partly boolean some of it was rejected, or changed
---@field reason string? of a rejection, or why it was closed
---@field quiet boolean? the agent has closed it itself, and does not wait to hear of it

---@class mcp-tools.companion.Proposal
---@field path string
---@field text string as it was proposed
---@field editable boolean
---@field shown string the text that is proposed now: what the person has rejected or changed is not in it any more
---@field is_abandoned boolean? nobody is told the outcome
---@field quiet boolean?
---@field close fun(reason: string)

---@param session mcp-tools.companion.Session
---@return table<string, mcp-tools.companion.Proposal>
local function open_ones(session)
  session.data.proposals = session.data.proposals or {}
  return session.data.proposals
end

---@param outcome mcp-tools.ReviewOutcome
---@param proposal mcp-tools.companion.Proposal
---@return mcp-tools.companion.Outcome
local function told(outcome, proposal)
  local text = outcome.files[proposal.path]
  local whole = text == proposal.text and #outcome.rejected == 0
  if outcome.state ~= 'accepted' then
    return { state = outcome.state, partly = false, reason = outcome.reason }
  elseif not text then
    return { state = 'rejected', partly = true, reason = outcome.reason }
  end
  return { state = 'accepted', text = text, partly = not whole }
end

--- Compares the file with what it was when an agent proposed all of its text: the agent takes no other text, and would
--- write over what others have written since.
---@param outcome mcp-tools.ReviewOutcome of one file
---@param proposal mcp-tools.companion.Proposal
---@param before string? bytes that the file had
---@param cb fun(told: mcp-tools.companion.Outcome)
local function settle_whole(outcome, proposal, before, cb)
  read.read(proposal.path, MAX_BASE, function(bytes)
    local name = vim.fs.basename(proposal.path)
    if bytes ~= before then
      local reason = 'the file has changed on the disk since it was proposed'
      notify.warn(('%s: %s; the agent is told that it was rejected'):format(name, reason), 'Ask the agent again')
      return cb({ state = 'rejected', partly = false, reason = reason })
    end
    outcome.files[proposal.path] = proposal.text
    if #outcome.proposals[1].hunks > 0 then
      notify.info(('the review is over: accepted; the agent writes %s'):format(name))
    end
    cb({ state = 'accepted', text = proposal.text, partly = false })
  end)
end

--- The text as it is proposed now.
---@param proposed mcp-tools.Proposal?
---@param text string as the agent proposed it
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

--- The text that the agent has made its proposal from: of a buffer with changes it is not that of the buffer.
---@param path string
---@param cb fun(base: string?, bytes: string?) text that is no buffer's; what the file has, as far as it can be read
local function base_of(path, cb)
  read.read(path, MAX_BASE, function(bytes)
    local bufnr = buffers.of_path(path)
    local is_modified = bufnr ~= nil and vim.bo[bufnr].modified
    cb(is_modified and bytes and file_text.decode(bytes) or nil, bytes)
  end)
end

--- Somebody else may have written the file, and the editor have heard nothing of it yet: what they wrote stays, or
--- what was accepted cannot be.
---@param outcome mcp-tools.ReviewOutcome of one file
---@param before string? bytes that the file had
---@param cb fun()
local function catch_up(outcome, before, cb)
  local proposed = outcome.proposals[1]
  local path = proposed.path
  read.read(path, MAX_BASE, function(bytes)
    if bytes == before or not bytes then
      return cb()
    end
    local bufnr = buffers.of_path(path)
    local function finish(state)
      if state == 'conflict' or proposed.is_new then
        proposed:leave('the file has changed on the disk meanwhile')
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

--- Shows a proposal. One of the same key takes the place of an earlier one.
---@param session mcp-tools.companion.Session
---@param key string
---@param spec { path: string, text: string, title: string?, editable: boolean? }
---@param cb fun(outcome: mcp-tools.companion.Outcome) called once, never before this returns
---@return boolean ok
---@return string? fault
---@return mcp-tools.ErrorCode? code of the fault, where it is none of the tool
function M.open(session, key, spec, cb)
  local path, bad = paths.resolve(spec.path)
  if bad then
    return false, ('it cannot be told where %s is: %s'):format(spec.path, bad)
  elseif sensitive.is_sensitive(path) or sensitive.is_sensitive(spec.path) or buffer_kind.marked()[path] then
    notify.info(("answer in the agent's terminal: %s is sensitive and is not shown here"):format(vim.fs.basename(path)))
    return false, 'the file is sensitive; nothing of it is shown or told here'
  end
  local client = { name = session.client ~= '' and session.client or session.companion, session = session.key }
  local busy = review.busy(client, key)
  if busy then
    return false, busy, 'busy'
  end
  M.close(session, key, 'a later proposal has taken its place', true)
  local handle, closed
  local proposal = { path = path, text = spec.text, shown = spec.text, editable = spec.editable ~= false }
  local ended = false
  local function finish(outcome, reviewed)
    if not ended then
      ended = true
      if open_ones(session)[key] == proposal then
        open_ones(session)[key] = nil
      end
      if outcome.state == 'accepted' then
        writes.await(session, path, reviewed)
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
  open_ones(session)[key] = proposal
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
          return finish(told(outcome, proposal))
        elseif not proposal.editable then
          return settle_whole(outcome, proposal, bytes, function(settled)
            finish(settled, outcome)
          end)
        end
        catch_up(outcome, bytes, function()
          finish(told(outcome, proposal), outcome)
        end)
      end,
    })
  end)
  return true
end

--- The agent takes a proposal back: it was answered elsewhere, or is not wanted any more.
---@param session mcp-tools.companion.Session
---@param key string
---@param reason string
---@param quiet? boolean the outcome says that nobody waits for it
---@return mcp-tools.companion.Proposal? proposal that was open
function M.close(session, key, reason, quiet)
  local proposal = open_ones(session)[key]
  if proposal then
    open_ones(session)[key] = nil
    proposal.quiet = quiet
    proposal.close(reason)
    writes.await(session, proposal.path) -- what was accepted elsewhere is written now
  end
  return proposal
end

--- The bridge is gone, and nobody can be answered: the agent still asks in its terminal, and an answer that gets there
--- at the last moment would be a no.
---@param session mcp-tools.companion.Session
function M.abandon(session)
  for _, proposal in pairs(open_ones(session)) do
    proposal.is_abandoned = true
    local name = vim.fs.basename(proposal.path)
    notify.info(("the bridge ended: answer the proposal for %s in the agent's terminal"):format(name))
  end
  M.close_all(session, 'the bridge is gone; the agent asks in its terminal')
end

--- The same for all of a session.
---@param session mcp-tools.companion.Session
---@param reason string
---@return integer count
function M.close_all(session, reason)
  local count = 0
  for _, key in ipairs(vim.tbl_keys(open_ones(session))) do
    count = count + (M.close(session, key, reason) and 1 or 0)
  end
  return count
end

---@type table<string, { data: table, expiry: mcp-tools.Timer }> key of a session that may come back
local away = {}

--- The bridge is gone, and the agent with it for a moment: what it has proposed stays before the person.
---@param session mcp-tools.companion.Session
function M.suspend(session)
  away[session.key] = {
    data = session.data,
    expiry = timer.after(BACK_WITHIN, function()
      away[session.key] = nil
      M.close_all(session, 'the agent is gone')
    end),
  }
end

--- A session is there. When it has come back, it has all that it had.
---@param session mcp-tools.companion.Session
---@return boolean back
function M.resume(session)
  local entry = away[session.key]
  if not entry then
    return false
  end
  away[session.key] = nil
  entry.expiry:stop()
  session.data = entry.data
  return true
end

return M

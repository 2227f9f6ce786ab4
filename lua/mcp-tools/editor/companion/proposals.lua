--- Proposals of companions' agents: a text for a file, which the person accepts, rejects or changes before the agent
--- itself writes it.
---
--- Receives: the session, a key of its own for each proposal, path and text; its wish to take one back.
--- Sends: one outcome for each proposal. A window that is closed is never a yes.
--- Does not know about: agents, the shape of answers. It writes no file.

local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local paths = require('mcp-tools.files.paths')
local read = require('mcp-tools.files.read')
local review = require('mcp-tools.editor.review')
local watch = require('mcp-tools.editor.watch')

local timer = require('mcp-tools.util.timer')

local api = vim.api

local M = {}

--- An agent writes what was accepted within so many ms; after that nobody looks out for it any more.
local WRITTEN_WITHIN = 30000
--- Bytes of the file that a proposal is for; what is larger is not compared.
local MAX_BASE = 32 * 1024 * 1024

---@class mcp-tools.companion.Outcome
---@field state 'accepted'|'rejected'|'closed' closed: nobody has decided
---@field text string? the text that is to be, of what was accepted
---@field partly boolean some of it was rejected, or changed
---@field reason string? of a rejection, or why it was closed

---@class mcp-tools.companion.Proposal
---@field path string
---@field text string as it was proposed
---@field editable boolean
---@field close fun(reason: string)

---@param session mcp-tools.companion.Session
---@return table<string, mcp-tools.companion.Proposal>
local function open_ones(session)
  session.data.proposals = session.data.proposals or {}
  return session.data.proposals
end

--- Is what the agent has written for the person to see: their buffer has it, if it has no changes of its own.
---@param path string resolved
local function take_in(path)
  local bufnr = buffers.of_path(path)
  if bufnr then
    disk.refresh(bufnr, function() end)
  end
end

--- Looks out for the moment at which an agent writes a file.
---@param path string resolved
local function await_write(path)
  local stop
  local over = timer.after(WRITTEN_WITHIN, function()
    stop()
  end)
  local seen = false
  stop = watch.file(path, function()
    if not seen then
      seen = true
      timer.after(20, function() -- more of it may be on its way
        over:stop()
        stop()
        take_in(path)
      end)
    end
  end)
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
  elseif not proposal.editable and not whole then
    -- It would write all of it.
    local first = outcome.rejected[1]
    return { state = 'rejected', partly = true, reason = first and first.reason or 'not all of it was accepted' }
  end
  return { state = 'accepted', text = text, partly = not whole }
end

--- The text that the agent has made its proposal from: of a buffer with changes it is not that of the buffer.
---@param path string
---@param cb fun(base: string?)
local function base_of(path, cb)
  local bufnr = buffers.of_path(path)
  if not bufnr or not vim.bo[bufnr].modified then
    return cb(nil)
  end
  read.read(path, MAX_BASE, function(bytes)
    cb(bytes)
  end)
end

--- Shows a proposal. One of the same key takes the place of an earlier one.
---@param session mcp-tools.companion.Session
---@param key string
---@param spec { path: string, text: string, title: string?, editable: boolean? }
---@param cb fun(outcome: mcp-tools.companion.Outcome) called once, never before this returns
---@return boolean ok
---@return string? fault
function M.open(session, key, spec, cb)
  local path, bad = paths.resolve(spec.path)
  if bad then
    return false, ('it cannot be told where %s is: %s'):format(spec.path, bad)
  elseif paths.sensitive(path) or paths.sensitive(spec.path) then
    return false, 'the file is sensitive; nothing of it is shown or told here'
  end
  M.close(session, key, 'a later proposal has taken its place')
  local handle, closed
  local proposal = { path = path, text = spec.text, editable = spec.editable ~= false }
  local ended = false
  local function finish(outcome)
    if not ended then
      ended = true
      if open_ones(session)[key] == proposal then
        open_ones(session)[key] = nil
      end
      if outcome.state == 'accepted' then
        await_write(path)
      end
      cb(outcome)
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
  base_of(path, function(base)
    if closed then
      return
    end
    handle = review.open({
      client = { name = session.client ~= '' and session.client or session.companion, session = session.key },
      key = key,
      title = spec.title or vim.fs.basename(path),
      files = { { path = path, base = base, text = spec.text, editable = proposal.editable } },
      on_end = function(outcome)
        finish(told(outcome, proposal))
      end,
    })
  end)
  return true
end

--- The agent takes a proposal back: it was answered elsewhere, or is not wanted any more.
---@param session mcp-tools.companion.Session
---@param key string
---@param reason string
---@return mcp-tools.companion.Proposal? proposal that was open
function M.close(session, key, reason)
  local proposal = open_ones(session)[key]
  if proposal then
    open_ones(session)[key] = nil
    proposal.close(reason)
    await_write(proposal.path) -- what was accepted elsewhere is written now
  end
  return proposal
end

--- The same for all of a session.
---@param session mcp-tools.companion.Session
---@param reason string
---@return integer count
function M.close_all(session, reason)
  local count = 0
  for key in pairs(vim.deepcopy(open_ones(session))) do
    count = count + (M.close(session, key, reason) and 1 or 0)
  end
  return count
end

--- Files that a session has written are looked at now, before something is said of them.
---@param session mcp-tools.companion.Session
---@param paths_of string[]
---@param cb fun()
function M.refresh(session, paths_of, cb)
  local waiting = 1
  local function done()
    waiting = waiting - 1
    if waiting == 0 then
      cb()
    end
  end
  for _, path in ipairs(paths_of) do
    local bufnr = buffers.of_path(path)
    if bufnr and api.nvim_buf_is_loaded(bufnr) then
      waiting = waiting + 1
      disk.refresh(bufnr, done)
    end
  end
  done()
end

return M

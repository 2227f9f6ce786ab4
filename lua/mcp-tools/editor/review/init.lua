--- Reviews, in which the user accepts, rejects or changes the proposals of agents, hunk by hunk.
---
--- The first review of the queue is shown, the others wait. Each ends once.

local config = require('mcp-tools.config')
local errors = require('mcp-tools.errors')
local log = require('mcp-tools.log')
local sessions = require('mcp-tools.util.session')
local source = require('mcp-tools.registry.source')
local texts = require('mcp-tools.editor.review.texts')
local timer = require('mcp-tools.util.timer')

local api = vim.api

local M = {}

---@class mcp-tools.ReviewFile
---@field path string absolute
---@field bufnr integer?
---@field base string? the text that the proposal was made for; default: the text of the buffer or file
---@field text string
---@field differs boolean? the bytes differ, so there is something to decide even if all lines are equal
---@field editable boolean? whether the user may change the proposed text (default: true)
---@field made boolean? the file was created by the applied edit; accepting its only hunk deletes it

---@class mcp-tools.ReviewOpts
---@field client { name: string?, session: string? }
---@field key string unique per client; a later review with the same key replaces it
---@field title string
---@field files mcp-tools.ReviewFile[]
---@field on_end fun(outcome: mcp-tools.ReviewOutcome) called once, on the main loop
---@field timeout integer? ms until it is closed undecided (default: never)
---@field asked boolean? the user has asked for the review, so it is shown first
---@field whole boolean? one decision for all hunks: the client accepts everything or nothing
---@field no_reason boolean? the client cannot receive the reason for a rejection
---@field saves boolean? the client writes the buffer's text with the accepted hunks to the file
---@field applied boolean? the edits are already applied, and the proposal is to revert them

--- Shows reviews. Its functions are called on the main loop; the review may already have ended.
---@class mcp-tools.Presenter
---@field is_attended fun(): boolean whether a user can review
---@field show fun(review: mcp-tools.Review) it is first in the queue
---@field update fun(review: mcp-tools.Review) it or the number of waiting reviews has changed
---@field hide fun(review: mcp-tools.Review) it has ended or is no longer first

-- One review ----------------------------------------------------------------------------------------------------------

--- closed: ended undecided. busy: not shown because too many are open.
---@alias mcp-tools.ReviewState 'accepted'|'rejected'|'closed'|'busy'

---@class mcp-tools.ReviewOutcome
---@field state mcp-tools.ReviewState accepted: at least one hunk
---@field files table<string, string> final texts of the files with accepted hunks
---@field rejected mcp-tools.Rejected[]
---@field reason string? why it was closed, busy, or rejected as a whole
---@field edited boolean whether the user has changed accepted hunks
---@field proposals mcp-tools.Proposal[]

---@class mcp-tools.Review
---@field id integer
---@field client { name: string?, session: string? }
---@field key string
---@field title string
---@field applied boolean the edits are already applied; accepting a hunk reverts it
---@field asked boolean the user has asked for the review, so it is shown first
---@field whole boolean one decision for all hunks
---@field no_reason boolean the client cannot receive the reason for a rejection
---@field saves boolean the client writes the buffer's text to the file
---@field files mcp-tools.Proposal[]
---@field ready boolean the texts are loaded
---@field ended mcp-tools.ReviewState?
---@field stops (fun())[] called at its end
---@field on_finish fun(review: mcp-tools.Review, outcome: mcp-tools.ReviewOutcome)
---@field on_touched fun(review: mcp-tools.Review)
local Review = {}
Review.__index = Review

--- Returns the number of undecided hunks.
---@return integer
function Review:undecided()
  local count = 0
  for _, file in ipairs(self.files) do
    count = count + file:undecided()
  end
  return count
end

---@param state mcp-tools.ReviewState
---@param reason string?
function Review:finish(state, reason)
  if self.ended then
    return
  end
  local outcome = { state = state, files = {}, rejected = {}, edited = false, proposals = self.files }
  for _, file in ipairs(self.files) do
    if state == 'accepted' then
      local _, text = file:final()
      outcome.files[file.path] = text
      outcome.edited = outcome.edited or file:is_edited()
    end
    local is_decided = state == 'accepted' or state == 'rejected'
    vim.list_extend(outcome.rejected, is_decided and file:rejected() or {})
  end
  if state == 'accepted' and next(outcome.files) == nil then
    outcome.state = 'rejected'
  end
  outcome.reason = reason or outcome.state == 'rejected' and outcome.rejected[1] and outcome.rejected[1].reason or nil
  self.ended = outcome.state
  for _, stop in ipairs(self.stops) do
    log.guard('the end of a review', stop)
  end
  self.on_finish(self, outcome)
end

--- Handles a verdict or a changed text: the review ends when nothing is left to decide.
function Review:touched()
  if self.ended or not self.ready then
    return
  elseif self:undecided() == 0 then
    return self:finish('accepted')
  end
  self.on_touched(self)
end

--- Accepts a hunk.
---@param file integer
---@param hunk integer
---@return boolean ok
---@return string? why_not
function Review:accept(file, hunk)
  if self.whole then
    return self:decide_rest('accepted')
  end
  local ok, why = self.files[file]:accept(hunk)
  self:touched()
  return ok, why
end

--- Rejects a hunk.
---@param file integer
---@param hunk integer
---@param reason string?
---@return boolean ok
---@return string? why_not
function Review:reject(file, hunk, reason)
  if self.whole then
    return self:decide_rest('rejected', reason)
  end
  local ok, why = self.files[file]:reject(hunk, reason)
  self:touched()
  return ok, why
end

--- Removes the verdict on a hunk.
---@param file integer
---@param hunk integer
function Review:reopen(file, hunk)
  self.files[file]:reopen(hunk)
  self:touched()
end

--- Replaces the proposed lines of a hunk.
---@param file integer
---@param hunk integer
---@param lines string[]
---@return boolean ok
---@return string? why_not
function Review:edit(file, hunk, lines)
  local ok, why = self.files[file]:edit(hunk, lines)
  self:touched()
  return ok, why
end

--- Replaces the proposed text of a file.
---@param file integer
---@param lines string[]
---@param base? string[] text of the file that they were typed for
---@return boolean ok
---@return string? why_not
function Review:rewrite(file, lines, base)
  local ok, why = self.files[file]:rewrite(lines, base)
  if not self.ended then
    self.on_touched(self) -- the user is still typing, so it does not end even if no hunk is left
  end
  return ok, why
end

--- Decides all undecided hunks.
---@param verdict 'accepted'|'rejected'
---@param reason string?
---@return boolean ok
---@return string? why_not
function Review:decide_rest(verdict, reason)
  if self.whole and verdict == 'accepted' then
    for _, file in ipairs(self.files) do
      local ok, why = file:accept_all()
      if not ok then
        return false, why
      end
    end
  end
  for _, file in ipairs(self.files) do
    file:decide_rest(verdict, reason)
  end
  self:touched()
  return true
end

--- Returns whether no hunk can be applied any more, whatever the user decides.
---@param proposals mcp-tools.Proposal[]
---@return boolean
function M.are_stale(proposals)
  return vim.iter(proposals):all(function(proposal)
    return proposal.gone ~= nil
      or #proposal.hunks > 0
        and vim.iter(proposal.hunks):all(function(hunk)
          return hunk.changed == true and not hunk.reason
        end)
  end)
end

--- Ends it undecided.
---@param reason string?
function Review:close(reason)
  self:finish('closed', reason or 'the review was closed')
end

-- Queue ---------------------------------------------------------------------------------------------------------------

---@type mcp-tools.Review[] the first ready one is shown
local all = {}
local last_id = 0
---@type mcp-tools.Review?
local shown
---@type mcp-tools.Presenter?
local presenter

--- Returns the open reviews, the shown one first.
---@return mcp-tools.Review[]
function M.list()
  return vim.tbl_filter(function(review)
    return review.ready
  end, all)
end

--- Returns whether a user is present who can review.
---@return boolean
function M.is_attended()
  return presenter ~= nil and presenter.is_attended()
end

--- Returns the number of open reviews.
---@return integer
function M.count()
  return #M.list()
end

--- Returns the shown review.
---@return mcp-tools.Review?
function M.current()
  return M.list()[1]
end

---@param review mcp-tools.Review
---@param state 'open'|mcp-tools.ReviewState
local function announce(review, state)
  local data = { id = review.id, title = review.title, client = review.client, state = state, open = M.count() }
  local opts = { pattern = 'McpToolsReview', modeline = false, data = data }
  log.guard('an autocommand for User McpToolsReview', api.nvim_exec_autocmds, 'User', opts)
end

---@param what 'show'|'update'|'hide'
---@param review mcp-tools.Review
local function notify_presenter(what, review)
  if presenter then
    log.guard('showing a review', presenter[what], review)
  end
end

--- Shows the first review and updates the number of waiting ones.
local function advance()
  local first = M.current()
  if shown and shown ~= first then
    notify_presenter('hide', shown)
  end
  local before = shown
  shown = first
  if first then
    notify_presenter(first == before and 'update' or 'show', first)
  end
end

--- Sets the presenter that shows reviews.
---@param one mcp-tools.Presenter?
function M.set_presenter(one)
  if shown then
    notify_presenter('hide', shown)
  end
  presenter, shown = one, nil
  advance()
end

--- Returns a client's review by key.
---@param client { name: string?, session: string? }
---@param key string
---@return mcp-tools.Review?
function M.find(client, key)
  return vim.iter(all):find(function(review)
    return review.key == key and vim.deep_equal(review.client, client)
  end)
end

--- Returns why a client cannot open a review now: too many are open, in all or for this client.
---@param client { name: string?, session: string? }
---@param key string key of the new review; it replaces an earlier one
---@return string? why includes what the agent should do
function M.busy(client, key)
  local clients, older = {}, M.find(client, key)
  for _, review in ipairs(all) do
    table.insert(clients, review ~= older and review.client or nil)
  end
  local count = sessions.crowd(clients, client, 'reviews')
  return count and count .. ' are already waiting for the user; propose it again after some are decided'
end

--- Moves a review to the end of the queue.
---@param review mcp-tools.Review
local function move_to_end(review)
  all = vim.tbl_filter(function(other)
    return other ~= review
  end, all)
  table.insert(all, review)
end

--- Moves the shown review to the end of the queue.
function M.postpone()
  local first = M.current()
  if not first then
    return
  end
  move_to_end(first)
  advance()
end

--- Moves a review to the front of the queue.
---@param review mcp-tools.Review
function M.bring_forward(review)
  if not review.ended then
    all = vim.tbl_filter(function(other)
      return other ~= review
    end, all)
    table.insert(all, 1, review)
    advance()
  end
end

---@param review mcp-tools.Review
---@param outcome mcp-tools.ReviewOutcome
---@param on_end fun(outcome: mcp-tools.ReviewOutcome)
local function finished(review, outcome, on_end)
  all = vim.tbl_filter(function(other)
    return other ~= review
  end, all)
  announce(review, outcome.state)
  advance()
  log.guard('the end of a review', on_end, outcome)
end

--- Loads all texts, one after the other, and adds the review to the queue.
---@param review mcp-tools.Review
---@param files mcp-tools.ReviewFile[]
local function begin(review, files)
  local ctx = {
    call = {
      outcome = { error = true }, -- buffers that were loaded for the review are unloaded at its end
      on_end = function(_, stop)
        table.insert(review.stops, stop)
      end,
    },
    cancelled = function()
      return review.ended ~= nil
    end,
  } --[[@as any]]
  local function step(i)
    local file = files[i]
    if file then
      return texts.propose(file, ctx, function(proposal, why)
        if review.ended then
          return
        elseif not proposal then
          return review:close(('%s: %s'):format(file.path, why))
        end
        table.insert(review.files, proposal)
        step(i + 1)
      end)
    end
    review.ready = true
    for _, proposal in ipairs(review.files) do
      local stop = texts.follow(proposal, function()
        review:touched()
      end)
      table.insert(review.stops, stop)
    end
    if review:undecided() == 0 then
      return review:finish('accepted') -- nothing would change
    end
    announce(review, 'open')
    if review.asked then
      return M.bring_forward(review)
    end
    move_to_end(review) -- must not replace the review that the user is looking at
    advance()
  end
  step(1)
end

--- Opens a review. The caller applies its outcome.
---@param opts mcp-tools.ReviewOpts
---@return { id: integer, close: fun(reason: string?) } handle `close` ends it undecided; after the end it does nothing
function M.open(opts)
  local older = M.find(opts.client, opts.key)
  if older then
    older:close('a newer proposal has replaced it')
  end
  -- The applied edits of a session are one review, which must not be lost.
  local busy = not opts.applied and M.busy(opts.client, opts.key) or nil
  last_id = last_id + 1
  local review = setmetatable({
    id = last_id,
    client = opts.client,
    key = opts.key,
    title = opts.title,
    applied = opts.applied == true,
    asked = opts.asked == true,
    whole = opts.whole == true,
    no_reason = opts.no_reason == true,
    saves = opts.saves == true,
    files = {},
    ready = false,
    stops = {},
    on_touched = function(review)
      if review == shown then
        notify_presenter('update', review)
      end
    end,
    on_finish = function(review, outcome)
      finished(review, outcome, opts.on_end)
    end,
  }, Review)
  if not busy then
    table.insert(all, review)
  end
  if opts.timeout then
    local expiry = timer.after(opts.timeout, function()
      review:close(('not decided within %d s'):format(opts.timeout / 1000))
    end)
    table.insert(review.stops, function()
      expiry:stop()
    end)
  end
  vim.schedule(function() -- never before this returns
    if busy then
      return review:finish('busy', busy)
    elseif not review.ended then
      begin(review, opts.files)
    end
  end)
  return {
    id = review.id,
    close = function(reason)
      review:close(reason)
    end,
  }
end

-- When edits are reviewed ---------------------------------------------------------------------------------------------

---@alias mcp-tools.ReviewWhen 'ask'|'after'|'never'

--- Approval decisions that require a review (approval/gateway.lua); the second one was made by the user.
local REVIEWED = { review = true, ['user: review'] = true }

local STRICTNESS = { never = 1, after = 2, ask = 3 }

--- Returns when the edits of a call are reviewed: as the user decided for this call, otherwise as configured. The
--- option of a client applies only if it is stricter, since clients choose their names.
---@param call mcp-tools.Call?
---@return mcp-tools.ReviewWhen?
function M.when(call)
  local definition = call and call.definition
  if not call or not definition then
    return nil
  elseif call.decision and REVIEWED[call.decision.by] then
    return 'ask'
  end
  local options = config.get()
  local group = options.review.groups[source.group(definition)]
  local when = options.review.tools[definition.name] or group or options.review.when
  local client = call.client and call.client.name and options.clients[call.client.name]
  local own = client and client.review
  if own and STRICTNESS[own] > (STRICTNESS[when] or 0) then
    return own
  end
  return when
end

--- Returns whether the user has asked to review this call.
---@param call mcp-tools.Call
---@return boolean
function M.is_asked_for(call)
  return call.decision ~= nil and call.decision.by == 'user: review'
end

--- Returns whether a review can replace the approval question: it must show all that the call does.
---@param call mcp-tools.Call
---@return boolean
function M.can_replace_question(call)
  local definition = call.definition
  local reviewed = definition.reviewed
  if not reviewed or not definition.source or definition.source.origin ~= 'bundled' or not M.is_attended() then
    return false
  elseif type(reviewed) == 'function' then
    local ok, shows_all = errors.try(reviewed, call.args, call)
    return ok and shows_all == true
  end
  return true
end

--- Returns whether the review replaces the approval question, as configured.
---@param call mcp-tools.Call
---@return boolean
function M.replaces_question(call)
  return M.when(call) == 'ask' and M.can_replace_question(call)
end

return M

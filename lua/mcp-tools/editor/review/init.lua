--- Queue of reviews, in which the user accepts, rejects or changes the proposals of agents, hunk by hunk.
---
--- The first review is shown, the others wait. Each ends once.

local Review = require('mcp-tools.editor.review.review')
local validate = require('mcp-tools.util.validate')
local log = require('mcp-tools.log')
local texts = require('mcp-tools.editor.review.texts')
local timer = require('mcp-tools.util.timer')

local api = vim.api

local M = {}

--- Maximum number of open reviews, in all and per session; further ones end immediately as busy.
local MAX_OPEN, MAX_PER_SESSION = 32, 8

---@class mcp-tools.ReviewFile
---@field path string absolute
---@field bufnr integer?
---@field base string? the text that the proposal was made for; default: the text of the buffer or file
---@field text string
---@field differs boolean? the bytes differ, so there is something to decide even if all lines are equal
---@field editable boolean? whether the user may change the proposed text (default: true)
---@field made boolean? the file was created by the applied edit; rejecting deletes it

---@class mcp-tools.ReviewOpts
---@field client { name: string?, session: string? }
---@field key string unique per client; a later review with the same key replaces it
---@field title string
---@field files mcp-tools.ReviewFile[]
---@field on_end fun(outcome: mcp-tools.ReviewOutcome) called once, on the main loop
---@field timeout integer? ms until it is closed undecided (default: never)
---@field asked boolean? the user has asked for it, so it is shown first
---@field whole boolean? one decision for all hunks: the client accepts everything or nothing
---@field no_reason boolean? the client cannot receive the reason for a rejection
---@field saves boolean? the client writes the buffer's text with the accepted hunks to the file
---@field applied boolean? the edits are already applied; the caller reverts the rejected ones

--- Shows reviews. Its functions are called on the main loop; the review may already have ended.
---@class mcp-tools.Presenter
---@field is_attended fun(): boolean whether a user can review
---@field show fun(review: mcp-tools.Review) it is first in the queue
---@field update fun(review: mcp-tools.Review) it or the number of waiting reviews has changed
---@field hide fun(review: mcp-tools.Review) it has ended or is no longer first

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
  local ok, thrown = pcall(api.nvim_exec_autocmds, 'User', {
    pattern = 'McpToolsReview',
    modeline = false,
    data = data,
  })
  if not ok then
    log.warn('an autocommand for User McpToolsReview failed: %s', tostring(thrown))
  end
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
  local count, own = 0, 0
  for _, review in ipairs(all) do
    local is_own = vim.deep_equal(review.client, client)
    if not (is_own and review.key == key) then
      count, own = count + 1, own + (is_own and 1 or 0)
    end
  end
  local text = '%d reviews%s are already waiting for the user; propose it again after some are decided'
  if own >= MAX_PER_SESSION then
    return text:format(own, ' of this session')
  end
  return count >= MAX_OPEN and text:format(count, '') or nil
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
  local function step(i)
    local file = files[i]
    if file then
      return texts.find(file, function(proposal, why, drop)
        if review.ended then
          return drop and drop()
        end
        table.insert(review.stops, drop)
        if not proposal then
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
  validate('opts', opts, 'table')
  validate('opts.client', opts.client, 'table')
  validate('opts.key', opts.key, 'string')
  validate('opts.title', opts.title, 'string')
  validate('opts.files', opts.files, 'table')
  validate('opts.on_end', opts.on_end, 'callable')
  local older = M.find(opts.client, opts.key)
  if older then
    older:close('a newer proposal has replaced it')
  end
  -- Applied edits are one review per session, which must not be lost.
  local busy = not opts.applied and M.busy(opts.client, opts.key) or nil
  last_id = last_id + 1
  local review = Review.new({
    id = last_id,
    client = opts.client,
    key = opts.key,
    title = opts.title,
    applied = opts.applied == true,
    asked = opts.asked == true,
    whole = opts.whole == true,
    no_reason = opts.no_reason == true,
    saves = opts.saves == true,
    on_touched = function(review)
      if review == shown then
        notify_presenter('update', review)
      end
    end,
    on_finish = function(review, outcome)
      finished(review, outcome, opts.on_end)
    end,
  })
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

return M

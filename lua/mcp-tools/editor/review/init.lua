--- Review of what agents propose: the person accepts, rejects or changes it, hunk by hunk.
---
--- Reviews queue: the first one is shown, the others wait. Each ends once.

local Review = require('mcp-tools.editor.review.review')
local validate = require('mcp-tools.util.validate')
local log = require('mcp-tools.log')
local texts = require('mcp-tools.editor.review.texts')
local timer = require('mcp-tools.util.timer')

local api = vim.api

local M = {}

--- Reviews at a time, of all and of one session; what comes then is closed at once, as busy.
local MAX_OPEN, MAX_OF_ONE = 32, 8

---@class mcp-tools.ReviewFile
---@field path string absolute
---@field bufnr integer?
---@field base string? the text that the proposal is for; default: what the buffer or the file has
---@field text string
---@field differs boolean? the file has other bytes: it is asked about even where all lines are the same
---@field editable boolean? what the person types into the proposal counts (default true)
---@field made boolean? of what is there already: the file itself, which goes with all of its text

---@class mcp-tools.ReviewOpts
---@field client { name: string?, session: string? }
---@field key string names the review among those of its client; a later one of the same key takes its place
---@field title string
---@field files mcp-tools.ReviewFile[]
---@field on_end fun(outcome: mcp-tools.ReviewOutcome) called once, on the main loop
---@field timeout integer? ms; without an answer it is closed (default: never)
---@field asked boolean? the person has asked for it: they are led there
---@field whole boolean? one decision for all of it: who asked takes everything or nothing
---@field no_reason boolean? who asked cannot receive the reason of a rejection
---@field saves boolean? who asked writes the text of the buffer, with what was accepted, to the file
---@field applied boolean? the texts are in the buffers already: what is rejected is to be taken back by who asked

--- Shows reviews. All functions are called on the main loop; the review may have ended when they run.
---@class mcp-tools.Presenter
---@field is_attended fun(): boolean is there a person to look at it?
---@field show fun(review: mcp-tools.Review) it is the next one
---@field update fun(review: mcp-tools.Review) something of it, or how many wait, is another
---@field hide fun(review: mcp-tools.Review) it has ended, or is not the next one any more

---@type mcp-tools.Review[] the first that is ready is shown
local all = {}
local last_id = 0
---@type mcp-tools.Review?
local shown
---@type mcp-tools.Presenter?
local presenter

--- Every review that is open, the one that is shown first.
---@return mcp-tools.Review[]
function M.list()
  return vim.tbl_filter(function(review)
    return review.ready
  end, all)
end

--- Is there a person who could review something?
---@return boolean
function M.is_attended()
  return presenter ~= nil and presenter.is_attended()
end

--- How many are open.
---@return integer
function M.count()
  return #M.list()
end

--- The one that is shown.
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
local function have(what, review)
  if presenter then
    log.guard('showing a review', presenter[what], review)
  end
end

--- Shows the first one, and tells it how many there are.
local function advance()
  local first = M.current()
  if shown and shown ~= first then
    have('hide', shown)
  end
  local before = shown
  shown = first
  if first then
    have(first == before and 'update' or 'show', first)
  end
end

--- Who shows reviews from now on.
---@param one mcp-tools.Presenter?
function M.shown_by(one)
  if shown then
    have('hide', shown)
  end
  presenter, shown = one, nil
  advance()
end

--- The one that a client has opened under a key.
---@param client { name: string?, session: string? }
---@param key string
---@return mcp-tools.Review?
function M.find(client, key)
  return vim.iter(all):find(function(review)
    return review.key == key and vim.deep_equal(review.client, client)
  end)
end

--- Why no review of a client can be opened now: too many wait for the person, or too many of its own.
---@param client { name: string?, session: string? }
---@param key string of the one that would be opened; it takes the place of an earlier one
---@return string? why what its agent is to do stands in it
function M.busy(client, key)
  local count, own = 0, 0
  for _, review in ipairs(all) do
    local is_own = vim.deep_equal(review.client, client)
    if not (is_own and review.key == key) then
      count, own = count + 1, own + (is_own and 1 or 0)
    end
  end
  local text =
    '%d reviews%s wait for the person at the editor, no more are taken; propose it again once some are decided'
  if own >= MAX_OF_ONE then
    return text:format(own, ' of this session')
  end
  return count >= MAX_OPEN and text:format(count, '') or nil
end

--- Puts a review behind all others.
---@param review mcp-tools.Review
local function last(review)
  all = vim.tbl_filter(function(other)
    return other ~= review
  end, all)
  table.insert(all, review)
end

--- Puts the one that is shown behind the others.
function M.later()
  local first = M.current()
  if not first then
    return
  end
  last(first)
  advance()
end

--- Shows one before the others.
---@param review mcp-tools.Review
function M.first(review)
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

--- Finds all texts, one after the other, and joins the queue.
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
      return M.first(review)
    end
    last(review) -- one that took longer to read does not take the place of what the person looks at
    advance()
  end
  step(1)
end

--- Opens a review. It only decides: who asked applies the outcome.
---@param opts mcp-tools.ReviewOpts
---@return { id: integer, close: fun(reason: string?) } handle `close` ends it undecided; later it does nothing
function M.open(opts)
  validate('opts', opts, 'table')
  validate('opts.client', opts.client, 'table')
  validate('opts.key', opts.key, 'string')
  validate('opts.title', opts.title, 'string')
  validate('opts.files', opts.files, 'table')
  validate('opts.on_end', opts.on_end, 'callable')
  local older = M.find(opts.client, opts.key)
  if older then
    older:close('a later proposal has taken its place')
  end
  -- What was made already is one review of a session, and must not be lost.
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
        have('update', review)
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
      review:close(('nobody decided within %d s'):format(opts.timeout / 1000))
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

--- The user's review of a call's edits, before or after they are applied.

local access = require('mcp-tools.privacy.access')
local buffer_change = require('mcp-tools.editor.edit.change')
local config = require('mcp-tools.config')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local file_text = require('mcp-tools.files.text')
local log = require('mcp-tools.log')
local open_buffer = require('mcp-tools.editor.buffer.open')
local review = require('mcp-tools.editor.review')
local text_edits = require('mcp-tools.editor.text.edits')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

local M = {}

--- Maximum number of rejections listed in an error.
local MAX_LISTED = 20

--- Returns whether edits are reviewed before they are applied.
---@param ctx mcp-tools.Ctx?
---@return boolean
function M.is_needed(ctx)
  return ctx ~= nil and ctx.call ~= nil and review.when(ctx.call) == 'ask'
end

---@param outcome mcp-tools.ReviewOutcome
---@return mcp-tools.Error
local function refusal(outcome)
  if outcome.state == 'busy' then
    return errors.new('busy', 'nothing was changed: ' .. outcome.reason)
  elseif outcome.state == 'closed' then
    return errors.new('access_denied', 'nothing was changed: the edit was not reviewed: ' .. outcome.reason)
  end
  local lines = {}
  for i, rejection in ipairs(outcome.rejected) do
    if i <= MAX_LISTED then
      local name, reason = vim.fs.basename(rejection.path), rejection.reason
      table.insert(lines, ('%s:%d%s'):format(name, rejection.line, reason and ': ' .. reason or ''))
    end
  end
  if review.are_stale(outcome.proposals) then
    local text = 'not applied: the file changed during review (%s); read it again'
    return errors.new('stale', text:format(table.concat(lines, '; ')))
  end
  local text = 'nothing was changed: the user rejected all of it in review (%s)'
  return errors.new('access_denied', text:format(table.concat(lines, '; ')))
end

--- Asks the user to review texts. The call's clock is stopped meanwhile.
---@param ctx mcp-tools.Ctx
---@param files mcp-tools.ReviewFile[]
---@param cb fun(outcome: mcp-tools.ReviewOutcome?, err: mcp-tools.Error?)
local function ask(ctx, files, cb)
  local call = ctx.call
  if not review.is_attended() then
    return cb(nil, errors.new('access_denied', 'this edit needs a review, and no user is at the editor'))
  end
  local is_stopped = call:move('await_input')
  if is_stopped then
    call:stop_clock()
  end
  call:progress(call.latest and call.latest.done or 0, nil, 'waiting for review in the editor')
  local handle = review.open({
    client = { name = ctx.client.name, session = ctx.session },
    key = call.id,
    title = call.definition.title or call.name,
    files = files,
    timeout = config.get().review.timeout,
    asked = review.is_asked_for(call),
    on_end = function(outcome)
      if is_stopped and call:move('input') then
        call:start_clock()
      end
      if outcome.state == 'accepted' then
        return cb(outcome)
      end
      cb(nil, refusal(outcome))
    end,
  })
  call:on_end(function()
    handle.close('the call has ended')
  end)
end

---@param lines string[]
---@param bufnr integer
---@return string
local function text_of(lines, bufnr)
  return file_text.text_of(lines, { last = file_text.ends_of(bufnr).last, crlf = false })
end

---@class mcp-tools.ReviewNote fields about a review in a result
---@field rejected mcp-tools.Rejected[]? hunks not applied, with reasons
---@field edited boolean? the user has changed the proposed text

---@param ctx mcp-tools.Ctx
---@param rejected mcp-tools.Rejected[]
---@param edited boolean
---@return mcp-tools.ReviewNote
local function note_of(ctx, rejected, edited)
  local list = vim.tbl_map(function(rejection)
    local path = utf8.repair(access.shown(rejection.path, ctx.root))
    return vim.tbl_extend('force', rejection, { path = path })
  end, rejected)
  return { rejected = #list > 0 and list or nil, edited = edited or nil }
end

--- Reduces the targets' edits to the accepted ones. The files may have changed during the review.
---@param work mcp-tools.Task
---@param ctx mcp-tools.Ctx
---@param targets mcp-tools.EditTarget[]
---@param outcome mcp-tools.ReviewOutcome
---@return mcp-tools.ReviewNote?
---@return mcp-tools.Error? err
local function keep_accepted(work, ctx, targets, outcome)
  local rejected = {}
  for i, target in ipairs(targets) do
    local proposal = outcome.proposals[i]
    target.state = work:await(function(done)
      disk.refresh(target.bufnr, done)
    end)
    if not api.nvim_buf_is_loaded(target.bufnr) then
      proposal:mark_gone('its buffer was closed')
    elseif target.state == 'unreadable' then
      proposal:mark_gone('its file cannot be read')
    end
    proposal:sync()
    target.edits, target.gone = proposal:edits(), proposal.gone and proposal.path or nil
    target.changedtick = not target.gone and api.nvim_buf_get_changedtick(target.bufnr) or nil
    target.lines = nil -- those of an earlier text
    local left_out = proposal:rejected()
    target.ends = #left_out == 0 and target.ends or nil
    vim.list_extend(rejected, left_out)
  end
  outcome.rejected = rejected
  if review.are_stale(outcome.proposals) then
    return nil, refusal(outcome)
  end
  return note_of(ctx, rejected, outcome.edited)
end

--- Asks the user to review edits before they are applied. Afterwards the targets have only the accepted ones.
---@param work mcp-tools.Task
---@param ctx mcp-tools.Ctx
---@param targets mcp-tools.EditTarget[] loaded
---@return mcp-tools.ReviewNote?
---@return mcp-tools.Error? err
function M.before(work, ctx, targets)
  local files = {}
  for i, target in ipairs(targets) do
    local list, err = buffer_change.ordered(target.bufnr, target.edits, target.ends ~= nil)
    if not list then
      return nil, err
    end
    local bufnr, before = target.bufnr, api.nvim_buf_get_lines(target.bufnr, 0, -1, false)
    local after, ends = text_edits.applied(before, list), file_text.kept_ends_of(bufnr)
    files[i] = {
      path = api.nvim_buf_get_name(bufnr),
      bufnr = bufnr,
      base = target.ends and file_text.text_of(before, ends) or text_of(before, bufnr),
      text = target.ends and file_text.text_of(after, target.ends) or text_of(after, bufnr),
      differs = target.ends and file_text.ends_change(ends, target.ends) ~= nil,
    }
  end
  local outcome, err = work:await(function(done)
    ask(ctx, files, done)
  end)
  if not outcome then
    return nil, err
  end
  return keep_accepted(work, ctx, targets, outcome)
end

--- Asks the user to review a file before it is created.
---@param ctx mcp-tools.Ctx
---@param path string
---@param text string
---@param cb fun(text: string?, err: mcp-tools.Error?, note: mcp-tools.ReviewNote?)
function M.before_new(ctx, path, text, cb)
  ask(ctx, { { path = path, text = text } }, function(outcome, err)
    if not outcome then
      return cb(nil, err)
    end
    cb(outcome.files[path], nil, note_of(ctx, outcome.rejected, outcome.edited))
  end)
end

-- After --------------------------------------------------------------------------------------------------------------

--- Key of the one review per client that holds all applied edits the user has not decided on yet.
local AFTER = 'applied edits'

---@type table<integer, table<integer, string[]>> id of an open review → original lines by buffer
local originals = {}

---@param ctx mcp-tools.Ctx
---@return { name: string?, session: string? }
local function client_of(ctx)
  return { name = ctx.client.name, session = ctx.session }
end

--- Returns the text of each file before the edits that still have to be reviewed; call it before an edit is applied. A
--- file that was created since has no lines.
---@param ctx mcp-tools.Ctx?
---@param targets mcp-tools.EditTarget[]
---@return table<integer, string[]>? by buffer; nil: no review follows
function M.origins(ctx, targets)
  if not ctx or not ctx.call or review.when(ctx.call) ~= 'after' or not review.is_attended() then
    return nil
  end
  local open = review.find(client_of(ctx), AFTER)
  local origins = open and not open.ready and originals[open.id] or {}
  for _, file in ipairs(open and open.files or {}) do
    file:sync()
    if file.bufnr and not file.gone and file:undecided() > 0 then
      origins[file.bufnr] = file.made and {} or file:proposed()
    end
  end
  for _, target in ipairs(targets) do
    local bufnr = target.bufnr
    origins[bufnr] = origins[bufnr] or api.nvim_buf_get_lines(bufnr, 0, -1, false)
  end
  return origins
end

--- Reverts the edits that the user has rejected: the accepted hunks of a proposal of the original text.
---@param proposal mcp-tools.Proposal
---@param revert fun(bufnr: integer, edits: mcp-tools.Edit[], path: string)
local function revert_rejected(proposal, revert)
  proposal:sync()
  if proposal.made then
    local is_reverted = #proposal.hunks > 0 and #proposal:rejected() == 0
    return is_reverted
      and buffer_change.delete_created(proposal.path, proposal.base, function(err)
        if err then
          log.error('cannot delete a rejected new file: %s', err.message)
        end
      end)
  end
  local edits = proposal:edits()
  if #edits > 0 and proposal.bufnr then
    revert(proposal.bufnr, edits, proposal.path)
  end
end

--- Opens a review of applied edits. It proposes the original text: accepting a hunk reverts it.
---@param ctx mcp-tools.Ctx
---@param origins table<integer, string[]>
---@param revert fun(bufnr: integer, edits: mcp-tools.Edit[], path: string)
function M.after(ctx, origins, revert)
  local files = {}
  for bufnr, lines in pairs(origins) do
    if api.nvim_buf_is_loaded(bufnr) then
      local path = api.nvim_buf_get_name(bufnr)
      local text, made = text_of(lines, bufnr), #lines == 0
      table.insert(files, { path = path, bufnr = bufnr, text = text, editable = false, made = made })
    end
  end
  table.sort(files, function(a, b)
    return a.path < b.path
  end)
  local handle
  handle = review.open({
    client = client_of(ctx),
    key = AFTER,
    title = 'applied edits',
    files = files,
    applied = true,
    on_end = function(outcome)
      originals[handle.id] = nil
      for _, proposal in ipairs(outcome.proposals) do -- decisions apply even if the review was closed
        log.guard('reverting rejected edits', revert_rejected, proposal, revert)
      end
    end,
  })
  originals[handle.id] = origins
end

--- Opens the same review for a file that was created.
---@param ctx mcp-tools.Ctx
---@param path string
---@param revert fun(bufnr: integer, edits: mcp-tools.Edit[], path: string)
function M.after_new(ctx, path, revert)
  if not M.origins(ctx, {}) then
    return
  end
  open_buffer.load(path, function(bufnr, err)
    local origins = bufnr and M.origins(ctx, {})
    if not bufnr then
      log.error('cannot open %s for review: %s', path, err and err.message)
    elseif origins then
      origins[bufnr] = {}
      M.after(ctx, origins, revert)
    end
  end, ctx)
end

return M

--- Edits of a call and the person's review of them: before they are made, or after.

local access = require('mcp-tools.privacy.access')
local are_stale = require('mcp-tools.editor.review.review').are_stale
local config = require('mcp-tools.config')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local file_text = require('mcp-tools.files.text')
local log = require('mcp-tools.log')
local open_buffer = require('mcp-tools.editor.buffer.open')
local policy = require('mcp-tools.editor.review.policy')
local review = require('mcp-tools.editor.review')
local text_edits = require('mcp-tools.editor.text.edits')
local unmake = require('mcp-tools.editor.edit.unmake')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

local M = {}

--- Rejections that an error names.
local MAX_TOLD = 20

--- Are edits to be reviewed before they are made?
---@param ctx mcp-tools.Ctx?
---@return boolean
function M.asks(ctx)
  return ctx ~= nil and ctx.call ~= nil and policy.of(ctx.call) == 'ask'
end

---@param outcome mcp-tools.ReviewOutcome
---@return mcp-tools.Error
local function refusal(outcome)
  if outcome.state == 'busy' then
    return errors.new('busy', 'nothing was changed: ' .. outcome.reason)
  elseif outcome.state == 'closed' then
    return errors.new('access_denied', 'nothing was changed, it was not reviewed: ' .. outcome.reason)
  end
  local lines = {}
  for i, each in ipairs(outcome.rejected) do
    if i <= MAX_TOLD then
      local name = vim.fs.basename(each.path)
      table.insert(lines, ('%s:%d%s'):format(name, each.line, each.reason and ': ' .. each.reason or ''))
    end
  end
  if are_stale(outcome.proposals) then -- the person may have wanted it
    local text = 'nothing was changed: the text was another before it was reviewed (%s); read it again'
    return errors.new('stale', text:format(table.concat(lines, '; ')))
  end
  local text = 'the person at the editor has reviewed it and rejected all of it; nothing was changed (%s)'
  return errors.new('access_denied', text:format(table.concat(lines, '; ')))
end

--- Has the person review texts, while the tool's time stands still.
---@param ctx mcp-tools.Ctx
---@param files mcp-tools.ReviewFile[]
---@param cb fun(outcome: mcp-tools.ReviewOutcome?, err: mcp-tools.Error?)
local function ask(ctx, files, cb)
  local call = ctx.call
  if not policy.is_attended() then
    return cb(nil, errors.new('access_denied', 'it has to be reviewed, and nobody is at the editor to do that'))
  end
  local stands_still = call:move('await_input')
  if stands_still then
    call:stop_clock()
  end
  call:progress(call.latest and call.latest.done or 0, nil, 'the person at the editor reviews it')
  local handle = review.open({
    client = { name = ctx.client.name, session = ctx.session },
    key = call.id,
    title = call.definition.title or call.name,
    files = files,
    timeout = config.get().review.timeout,
    asked = policy.is_asked_for(call),
    on_end = function(outcome)
      if stands_still and call:move('input') then
        call:start_clock()
      end
      if outcome.state == 'accepted' then
        return cb(outcome)
      end
      cb(nil, refusal(outcome))
    end,
  })
  call:on_end(function()
    handle.close('the call is over')
  end)
end

---@param lines string[]
---@param bufnr integer
---@return string
local function text_of(lines, bufnr)
  return file_text.text_of(lines, { last = file_text.ends_of(bufnr).last, crlf = false })
end

---@class mcp-tools.ReviewNote what the agent is told of a review
---@field rejected mcp-tools.Rejected[]? not made, and why
---@field edited boolean? the person has changed what was proposed

---@param ctx mcp-tools.Ctx
---@param rejected mcp-tools.Rejected[]
---@param edited boolean
---@return mcp-tools.ReviewNote
local function note_of(ctx, rejected, edited)
  local told = vim.tbl_map(function(each)
    local path = utf8.repair(access.shown(each.path, ctx.root))
    return vim.tbl_extend('force', each, { path = path })
  end, rejected)
  return { rejected = #told > 0 and told or nil, edited = edited or nil }
end

--- Gives the targets what was accepted. While the person was reading, others may have written the files.
---@param ctx mcp-tools.Ctx
---@param targets mcp-tools.EditTarget[]
---@param outcome mcp-tools.ReviewOutcome
---@param cb fun(note: mcp-tools.ReviewNote?, err: mcp-tools.Error?)
local function take_over(ctx, targets, outcome, cb)
  local rejected = {}
  local function step(i)
    local target, proposal = targets[i], outcome.proposals[i]
    if not target then
      outcome.rejected = rejected
      if are_stale(outcome.proposals) then
        return cb(nil, refusal(outcome))
      end
      return cb(note_of(ctx, rejected, outcome.edited))
    end
    disk.refresh(target.bufnr, function(state)
      target.state = state
      if not api.nvim_buf_is_loaded(target.bufnr) then
        proposal:leave('its buffer was closed')
      end
      proposal:sync()
      target.edits, target.gone = proposal:edits(), proposal.gone and proposal.path or nil
      target.changedtick = not target.gone and api.nvim_buf_get_changedtick(target.bufnr) or nil
      local left_out = proposal:rejected()
      target.ends = #left_out == 0 and target.ends or nil
      vim.list_extend(rejected, left_out)
      step(i + 1)
    end)
  end
  step(1)
end

--- Asks about edits before they are made. The targets have only what was accepted afterwards.
---@param ctx mcp-tools.Ctx
---@param targets mcp-tools.EditTarget[] loaded
---@param ordered fun(bufnr: integer, edits: mcp-tools.Edit[], is_exact: boolean): mcp-tools.Replacement[]?,
---  mcp-tools.Error?
---@param cb fun(note: mcp-tools.ReviewNote?, err: mcp-tools.Error?)
function M.before(ctx, targets, ordered, cb)
  local files = {}
  for i, target in ipairs(targets) do
    local list, err = ordered(target.bufnr, target.edits, target.ends ~= nil)
    if not list then
      return cb(nil, err)
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
  ask(ctx, files, function(outcome, err)
    if not outcome then
      return cb(nil, err)
    end
    take_over(ctx, targets, outcome, cb)
  end)
end

--- Asks about a file before it is made.
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

--- One of a client holds all that the person has not looked at yet.
local AFTER = 'made already'

---@type table<integer, table<integer, string[]>> id of a review → the texts that it was given, until it ends
local given = {}

---@param ctx mcp-tools.Ctx
---@return { name: string?, session: string? }
local function who(ctx)
  return { name = ctx.client.name, session = ctx.session }
end

--- The text of each file as it was before what is yet to be reviewed; to be asked for before an edit is made. Of a file
--- that was made since there are no lines at all.
---@param ctx mcp-tools.Ctx?
---@param targets mcp-tools.EditTarget[]
---@return table<integer, string[]>? by buffer; nil when nothing is to be reviewed after it
function M.origins(ctx, targets)
  if not ctx or not ctx.call or policy.of(ctx.call) ~= 'after' or not policy.is_attended() then
    return nil
  end
  local open = review.find(who(ctx), AFTER)
  local origins = open and not open.ready and given[open.id] or {}
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

---@param proposal mcp-tools.Proposal
---@param revert fun(bufnr: integer, edits: mcp-tools.Edit[], path: string)
local function take_back(proposal, revert)
  proposal:sync()
  if proposal.made then
    local is_rejected = #proposal.hunks > 0 and #proposal:rejected() == 0
    return is_rejected
      and unmake.run(proposal.path, proposal.base, function(err)
        if err then
          log.error('a file that was rejected stays: %s', err.message)
        end
      end)
  end
  local edits = proposal:edits()
  if #edits > 0 and proposal.bufnr then
    revert(proposal.bufnr, edits, proposal.path)
  end
end

--- Keeps edits that were made open, so that the person can take each hunk back.
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
    client = who(ctx),
    key = AFTER,
    title = 'what it has changed',
    files = files,
    applied = true,
    on_end = function(outcome)
      given[handle.id] = nil
      for _, proposal in ipairs(outcome.proposals) do -- however it ended: what was said counts
        log.guard('taking back what was rejected', take_back, proposal, revert)
      end
    end,
  })
  given[handle.id] = origins
end

--- Keeps a file that was made open for the same.
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
      log.error('%s cannot be kept open for review: %s', path, err and err.message)
    elseif origins then
      origins[bufnr] = {}
      M.after(ctx, origins, revert)
    end
  end, ctx)
end

return M

--- Small window that shows what is under review: agent, files, number of reviews, and keys.

local Rows = require('mcp-tools.ui.window.rows')
local access = require('mcp-tools.privacy.access')
local approval = require('mcp-tools.ui.approval')
local float = require('mcp-tools.ui.window.float')
local keepers = require('mcp-tools.ui.window.keeper')
local project = require('mcp-tools.instances.project')
local sanitize = require('mcp-tools.util.sanitize')
local render = require('mcp-tools.ui.window.render')

local M = {}

--- Maximum number of files in the list.
local MAX_FILES = 5

---@class mcp-tools.ReviewView the review on the screen
---@field review mcp-tools.Review
---@field file integer current file
---@field hunk integer current hunk
---@field inside? boolean the cursor is in the review, so its keys are mapped
---@field was_inside? boolean
---@field typing? boolean the cursor is in a window where text can be edited
---@field actions mcp-tools.ReviewAction[]
---@field decided mcp-tools.Hunk[] hunks in the order of the user's decisions
---@field write fun(file: mcp-tools.Proposal) called by `:w` where the proposed text can be edited
---@field note string? message to the user
---@field open? integer number of open reviews

---@class mcp-tools.ReviewLegend: mcp-tools.Float
---@field view mcp-tools.ReviewView
local Window = float.kind({ zindex = 45, max_width = 100 })

---@param file mcp-tools.Proposal
---@param width integer
---@return string
local function file_text(file, width)
  local count = #file.hunks
  local state = file.gone or ('%d of %d hunk%s left'):format(file:undecided(), count, count == 1 and '' or 's')
  if not file.gone and (file.is_new or file.made) then
    state = state .. (file.is_new and ', a new file' or ', a new file: reverting deletes it')
  end
  local name = sanitize.line(access.shown(file.path, project.root()))
  return ('%s  %s'):format((Rows.clip_middle(name, width - vim.api.nvim_strwidth(state) - 2)), state)
end

--- Returns the keys of a review: those in the last row of the text, and those in the frame.
---@param view mcp-tools.ReviewView
---@return { [1]: string, [2]: string }[] row
---@return { [1]: string, [2]: string }[] frame
local function keys(view)
  local row, frame = {}, {}
  for _, action in ipairs(view.actions) do
    if action[4] and not (view.typing and action.edits) then
      table.insert(action.in_row and row or frame, { action[1], action[4] })
    end
  end
  table.insert(row, view.typing and { '', 'edit the text here; :w accepts it, :q leaves it open' } or nil)
  return row, vim.list_extend(frame, { { '?', 'keys' } })
end

---@param view mcp-tools.ReviewView
---@param width integer
---@return mcp-tools.Rows
local function page_of(view, width)
  local page, files = Rows.new(width, false), view.review.files
  local who = sanitize.line(view.review.client.name or 'an agent')
  page:line((Rows.clip(('%s: %s'):format(who, sanitize.line(view.review.title)), width)))
  local first = math.max(1, math.min(view.file - math.floor(MAX_FILES / 2), #files - MAX_FILES + 1))
  for i = first, math.min(#files, first + MAX_FILES - 1) do
    local line = Rows.clip((i == view.file and '▸ ' or '  ') .. file_text(files[i], width - 2), width)
    page:line(line, i == view.file and { { 1, #line, 'Name' } } or nil)
  end
  local now = files[view.file]
  if now and now.ends_change then
    page:line('  ' .. now.ends_change)
  end
  if #files > MAX_FILES then
    page:line(('  %d files in all'):format(#files))
  end
  if view.inside then
    local pieces = {}
    for _, key in ipairs((keys(view))) do
      vim.list_extend(pieces, { { key[1], 'Key' }, (key[1] == '' and '' or ' ') .. key[2] .. '  ' })
    end
    page:add(pieces)
  end
  return page
end

---@param view mcp-tools.ReviewView
---@param opened integer?
---@return mcp-tools.ReviewLegend
local function open(view, opened)
  local self = setmetatable({ view = view }, Window)
  local buffer = float.buffer('mcp_tools_review', view.review.id, {})
  return self:open_page(page_of(view, self:width()), buffer, opened) --[[@as mcp-tools.ReviewLegend]]
end

---@param opened integer?
---@param now { row: integer, height: integer }?
---@return { row: integer, height: integer }[]
function Window:layout(opened, now)
  if self.view.inside then
    opened = nil -- it is a window of the review
  end
  return { self:place(self.rows, opened, now) }
end

---@return table[]
function Window:frames()
  local view = self.view
  local title = view.open > 1 and (' review 1 of %d '):format(view.open) or ' review '
  local chunks = { render.chunk(view.note and (' %s '):format(view.note) or title, view.note and 'Warn' or 'Title') }
  local _, list = keys(view)
  view.was_inside = view.was_inside or view.inside
  if not view.inside then
    local lead, mode = float.command_keys()
    local lhs = float.mapped_key(mode, 'review')
    list =
      { lhs and { lhs, 'review it' } or { lead .. ':McpTools review', view.was_inside and 'to return' or 'to start' } }
    local yes, no = unpack(view.review.applied and { 'keep', 'revert' } or { 'accept', 'reject' })
    local answers = { { 'approve', yes .. ' visible hunks' }, { 'deny', no .. ' all' } }
    for _, answer in ipairs(approval.count() == 0 and answers or {}) do -- otherwise they answer the approval question
      lhs = float.mapped_key(mode, answer[1])
      table.insert(list, lhs and { lhs, answer[2] } or nil)
    end
  end
  return { { title = chunks, footer = render.keys(list, self:width()) } }
end

---@type mcp-tools.Row[]? current content
local drawn

local keeper = keepers.new({ name = 'review', open = open })

--- Shows a review instead of the current one, or none.
---@param view mcp-tools.ReviewView?
function M.show(view)
  local rows = view and page_of(view, Window:width()).list
  local is_same = vim.deep_equal(rows, drawn)
  drawn = rows
  if not view or keeper.wanted ~= view then
    keeper:show(view)
  elseif is_same then
    keeper:sync_later() -- updates the frame
  else
    keeper:renew()
  end
end

--- Words for verdicts. For a change that was already made, "rejected" means that the proposed reversal was rejected.
local PROPOSED = { { 'accepted', 'accepted' }, { 'rejected', 'rejected' } }
local APPLIED = { { 'rejected', 'kept' }, { 'accepted', 'reverted' } }

--- Returns a line about the result of a review.
---@param review mcp-tools.Review
---@return string? text nil if it is not known yet whether the change can be applied
function M.summary(review)
  if review.whole and review.ended == 'accepted' then
    return nil
  end
  if review.ended ~= 'accepted' and review.ended ~= 'rejected' then
    return 'review ended before every hunk was decided'
  end
  local counts = {}
  for _, file in ipairs(review.files) do
    for _, hunk in ipairs(file.hunks) do
      counts[hunk.verdict or ''] = (counts[hunk.verdict or ''] or 0) + 1
    end
  end
  local parts = {}
  for _, word in ipairs(review.applied and APPLIED or PROPOSED) do
    if counts[word[1]] then
      table.insert(parts, ('%d %s'):format(counts[word[1]], word[2]))
    end
  end
  -- Saving the accepted changes also saves other changes of the user.
  local is_modified = vim.iter(review.files):any(function(file)
    return file.bufnr ~= nil and vim.api.nvim_buf_is_valid(file.bufnr) and vim.bo[file.bufnr].modified
  end)
  local more = ''
  if is_modified and review.applied then
    more = '; unsaved (:wa)'
  elseif is_modified and review.ended == 'accepted' and review.saves then
    more = '; also saved: your other changes in this buffer'
  end
  return 'review finished: ' .. (#parts > 0 and table.concat(parts, ', ') or 'no hunks left') .. more
end

return M

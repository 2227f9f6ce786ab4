--- The review on the screen: draws it, and moves the cursor to its hunks.

local config = require('mcp-tools.config')
local hunk_window = require('mcp-tools.ui.review.hunk_window')
local inline = require('mcp-tools.ui.review.inline')
local keys = require('mcp-tools.ui.review.keys')
local legend = require('mcp-tools.ui.review.legend')
local notify = require('mcp-tools.notify')
local queue = require('mcp-tools.editor.review')
local seen_hunks = require('mcp-tools.ui.review.seen_hunks')
local split = require('mcp-tools.ui.review.split')
local terminal = require('mcp-tools.agents.terminal')
local timer = require('mcp-tools.util.timer')

local api, uv = vim.api, vim.uv

local M = {}

--- Time without a change after which what is on the screen is regarded as seen, ms.
local SETTLED_MS = 40
--- Within this time after a review replaced another one, a key or command may be meant for the earlier one.
local GUARD_NS = 400e6
local GROUP = 'mcp-tools.review.windows'

---@type mcp-tools.ReviewView?
M.view = nil
---@type mcp-tools.ReviewKeys? present while the cursor is in the review
M.inside = nil
---@type fun()? goes to the window from which the user entered the review
M.go_back = nil

---@type mcp-tools.Proposal? the file that was opened last
local shown_file
local hidden_at, shown_at = -math.huge, 0

--- Returns the next or previous hunk, across files and wrapping around. It is an undecided one if there is any.
---@param step 1|-1
---@param from? { [1]: integer, [2]: integer } file and hunk; default: the current ones
---@return integer? file
---@return integer? hunk
function M.neighbor(step, from)
  local view = M.view --[[@as mcp-tools.ReviewView]]
  local files, places, at = view.review.files, {}, 0
  local file_now, hunk_now = unpack(from or { view.file, view.hunk })
  local open_only = view.review:undecided() > 0
  for i, file in ipairs(files) do
    for j, hunk in ipairs(file.gone and {} or file.hunks) do
      local is_before = i < file_now or i == file_now and (j < hunk_now or step > 0 and j == hunk_now)
      if not open_only or not hunk.verdict then
        table.insert(places, { i, j })
        at = is_before and #places or at
      end
    end
  end
  if #places > 0 then
    return unpack(places[(step > 0 and at or at - 1) % #places + 1])
  end
end

---@type table<fun(), mcp-tools.Timer>
local timers = {}

--- Calls a function after a time without another such call.
---@param ms integer
---@param fn fun()
local function later(ms, fn)
  if timers[fn] then
    timers[fn]:stop()
  end
  timers[fn] = timer.after(ms, fn)
end

local function note()
  if M.view then
    seen_hunks.note(M.view.review.files)
  end
end

--- Notes what is on the screen when it has settled: the legend may move, and windows side by side follow each other.
local function note_later()
  later(SETTLED_MS, note)
end

--- Draws one batch of marks, and the next one after the main loop has run.
function M.draw_marks()
  local batch, view = inline.batch(), M.view
  local review = view and view.review
  for i, file in ipairs(review and review.files or {}) do
    inline.show_marks(file, i == view.file and view.hunk or nil, review.applied, split.has(file), batch)
  end
  if batch.cut then
    later(1, M.draw_marks)
  end
  note_later()
end

function M.draw()
  local view, here = M.view, M.inside and M.inside:here()
  if view then
    M.draw_marks()
    view.inside, view.typing, view.open = M.inside ~= nil, here and here.typed == true or false, queue.count()
    legend.show(not hunk_window.is_open() and view or nil)
  end
end

--- Shows a message in the legend, or removes it.
---@param text string?
function M.say(text)
  if M.view then
    M.view.note = text
    M.draw()
  end
end

--- Removes the keys of the review.
function M.leave()
  local was = M.inside
  M.inside = nil
  if was then
    was:remove()
    M.draw()
  end
end

--- Updates the proposal with text that the user has typed.
function M.take_typed()
  local review = M.view and M.view.review
  for i, file in ipairs(review and review.files or {}) do
    local lines, base = split.typed(file)
    if lines then
      review:rewrite(i, lines, base)
    end
  end
end

--- Returns whether keys and commands may be meant for an earlier review.
---@return boolean
function M.has_just_changed()
  return shown_at - hidden_at < GUARD_NS and uv.hrtime() - shown_at < GUARD_NS
end

---@param review mcp-tools.Review
---@param actions mcp-tools.ReviewAction[]
---@param write fun(file: mcp-tools.Proposal) called by `:w` where the proposed text can be edited
function M.show(review, actions, write)
  shown_at = uv.hrtime()
  M.view = { review = review, actions = actions, write = write, file = 1, hunk = 0, decided = {} }
  local file, hunk = M.neighbor(1)
  M.view.file, M.view.hunk = file or 1, hunk or 1
  M.draw()
  local group = api.nvim_create_augroup(GROUP, {})
  api.nvim_create_autocmd({ 'BufWinEnter', 'WinResized' }, { -- virtual lines are wrapped at the width of the windows
    group = group,
    callback = vim.schedule_wrap(M.draw_marks),
  })
  api.nvim_create_autocmd('WinScrolled', { group = group, callback = note_later })
end

---@param review mcp-tools.Review
function M.update(review)
  local view = M.view
  if view and view.review == review then
    split.update(review.files)
    local file = review.files[view.file]
    if file.gone or not file.hunks[view.hunk] then
      local next_file, next_hunk = M.neighbor(1, { 1, 0 })
      view.file, view.hunk = next_file or view.file, next_hunk or 1
    end
    M.draw()
  end
end

---@param review mcp-tools.Review
function M.hide(review)
  local text = M.inside and review.ended and legend.summary(review)
  if text then
    notify.info(text)
  end
  local is_decided = review.ended == 'accepted' or review.ended == 'rejected'
  local back = M.inside and M.inside:here() and M.go_back
  M.leave()
  hidden_at, M.view = uv.hrtime(), nil
  api.nvim_create_augroup(GROUP, {}) -- clears it
  for _, file in ipairs(review.files) do
    if file.bufnr then
      inline.clear_marks(file.bufnr)
    end
  end
  legend.show(nil)
  local function close_windows()
    hunk_window.close()
    for _, file in ipairs(review.files) do
      inline.drop_new_file(file, is_decided)
    end
    split.close(not is_decided)
    if back then
      back()
    end
  end
  if vim.fn.getcmdwintype() == '' then
    close_windows()
  else -- no window can be closed now (`:h E11`)
    api.nvim_create_autocmd('CmdwinLeave', { once = true, callback = vim.schedule_wrap(close_windows) })
  end
end

--- Makes a hunk the current one.
---@param file integer
---@param hunk integer
function M.select(file, hunk)
  M.view.file, M.view.hunk = file, hunk
  M.say(nil)
end

--- Moves the cursor to a hunk.
---@param file integer
---@param hunk integer
function M.go(file, hunk)
  hunk_window.close() -- it may be open in another tab page
  local view = M.view --[[@as mcp-tools.ReviewView]]
  local proposal = view.review.files[file]
  local here, agent = api.nvim_get_current_win(), terminal.hide_floats()
  M.go_back = M.inside and M.go_back
    or function()
      if agent and api.nvim_buf_is_valid(agent.bufnr) then
        terminal.show(agent)
      elseif api.nvim_win_is_valid(here) then
        api.nvim_set_current_win(here)
      end
    end
  local layout = config.get().review.layout == 'split' and split or inline
  local is_split_closed = layout == split and split.fits(proposal) and not split.has(proposal)
  if not M.inside or not M.inside:here() or shown_file ~= proposal or is_split_closed then
    M.leave()
    local windows = layout.open(proposal, function()
      local is_meant, bufnr = M.inside ~= nil, api.nvim_get_current_buf()
      vim.schedule(function()
        if is_meant or api.nvim_get_current_buf() == bufnr then -- otherwise it was `:wall` elsewhere
          view.write(proposal)
        end
      end)
      return is_meant
    end, M.take_typed)
    M.inside, shown_file = keys.set(windows, view.actions, M.draw, M.leave), proposal
  end
  split.jump(proposal, hunk)
  M.select(file, hunk)
end

--- Moves the cursor to the review.
function M.enter()
  local view = M.view
  if not view then
    return notify.info('no review is open')
  elseif vim.fn.getcmdwintype() ~= '' then
    return notify.warn('close the command-line window first (<C-c><C-c>)')
  end
  vim.cmd.stopinsert() -- the keys of a review are those of Normal mode
  local file, hunk = view.file, view.hunk
  local proposal = view.review.files[file]
  if proposal.gone or not proposal.hunks[hunk] or proposal.hunks[hunk].verdict then
    file, hunk = M.neighbor(1, { 1, 0 })
  end
  M.go(file or 1, hunk or 1)
end

return M

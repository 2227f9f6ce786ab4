--- Shows reviews in the code and takes the user's decision on each hunk.

local config = require('mcp-tools.config')
local help = require('mcp-tools.ui.window.help')
local hunk_editor = require('mcp-tools.ui.review.hunk_editor')
local inline = require('mcp-tools.ui.review.inline')
local keys = require('mcp-tools.ui.review.keys')
local legend = require('mcp-tools.ui.review.legend')
local notify = require('mcp-tools.notify')
local queue = require('mcp-tools.editor.review')
local split = require('mcp-tools.ui.review.split')
local timer = require('mcp-tools.util.timer')
local visible = require('mcp-tools.ui.review.visible')

local api, uv = vim.api, vim.uv

local M = {}

--- Within this time after a review replaced another one, a key or command may be meant for the earlier one.
local GUARD_NS = 400e6
--- Minimum number of free rows of a window in which hunks can be read.
local MIN_ROWS = 3
local MORE = 'more is shown now: read it, then press again'

---@type mcp-tools.ReviewView?
local view
---@type mcp-tools.ReviewKeys? present while the cursor is in the review
local inside
---@type mcp-tools.Proposal? the file that was opened last
local shown_file
---@type mcp-tools.Timer? draws the next batch
local drawing
local hidden_at, shown_at = -math.huge, 0

--- Returns the next or previous hunk, across files and wrapping around. It is an undecided one if there is any.
---@param step 1|-1
---@param from? { [1]: integer, [2]: integer } file and hunk; default: the current ones
---@return integer? file
---@return integer? hunk
local function neighbor(step, from)
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
    local found = places[(step > 0 and at or at - 1) % #places + 1]
    return found[1], found[2]
  end
end

--- Returns the index of a hunk in its file, if it is still under review.
---@param file mcp-tools.Proposal
---@param hunk mcp-tools.Hunk
---@return integer?
local function index_of(file, hunk)
  for i, each in ipairs(file.gone and {} or file.hunks) do
    if each == hunk then
      return i
    end
  end
end

--- Returns the hunk of the latest decision.
---@return integer? file
---@return integer? hunk
local function latest()
  while #view.decided > 0 do
    local wanted = table.remove(view.decided)
    for i, file in ipairs(wanted.verdict and view.review.files or {}) do
      local hunk = index_of(file, wanted)
      if hunk then
        return i, hunk
      end
    end
  end
end

-- Drawing ------------------------------------------------------------------------------------------------------------

--- Draws one batch of marks, and the next one after the main loop has run.
local function draw_marks()
  local batch = inline.batch()
  for i, file in ipairs(view and view.review.files or {}) do
    inline.show_marks(file, i == view.file and view.hunk or nil, view.review.applied, split.has(file), batch)
  end
  if drawing then
    drawing:stop()
  end
  drawing = batch.cut and timer.after(1, draw_marks) or nil
end

local function draw()
  if not view then
    return
  end
  draw_marks()
  local here = inside and inside:here()
  view.inside, view.typing, view.open = inside ~= nil, here and here.typed == true or false, queue.count()
  legend.show(view)
end

--- Shows a message in the legend, or removes it.
---@param text string?
local function say(text)
  if view then
    view.note = text
    draw()
  end
end

local function leave()
  local was = inside
  inside = nil
  if was then
    was:remove()
    draw()
  end
end

--- Updates the proposal with text that the user has typed.
local function take_typed()
  for i, file in ipairs(view and view.review.files or {}) do
    local lines = split.typed(file)
    if lines then
      view.review:rewrite(i, lines)
    end
  end
end

--- Returns whether a user can review anything.
---@return boolean
function M.is_attended()
  return #api.nvim_list_uis() > 0
end

--- Returns the keys. If the change was already made, the agent has its result: there is no reason to give and no
--- proposal to edit.
---@param review mcp-tools.Review
---@return mcp-tools.ReviewAction[]
local function actions_of(review)
  local whole, applied = review.whole, review.applied
  local yes, no = applied and 'keep' or 'accept', applied and 'revert' or 'reject'
  ---@type any[]
  local list = {
    { ']c', M.next, 'next hunk', 'next', in_row = true },
    { '[c', M.previous, 'previous hunk', 'previous', in_row = true },
    not whole and { 'A', M.all, yes .. ' all remaining hunks', yes .. ' all', in_row = true, edits = true },
    not whole and { 'D', M.none, no .. ' all remaining hunks', no .. ' all', in_row = true, edits = true },
    { 'y', M.yes, whole and 'accept all of it' or yes .. ' this hunk', whole and 'accept all' or yes },
    { 'n', M.no, whole and 'reject all of it' or no .. ' this hunk', whole and 'reject all' or no },
    not (whole or applied or review.no_reason)
      and { 'N', M.no_because, 'reject this hunk and give a reason', 'reject, why' },
    not (whole or applied) and { 'e', M.edit, 'edit this hunk', 'edit', edits = true },
    not whole and { 'u', M.undo, 'undo this decision, or your last', 'undo', edits = true },
    { 'q', M.later, 'review later', 'later' },
  }
  local actions = {}
  for _, action in ipairs(list) do
    table.insert(actions, action or nil)
  end
  return actions
end

---@param review mcp-tools.Review
function M.show(review)
  shown_at = uv.hrtime()
  view = { review = review, actions = actions_of(review), file = 1, hunk = 0, decided = {} }
  local file, hunk = neighbor(1)
  view.file, view.hunk = file or 1, hunk or 1
  draw()
  api.nvim_create_autocmd({ 'BufWinEnter', 'WinResized' }, { -- virtual lines are wrapped at the width of the windows
    group = api.nvim_create_augroup('mcp-tools.review.windows', {}),
    callback = vim.schedule_wrap(draw_marks),
  })
  if review.asked then
    review.asked = false
    M.enter()
  end
end

---@param review mcp-tools.Review
function M.update(review)
  if view and view.review == review then
    split.update(review.files)
    local file = review.files[view.file]
    if file.gone or not file.hunks[view.hunk] then
      local next_file, next_hunk = neighbor(1, { 1, 0 })
      view.file, view.hunk = next_file or view.file, next_hunk or 1
    end
    draw()
  end
end

---@param review mcp-tools.Review
function M.hide(review)
  local text = inside and review.ended and legend.summary(review)
  if text then
    notify.info(text)
  end
  leave()
  hidden_at, view = uv.hrtime(), nil
  api.nvim_create_augroup('mcp-tools.review.windows', {})
  for _, file in ipairs(review.files) do
    if file.bufnr then
      inline.clear_marks(file.bufnr)
    end
    inline.drop_new_file(file)
  end
  split.close()
  legend.show(nil)
end

-- Navigation ---------------------------------------------------------------------------------------------------------

---@type fun(file: integer, hunk: integer)
local go

--- Moves the cursor to a hunk.
---@param file integer
---@param hunk integer
function go(file, hunk)
  local proposal = view.review.files[file]
  local layout = config.get().review.layout == 'split' and split or inline
  local closed = layout == split and proposal.bufnr and not split.has(proposal)
  if not inside or not inside:here() or shown_file ~= proposal or closed then
    leave()
    inside, shown_file = keys.set(layout.open(proposal, take_typed), view.actions, draw, leave), proposal
  end
  view.file, view.hunk = file, hunk
  if proposal.hunks[hunk] then
    proposal.hunks[hunk].skip = nil -- shown from its beginning again
  end
  split.jump(proposal, hunk)
  say(nil)
end

--- Moves the cursor to the review.
---@return boolean
function M.enter()
  if not view then
    notify.info('no review is open')
    return false
  elseif vim.fn.getcmdwintype() ~= '' then
    notify.warn('close the command-line window first (<C-c><C-c>)')
    return false
  end
  local file, hunk = view.file, view.hunk
  local proposal = view.review.files[file]
  if proposal.gone or not proposal.hunks[hunk] or proposal.hunks[hunk].verdict then
    file, hunk = neighbor(1, { 1, 0 })
  end
  go(file or 1, hunk or 1)
  return true
end

-- Decisions ----------------------------------------------------------------------------------------------------------

--- Selects the next undecided hunk.
---@param review mcp-tools.Review
local function go_on(review)
  if not view or view.review ~= review then
    return -- that was the last one
  end
  local file, hunk = neighbor(1)
  if inside and file then
    go(file, hunk --[[@as integer]])
  elseif file then
    view.file, view.hunk = file, hunk
    say(nil)
  end
end

--- Returns the review if it can be answered, otherwise notifies the user.
---@return mcp-tools.Review?
local function answerable()
  if not view then
    notify.info('no review is open')
  elseif shown_at - hidden_at < GUARD_NS and uv.hrtime() - shown_at < GUARD_NS then
    say('The review has just changed. Look at it, then answer again.')
  else
    help.close() -- it closes after the current key, and does not count as a cover
    take_typed()
    return view.review
  end
end

--- Shows more of a hunk whose end is not visible, or says why it cannot be accepted yet.
---@param hunk mcp-tools.Hunk
---@param how mcp-tools.HunkView
---@param window integer?
---@param rows integer?
---@param drawn integer?
---@return string why
local function read_on(hunk, how, window, rows, drawn)
  if how == 'off' or not window or not rows then
    return 'the hunk is not on the screen: :McpTools review shows it'
  elseif how == 'covered' or rows < MIN_ROWS then
    return 'another window covers the hunk: close or answer that first'
  end
  local bufnr = api.nvim_win_get_buf(window)
  if drawn and drawn > 0 then -- virtual lines are not scrolled but drawn from a later one
    hunk.skip = math.min((hunk.skip or 0) + inline.lines_in(bufnr, hunk, drawn), #hunk.new - 1)
    if hunk.start + hunk.count - 2 < 0 then
      draw_marks()
      inline.show_above(window)
    end
  else
    visible.scroll(window, rows)
  end
  view.reading = { window = window, cursor = api.nvim_win_get_cursor(window) }
  return MORE
end

--- Returns whether the cursor is where reading on has moved it, which may be below the hunk.
---@return boolean
local function is_reading()
  local reading = view and view.reading
  return reading ~= nil
    and api.nvim_get_current_win() == reading.window
    and vim.deep_equal(api.nvim_win_get_cursor(0), reading.cursor)
end

--- Calls a function with the hunk at the cursor, or with the current hunk if the cursor is outside the review.
---@param fn fun(review: mcp-tools.Review, file: integer, hunk: integer): boolean?, string? ok, or why not
---@param stay boolean? do not move to the next hunk
local function with_hunk(fn, stay)
  local review, one = answerable(), view
  if not review or not one then
    return
  end
  local file, hunk = split.at_cursor(review.files)
  if hunk then
    one.file, one.hunk = file, hunk
  elseif inside and file and not is_reading() then
    return say('no hunk at the cursor: ]c moves to the next one')
  end
  local ok, why = fn(review, one.file, one.hunk)
  if ok == false and view == one then
    return say(why)
  elseif stay then
    return say(nil)
  end
  go_on(review)
end

--- Decides all undecided hunks.
---@param wanted boolean whether the result is what the agent proposes
---@param reason string?
local function decide_rest(wanted, reason)
  local review = answerable()
  if not review then
    return
  end
  local ok, why = review:decide_rest(wanted ~= review.applied and 'accepted' or 'rejected', reason)
  if not ok then
    say(why)
  end
end

---@return boolean
local function is_whole()
  return view ~= nil and view.review.whole
end

--- Accepts a review that is decided as a whole, or shows the next hunk whose end was not on the screen.
---@param review mcp-tools.Review
local function accept_whole(review)
  local next_file, next_hunk ---@type integer?, integer?
  for f, file in ipairs(review.files) do
    for h, hunk in ipairs(file.gone and {} or file.hunks) do
      hunk.was_read = hunk.was_read or inline.view(file, h, split.has(file)) == 'read'
      if not hunk.was_read and not next_file then
        next_file, next_hunk = f, h
      end
    end
  end
  if not next_file or not next_hunk then
    return decide_rest(true)
  end
  local file = review.files[next_file]
  local how, window, rows, drawn = inline.view(file, next_hunk, split.has(file))
  if how == 'off' then
    go(next_file, next_hunk)
    return say(MORE)
  end
  say(read_on(file.hunks[next_hunk], how, window, rows, drawn))
end

---@param wanted boolean whether the result is what the agent proposes
---@param reason string?
---@return fun(review: mcp-tools.Review, file: integer, hunk: integer): boolean?, string?
local function verdict(wanted, reason)
  return function(review, file, hunk)
    local one = review.files[file]
    local how, window, rows, drawn = inline.view(one, hunk, split.has(one))
    if wanted and how ~= 'read' then
      return false, read_on(one.hunks[hunk], how, window, rows, drawn)
    end
    if view and view.review == review then
      table.insert(view.decided, review.files[file].hunks[hunk])
    end
    if wanted ~= review.applied then
      local ok, why = review:accept(file, hunk)
      local is_stuck = not ok and one.hunks[hunk] and one.hunks[hunk].changed
      return ok, is_stuck and 'its lines have changed: ' .. inline.ways_out(review.applied) or why
    end
    return review:reject(file, hunk, reason)
  end
end

--- Accepts the current hunk, or keeps it if the change was already made.
function M.yes()
  if is_whole() then
    local review = answerable()
    return review and accept_whole(review)
  end
  with_hunk(verdict(true))
end

--- Rejects the current hunk, or reverts it if the change was already made.
function M.no()
  if is_whole() then
    return decide_rest(false)
  end
  with_hunk(verdict(false))
end

--- Returns whether a reason cannot reach the agent, and notifies the user. After the change was made, the agent has its
--- answer.
---@return boolean
local function has_no_reason()
  if view and (view.review.no_reason or view.review.applied) then
    say('this agent cannot receive a reason: reject without one')
    return true
  end
  return false
end

--- Rejects the current hunk with a reason for the agent.
function M.no_because()
  if has_no_reason() then
    return
  end
  with_hunk(function(review, file, hunk)
    local one = review.files[file].hunks[hunk]
    vim.ui.input({ prompt = 'Reason for the assistant (may be empty): ' }, function(reason)
      api.nvim_echo({ { '' } }, false, {}) -- clears the prompt
      local i = reason and not review.ended and index_of(review.files[file], one)
      if i then
        verdict(false, reason ~= '' and reason or nil)(review, file, i)
        go_on(review)
      end
    end)
  end, true)
end

--- Opens an editor for the new text of the current hunk.
function M.edit()
  with_hunk(function(review, file, hunk)
    local proposal = review.files[file]
    local one = proposal.hunks[hunk]
    if not proposal.editable or review.applied then
      return false, 'this hunk cannot be edited'
    elseif proposal.is_new then
      return false, 'edit the proposed text here, then accept it'
    end
    local was_inside, edited = inside ~= nil, false
    local function place()
      return not review.ended and index_of(proposal, one) or nil
    end
    hunk_editor.open(one.new, vim.bo[proposal.bufnr].filetype, function(lines)
      local i = place()
      if not i then
        return notify.warn('that hunk is no longer under review')
      end
      review:edit(file, i, lines)
      edited = true
    end, function()
      local i = place()
      if not i or not view or view.review ~= review then
        return
      end
      if was_inside then
        go(file, i)
      end
      if edited then
        say('edited: y accepts it')
      end
    end)
  end, true)
end

--- Undoes the decision on the hunk at the cursor or the user's edit of it, otherwise the last decision.
function M.undo()
  if not view then
    return notify.info('no review is open')
  elseif is_whole() then
    return say('this change is decided as a whole: y or n')
  end
  take_typed()
  local file, hunk = split.at_cursor(view.review.files)
  local one = hunk and view.review.files[file].hunks[hunk] --[[@as table?]]
  if one and one.changed and not one.verdict then -- so that it can be accepted again
    local proposal = view.review.files[file]
    api.nvim_buf_call(proposal.bufnr, function() -- in the split layout the cursor may be in the other buffer
      vim.cmd('silent! undo')
    end)
    proposal:sync()
    return say(nil)
  elseif not one or not one.verdict then
    file, hunk = latest()
  end
  if not file or not hunk then
    return say('there is no decision to undo')
  end
  view.review:reopen(file, hunk)
  if inside then
    return go(file, hunk)
  end
  view.file, view.hunk = file, hunk
  say(nil)
end

--- Accepts every hunk whose end is on the screen. If some are not, shows more instead.
function M.accept_seen()
  local review = answerable()
  if not review then
    return
  elseif review.whole then
    return accept_whole(review)
  end
  local accept = verdict(true)
  local unread ---@type { [1]: mcp-tools.Hunk, [2]: mcp-tools.HunkView, [3]: integer?, [4]: integer?, [5]: integer? }?
  for f, file in ipairs(review.files) do
    for h, hunk in ipairs(file.hunks) do
      if not review.ended and not hunk.verdict then
        local how, window, rows, drawn = inline.view(file, h, split.has(file))
        if how == 'read' then
          accept(review, f, h)
        elseif how ~= 'off' then
          unread = unread or { hunk, how, window, rows, drawn }
        end
      end
    end
  end
  if review.ended then
    return
  elseif unread then
    return say(read_on(unread[1], unread[2], unread[3], unread[4], unread[5]))
  end
  M.enter()
  say('more hunks are left: read them, then press again')
end

--- Accepts all remaining hunks.
function M.all()
  decide_rest(true)
end

--- Rejects all remaining hunks.
---@param reason string? for the agent
function M.none(reason)
  if not reason or not has_no_reason() then
    decide_rest(false, reason)
  end
end

--- Leaves the review; the next waiting review comes first then.
function M.later()
  take_typed()
  leave()
  inline.leave_new_file()
  split.close()
  if queue.count() > 1 then
    queue.postpone()
  end
end

---@param step 1|-1
local function move(step)
  if not view then
    return notify.info('no review is open')
  end
  local file, hunk, before = split.at_cursor(view.review.files)
  local from = file and { file, hunk or (step > 0 and before or before + 1) } or nil
  local next_file, next_hunk = neighbor(step, from)
  if next_file then
    go(next_file, next_hunk)
  end
end

--- Goes to the next hunk.
function M.next()
  move(1)
end

--- Goes to the previous hunk.
function M.previous()
  move(-1)
end

return M

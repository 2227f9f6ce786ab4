--- Takes the user's decisions on the hunks of a review.

local help = require('mcp-tools.ui.window.help')
local hunk_editor = require('mcp-tools.ui.review.hunk_editor')
local hunk_window = require('mcp-tools.ui.review.hunk_window')
local inline = require('mcp-tools.ui.review.inline')
local notify = require('mcp-tools.notify')
local queue = require('mcp-tools.editor.review')
local screen = require('mcp-tools.ui.review.screen')
local seen_hunks = require('mcp-tools.ui.review.seen_hunks')
local split = require('mcp-tools.ui.review.split')

local api = vim.api

local M = {}

local WHOLE = 'this change is decided as a whole: y or n'
local MORE = 'more is shown now: read it, then press again'
local COVERED = 'another window covers the hunk: close or answer that first'

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
  local view = screen.view --[[@as mcp-tools.ReviewView]]
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

--- Returns the keys. All are mapped, because an unmapped key would change the text: one that does not apply to a review
--- shows a message. If the change was already made, the agent has its result, so the user cannot give a reason or edit
--- the proposal.
---@param review mcp-tools.Review
---@return mcp-tools.ReviewAction[]
local function actions_of(review)
  local whole, applied = review.whole, review.applied
  local by_hunk, is_open = not whole or nil, not (whole or applied) or nil
  local can_explain = is_open and not review.no_reason or nil
  local yes, no = applied and 'keep' or 'accept', applied and 'revert' or 'reject'
  return {
    { ']c', M.next, 'next hunk', 'next', in_row = true },
    { '[c', M.previous, 'previous hunk', 'previous', in_row = true },
    {
      'A',
      whole and M.yes or M.all,
      yes .. ' all remaining hunks',
      by_hunk and yes .. ' all',
      in_row = true,
      edits = true,
    },
    { 'D', M.none, no .. ' all remaining hunks', by_hunk and no .. ' all', in_row = true, edits = true },
    { 'y', M.yes, whole and 'accept all of it' or yes .. ' this hunk', whole and 'accept all' or yes },
    { 'n', M.no, whole and 'reject all of it' or no .. ' this hunk', whole and 'reject all' or no },
    { 'N', M.no_because, 'reject this hunk and give a reason', can_explain and 'reject, why' },
    { 'e', M.edit, 'edit this hunk', is_open and 'edit', edits = true },
    { 'u', M.undo, 'undo this decision, or your last', by_hunk and 'undo', edits = true },
    { 'q', M.later, 'review later', 'later' },
  }
end

-- The presenter of the queue ------------------------------------------------------------------------------------------

M.update, M.hide, M.enter = screen.update, screen.hide, screen.enter

--- Returns whether a user can review anything.
---@return boolean
function M.is_attended()
  return #api.nvim_list_uis() > 0
end

---@param review mcp-tools.Review
function M.show(review)
  screen.show(review, actions_of(review), M.accept_file)
  if review.asked then
    review.asked = false
    M.enter()
  end
end

-- Decisions ----------------------------------------------------------------------------------------------------------

--- Selects the next undecided hunk.
---@param review mcp-tools.Review
local function go_on(review)
  if not screen.view or screen.view.review ~= review then
    return -- that was the last one
  end
  local file, hunk = screen.neighbor(1)
  if file then
    local select = screen.inside and screen.go or screen.select
    select(file, hunk --[[@as integer]])
  end
end

--- Returns the review if it can be answered, otherwise notifies the user.
---@return mcp-tools.Review?
local function answerable()
  if not screen.view then
    notify.info('no review is open')
  elseif screen.has_just_changed() then
    screen.say('The review has just changed. Look at it, then answer again.')
  else
    help.close() -- it would close only after this key, and until then cover the hunk
    screen.take_typed()
    return screen.view.review
  end
end

---@param review mcp-tools.Review
---@param file integer
---@param hunk integer
---@param wanted boolean whether the result is what the agent proposes
---@param reason string?
---@return boolean?
---@return string? why_not
local function decide_one(review, file, hunk, wanted, reason)
  local one = review.files[file].hunks[hunk]
  if screen.view and screen.view.review == review then
    table.insert(screen.view.decided, one)
  end
  if wanted ~= review.applied then
    local ok, why = review:accept(file, hunk)
    return ok, not ok and one and one.changed and 'its lines have changed: ' .. inline.ways_out(review.applied) or why
  end
  return review:reject(file, hunk, reason)
end

--- Decides one hunk and selects the next one, or shows why it was not decided.
---@param review mcp-tools.Review
---@param file integer
---@param hunk integer
---@param wanted boolean whether the result is what the agent proposes
---@param reason string?
local function decide_and_go_on(review, file, hunk, wanted, reason)
  local ok, why = decide_one(review, file, hunk, wanted, reason)
  if ok == false then
    return screen.say(why)
  end
  go_on(review)
end

--- Opens a window with all lines of a hunk, in which it can be decided.
---@param f integer
---@param h integer
local function open_hunk_window(f, h)
  local review, go_back = screen.view.review, screen.go_back
  local file, hunk = review.files[f], review.files[f].hunks[h]
  hunk_window.open(file, hunk, review.applied, function(is_back, accepted)
    local i = screen.view and screen.view.review == review and index_of(file, hunk)
    screen.draw()
    if not i or not is_back then
      return
    end
    screen.go(f, i)
    screen.go_back = go_back
    if accepted then
      hunk.seen = { all = true }
    end
    if accepted ~= nil and review.whole then
      M.decide(accepted)
    elseif accepted ~= nil then
      decide_and_go_on(review, f, i, accepted)
    end
  end)
  screen.draw()
end

--- Returns whether all of a hunk was on the screen. Otherwise shows more of it.
---@param f integer
---@param h integer
---@return boolean
---@return string? why_not
local function is_read(f, h)
  local file = screen.view.review.files[f]
  local hunk = file.hunks[h]
  if hunk.changed then
    return true -- it cannot be accepted
  elseif hunk.verdict == 'rejected' then -- its new lines are not drawn
    screen.view.review:reopen(f, h)
    screen.draw_marks()
    return false, MORE
  end
  vim.cmd.redraw() -- the screen is not up to date if keys were typed ahead
  local part, is_here = seen_hunks.unread(file, h)
  if is_here and not part then
    return true
  end
  screen.draw_marks() -- the width of the window may have changed
  if not screen.inside then
    screen.enter()
  elseif seen_hunks.is_covered() then
    return false, COVERED
  elseif is_here ~= nil and not seen_hunks.scroll(hunk, part) then
    open_hunk_window(f, h)
    return false
  end
  return false, MORE
end

--- Returns the hunk at the cursor, or the current hunk if the cursor is outside the review.
---@return mcp-tools.Review? review nil: there is none, and the user was notified
---@return integer file
---@return integer hunk
local function chosen()
  local review, view = answerable(), screen.view --[[@as mcp-tools.ReviewView]]
  if not review then
    return nil, 0, 0
  end
  local file, hunk = split.at_cursor(review.files, view.hunk)
  if hunk then
    view.file, view.hunk = file, hunk
  elseif screen.inside and file or not review.files[view.file].hunks[view.hunk] then
    screen.say('no hunk at the cursor: ]c moves to the next one')
    return nil, 0, 0
  end
  view.note = nil
  return review, view.file, view.hunk
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
    screen.say(why)
  end
end

---@return boolean
local function is_whole()
  return screen.view ~= nil and screen.view.review.whole
end

--- Accepts a review that is decided as a whole, or shows the next hunk of which not all was on the screen.
---@param review mcp-tools.Review
local function accept_whole(review)
  seen_hunks.note(review.files)
  for f, file in ipairs(review.files) do
    for h, hunk in ipairs(file.gone and {} or file.hunks) do
      if not hunk.changed and not (hunk.seen and hunk.seen.all) then
        local read, why = false, MORE
        if screen.inside and screen.view.file == f and screen.view.hunk == h then
          read, why = is_read(f, h)
        else
          screen.go(f, h)
        end
        if not read then
          return screen.say(why)
        end
      end
    end
  end
  decide_rest(true)
end

--- Decides on the current hunk, or on a review that has one decision.
---@param wanted boolean whether the result is what the agent proposes
function M.decide(wanted)
  if is_whole() and not wanted then
    return decide_rest(false)
  elseif is_whole() then
    local review = answerable()
    return review and accept_whole(review)
  end
  local review, file, hunk = chosen()
  if not review then
    return
  elseif wanted then
    local read, why = is_read(file, hunk)
    if not read then
      return screen.say(why)
    end
  end
  decide_and_go_on(review, file, hunk, wanted)
end

--- Accepts the current hunk, or keeps it if the change was already made.
function M.yes()
  M.decide(true)
end

--- Rejects the current hunk, or reverts it if the change was already made.
function M.no()
  M.decide(false)
end

--- Returns whether no reason can reach the agent; if so, notifies the user. After the change was made, the agent
--- already has its result.
---@return boolean
local function refuses_reason()
  if screen.view and (screen.view.review.no_reason or screen.view.review.applied) then
    screen.say('this agent cannot receive a reason: reject without one')
    return true
  end
  return false
end

--- Rejects the current hunk with a reason for the agent.
function M.no_because()
  if refuses_reason() then
    return
  elseif is_whole() then
    return screen.say(WHOLE)
  end
  local review, f, h = chosen()
  if not review then
    return
  end
  local file, hunk = review.files[f], review.files[f].hunks[h]
  vim.ui.input({ prompt = 'Reason for the assistant (empty: reject without one): ' }, function(reason)
    api.nvim_echo({ { '' } }, false, {}) -- clears the prompt
    local i = reason and not review.ended and index_of(file, hunk)
    if i then
      decide_and_go_on(review, f, i, false, reason ~= '' and reason or nil)
    end
  end)
end

--- Opens an editor for the new text of the current hunk.
function M.edit()
  local review, f, h = chosen()
  if not review then
    return
  end
  local file, hunk = review.files[f], review.files[f].hunks[h]
  if not file.editable or review.applied or review.whole then
    return screen.say('this hunk cannot be edited')
  elseif file.is_new then
    return screen.say('edit the proposed text here, then accept it')
  end
  local was_inside, message = screen.inside ~= nil, nil
  local function place()
    return not review.ended and index_of(file, hunk) or nil
  end
  hunk_editor.open(hunk.new, vim.bo[file.bufnr].filetype, function(lines)
    local i = place()
    if not i then
      notify.warn('that hunk is no longer under review: the text was not used')
      return false
    end
    review:edit(f, i, lines)
    message = 'edited: y accepts it'
    return true
  end, function()
    local i = screen.view and screen.view.review == review and place()
    if i and was_inside then
      screen.go(f, i)
    end
    if i then
      screen.say(message)
    end
  end)
end

--- Undoes the decision on the hunk at the cursor or the user's edit of it, otherwise the last decision.
function M.undo()
  local view = screen.view
  if not view then
    return notify.info('no review is open')
  elseif is_whole() then
    return screen.say(WHOLE)
  end
  screen.take_typed()
  local f, h = split.at_cursor(view.review.files)
  local file = view.review.files[f]
  local hunk = file and file.hunks[h] ---@type mcp-tools.Hunk?
  if hunk and hunk.changed and not hunk.verdict then -- so that it can be accepted again
    api.nvim_buf_call(file.bufnr, function() -- in the split layout the cursor may be in the other buffer
      vim.cmd('silent! undo')
    end)
    file:sync()
    return screen.say(nil)
  elseif not hunk or not hunk.verdict then
    f, h = latest()
  end
  if not f or not h then
    return screen.say('there is no decision to undo')
  end
  view.review:reopen(f, h)
  local select = screen.inside and screen.go or screen.select
  select(f, h)
end

--- Accepts those of some hunks that are undecided.
---@param review mcp-tools.Review
---@param hunks { [1]: integer, [2]: mcp-tools.Hunk }[] file and hunk
local function accept_each(review, hunks)
  for _, each in ipairs(hunks) do
    local f, hunk = unpack(each)
    local h = not review.ended and not hunk.verdict and index_of(review.files[f], hunk)
    if h then
      decide_one(review, f, h, true)
    end
  end
end

--- Accepts every hunk on the screen of which all was shown. If there is none, shows more.
function M.accept_seen()
  local review, view = answerable(), screen.view --[[@as mcp-tools.ReviewView]]
  if not review then
    return
  elseif review.whole then
    return accept_whole(review)
  end
  screen.draw_marks()
  local read = seen_hunks.note(review.files)
  accept_each(review, read)
  if review.ended then
    return
  end
  local one = review.files[view.file].hunks[view.hunk]
  if #read == 0 and screen.inside and one and not one.verdict then
    return screen.say(select(2, is_read(view.file, view.hunk)))
  end
  M.enter()
  screen.say('more hunks are left: read them, then press again')
end

--- Accepts the undecided hunks of one file.
---@param file mcp-tools.Proposal
function M.accept_file(file)
  local review = screen.view and vim.list_contains(screen.view.review.files, file) and answerable()
  if not review then
    return
  elseif review.whole then
    return accept_whole(review)
  end
  for f, each in ipairs(review.files) do
    accept_each(
      review,
      vim.tbl_map(function(hunk)
        return { f, hunk }
      end, each == file and each.hunks or {})
    )
  end
  go_on(review)
end

--- Accepts all remaining hunks.
function M.all()
  decide_rest(true)
end

--- Rejects all remaining hunks.
---@param reason string? for the agent
function M.none(reason)
  if not reason or not refuses_reason() then
    decide_rest(false, reason)
  end
end

--- Leaves the review and moves it to the end of the queue.
function M.later()
  screen.take_typed()
  screen.leave()
  inline.leave_new_file()
  split.close()
  if queue.count() > 1 then
    queue.postpone()
  end
end

---@param step 1|-1
local function move(step)
  if not screen.view then
    return notify.info('no review is open')
  end
  local file, hunk, before = split.at_cursor(screen.view.review.files)
  local from = file and { file, hunk or (step > 0 and before or before + 1) } or nil
  local next_file, next_hunk = screen.neighbor(step, from)
  if next_file then
    screen.go(next_file, next_hunk)
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

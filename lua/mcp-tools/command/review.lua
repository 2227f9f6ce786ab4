--- Subcommands for agents' edits: review and changes.

local access = require('mcp-tools.privacy.access')
local approval = require('mcp-tools.ui.approval')
local changes = require('mcp-tools.editor.edit.history')
local core = require('mcp-tools.core')
local diff_view = require('mcp-tools.ui.window.diff')
local marks = require('mcp-tools.ui.edits')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.instances.project')
local queue = require('mcp-tools.editor.review')
local edit = require('mcp-tools.editor.edit')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')
local show = require('mcp-tools.editor.user.show')
local text_diff = require('mcp-tools.editor.text.diff')
local trim = require('mcp-tools.util.trim')
local ui = require('mcp-tools.ui.review')

---@type table<string, mcp-tools.Subcommand>
local M = {}

--- Lets the user choose a proposal.
local function choose()
  vim.ui.select(queue.list(), {
    prompt = ('%d proposal%s to review'):format(queue.count(), queue.count() == 1 and '' or 's'),
    format_item = function(review)
      local who, left = review.client.name or 'an agent', review:undecided()
      return sanitize.line(('%s: %s (%d hunk%s left)'):format(who, review.title, left, left == 1 and '' or 's'))
    end,
  }, function(review)
    if review then
      queue.bring_forward(review)
      ui.enter()
    end
  end)
end

local ACTIONS = {
  accept = ui.yes,
  reject = ui.no,
  reason = ui.no_because,
  edit = ui.edit,
  undo = ui.undo,
  all = ui.all,
  none = ui.none,
  next = ui.next,
  previous = ui.previous,
  later = ui.later,
  list = choose,
}

---@type mcp-tools.Subcommand
M.review = {
  usage = '[WORD]',
  description = 'go to the edit that an agent proposes, also from a question for approval; or decide on the hunk at the'
    .. ' cursor, otherwise on the marked one (|mcp-tools-review| lists the words); `list` chooses a proposal',
  run = function(rest)
    core.get() -- registers the review UI
    local action = rest == '' and ui.enter or ACTIONS[rest]
    if not action then
      return notify.error(("unknown word '%s'"):format(rest), 'See :h mcp-tools-review')
    elseif queue.count() == 0 then
      local question = approval.current()
      if rest ~= '' or not question or not vim.list_contains(question.choices, 'review') then
        return notify.info('nothing to review')
      end
      return approval.answer_current('review')
    end
    action()
    if rest == '' and queue.count() > 1 then
      notify.info(('%d more to review (:McpTools review list)'):format(queue.count() - 1))
    end
  end,
  complete = { 'accept', 'reject', 'reason', 'edit', 'undo', 'all', 'none', 'next', 'previous', 'later', 'list' },
}

local api = vim.api

local TITLE = 'changes by agents'

---@param change mcp-tools.Change
---@return string
local function shown(change)
  return sanitize.line(access.shown(change.path, project.root()))
end

---@param change mcp-tools.Change
---@return string
local function row_of(change)
  local added, removed = 0, 0
  for _, hunk in ipairs(change.hunks) do
    added, removed = added + #hunk.new, removed + hunk.count
  end
  local who = sanitize.line(change.client and change.client.name or 'unknown')
  local line, undone = changes.place(change)
  local state = undone and '  reverted' or change.is_new and '  new file' or ''
  local text = '%4d  %s  %s:%d  +%d -%d  %s, %s%s'
  local when = os.date('%H:%M:%S', change.at)
  return text:format(change.id, when, shown(change), line, added, removed, who, change.tool, state)
end

---@param rows mcp-tools.Rows
---@return string[]?
local function add_rows(rows)
  local list = changes.list()
  for _, change in ipairs(list) do
    rows:add({ row_of(change) }, { kind = 'change', id = tostring(change.id), value = change })
  end
  return #list == 0 and { 'no agent has changed a file' } or nil
end

---@param change mcp-tools.Change
local function jump(change)
  local line = changes.place(change)
  local bufnr = vim.fn.bufadd(change.path)
  vim.fn.bufload(bufnr)
  local last = api.nvim_buf_line_count(bufnr)
  local window, err = show.show(bufnr, { line = math.max(1, math.min(line, last)), byte = 0 })
  if not window then
    return notify.error(err.message)
  end
  api.nvim_set_current_win(window)
end

---@param change mcp-tools.Change
---@param opts? table as mcp-tools.ScratchOpts
local function diff(change, opts)
  local name = shown(change)
  local names = { old = change.is_new and '/dev/null' or 'a/' .. name, new = 'b/' .. name }
  local text = text_diff.unified(change.before, changes.after(change), names)
  opts = vim.tbl_extend('error', opts or {}, { title = name, filetype = 'diff', spans = diff_view.spans })
  scratch.show('change', sanitize.lines(text), opts)
end

---@param change mcp-tools.Change
---@param done? fun()
local function run_revert(change, done)
  edit.revert(change, function(reverted, err)
    if not reverted then
      return notify.error(err.message)
    end
    marks.clear()
    if change.is_new then
      local bufnr = changes.buffer(change)
      local is_shown = bufnr and #vim.fn.win_findbuf(bufnr) > 0
      notify.info(shown(change) .. ' was deleted' .. (is_shown and '; its window keeps the text' or ''))
      return done and done()
    end
    local rest = reverted.left > 0 and ('; %d were changed again and stay'):format(reverted.left) or ''
    local plural, unsaved = reverted.hunks == 1 and '' or 's', reverted.unsaved and ', unsaved' or ''
    notify.info(('%s: reverted %d hunk%s%s%s'):format(shown(change), reverted.hunks, plural, unsaved, rest))
    if done then
      done()
    end
  end)
end

--- Reverts a change. If the change created the file, asks the user and deletes it.
---@param change mcp-tools.Change
---@param done? fun()
local function revert_change(change, done)
  if not change.is_new or change.reverted then
    return run_revert(change, done)
  end
  local prompt = ('This change created %s. Delete the file?'):format(shown(change))
  vim.ui.select({ 'Delete', 'Keep' }, { prompt = prompt }, function(choice)
    if choice == 'Delete' then
      run_revert(change, done)
    end
  end)
end

---@param lhs string
---@param word string
---@param description string
---@param fn fun(change: mcp-tools.Change)
---@param change? mcp-tools.Change default: the one under the cursor
---@return mcp-tools.ScratchKey
local function key(lhs, word, description, fn, change)
  local function run(item)
    if change or item then
      fn(change or item.value)
    end
  end
  return { lhs = lhs, word = word, description = description, run = run }
end

---@param here? integer id of the change to put the cursor on (default: that of the current line)
local function show_changes(here)
  here = here or marks.at(0, api.nvim_win_get_cursor(0)[1])
  local buffer ---@type integer
  local function undo(change)
    revert_change(change, function()
      scratch.update(buffer)
    end)
  end
  local function show_diff(change)
    local function back()
      show_changes(change.id)
    end
    local function undo_and_return()
      revert_change(change, back)
    end
    diff(change, { keys = { key('u', 'revert', 'revert this change', undo_and_return, change) }, back = back })
  end
  buffer = scratch.show('changes', add_rows, {
    title = TITLE,
    keys = {
      key('<CR>', 'jump', 'jump to this change', jump),
      key('d', 'diff', 'show this change as a diff', show_diff),
      key('u', 'revert', 'revert this change', undo),
    },
  })
  api.nvim_win_set_cursor(0, { 1, 0 })
  for row, each in ipairs(scratch.rows(buffer)) do
    if each.item and each.item.value.id == here then
      api.nvim_win_set_cursor(0, { row, 0 })
    end
  end
end

local CHANGE_ACTIONS = {
  jump = jump,
  diff = function(change)
    diff(change)
  end,
  revert = revert_change,
}

---@type mcp-tools.Subcommand
M.changes = {
  usage = '[jump N | diff N | revert N | clear]',
  description = 'list the changes by agents in this session, newest first, with the cursor on that of the'
    .. ' current line. Jump to a change, show it as a diff, or revert it (a buffer with unsaved changes stays unsaved;'
    .. ' a new file is deleted, after a question); or clear the marks',
  run = function(rest)
    if rest == '' then
      return show_changes()
    elseif rest == 'clear' then
      return marks.clear(true)
    end
    local name, id = rest:match('^(%a+)%s+(%d+)$')
    local change = id and changes.find(tonumber(id) --[[@as integer]])
    if not CHANGE_ACTIONS[name] then
      notify.error(':McpTools changes [jump N | diff N | revert N | clear]')
    elseif not change then
      notify.error(("unknown change '%s'; :McpTools changes lists all"):format(id))
    else
      CHANGE_ACTIONS[name](change)
    end
  end,
  arguments = 2,
  complete = function(_, rest)
    if trim(rest) == '' then
      return { 'clear', 'diff', 'jump', 'revert' }
    end
    return vim.tbl_map(function(change)
      return tostring(change.id)
    end, changes.list())
  end,
}

return M

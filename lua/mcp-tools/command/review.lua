--- Subcommands for edits of agents: review and changes.

local access = require('mcp-tools.privacy.access')
local approval = require('mcp-tools.ui.approval')
local change_marks = require('mcp-tools.ui.change_marks')
local changes = require('mcp-tools.editor.edit.history')
local core = require('mcp-tools.core')
local diff_view = require('mcp-tools.ui.window.diff')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.instances.project')
local queue = require('mcp-tools.editor.review')
local revert = require('mcp-tools.editor.edit.revert')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')
local text_diff = require('mcp-tools.editor.text.diff')
local trim = require('mcp-tools.util.trim')
local ui = require('mcp-tools.ui.review')

---@type table<string, mcp-tools.Subcommand>
local M = {}

--- Which of those that wait comes first.
local function choose()
  vim.ui.select(queue.list(), {
    prompt = ('%d wait for review'):format(queue.count()),
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

local NAMES = { 'accept', 'reject', 'reason', 'edit', 'undo', 'all', 'none', 'next', 'previous', 'later', 'list' }

---@type mcp-tools.Subcommand
M.review = {
  usage = '[WORD]',
  description = 'go to what an agent proposes, also where it waits in a question for approval; or decide on the hunk at'
    .. ' the cursor, else on the marked one (|mcp-tools-review| lists the words); `list` chooses one of several',
  run = function(rest)
    core.get() -- says who shows reviews
    local action = rest == '' and ui.enter or ACTIONS[rest]
    if not action then
      return notify.error((':McpTools review has no word %s'):format(rest), 'See :h mcp-tools-review')
    elseif queue.count() == 0 then
      local question = approval.current()
      if rest ~= '' or not question or not vim.list_contains(question.choices, 'review') then
        return notify.info('nothing waits for review')
      end
      local ok, why = approval.answer_current('review')
      if not ok and why then
        notify.warn(why)
      end
      return
    end
    action()
    if rest == '' and queue.count() > 1 then
      notify.info(('%d more waiting (:McpTools review list)'):format(queue.count() - 1))
    end
  end,
  complete = function()
    return NAMES
  end,
}

local api = vim.api

local TITLE = 'what agents have changed'

---@param change mcp-tools.Change
---@return string
local function shown(change)
  return sanitize.line(access.shown(change.path, project.root()))
end

--- The first line that it changed, and whether nothing of it is left, as far as that can be told now.
---@param change mcp-tools.Change
---@return integer line
---@return boolean gone by whatever way: `u` takes an edit back, and a revert
local function place_of(change)
  local loaded = change.bufnr and api.nvim_buf_is_loaded(change.bufnr)
  local now = loaded and api.nvim_buf_get_lines(change.bufnr, 0, -1, false) or changes.after(change)
  local back, gone = changes.reverse_hunks(change, now), true
  for _, hunk in ipairs(back) do
    gone = gone and hunk.is_there == true
  end
  return back[1].start, loaded and not change.is_new and gone or not loaded and change.reverted == true
end

---@param change mcp-tools.Change
---@return string
local function row_of(change)
  local added, removed = 0, 0
  for _, hunk in ipairs(change.hunks) do
    added, removed = added + #hunk.new, removed + hunk.count
  end
  local who = sanitize.line(change.client and change.client.name or 'somebody')
  local line, gone = place_of(change)
  local state = (gone or change.is_new and change.reverted) and '  taken back' or change.is_new and '  new file' or ''
  local text = '%4d  %s  %s:%d  +%d -%d  %s, %s%s'
  local when = os.date('%H:%M:%S', change.at)
  return text:format(change.id, when, shown(change), line, added, removed, who, change.tool, state)
end

---@return string[]
local function rows()
  local list = vim.tbl_map(row_of, changes.list())
  return #list > 0 and list or { 'no agent has changed anything yet' }
end

---@param change mcp-tools.Change
local function jump(change)
  local line = place_of(change)
  pcall(vim.cmd.wincmd, 'p') -- the command-line window forbids it; then it is shown where the person is
  vim.cmd("normal! m'")
  local bufnr = vim.fn.bufadd(change.path)
  vim.bo[bufnr].buflisted = true
  if api.nvim_get_current_buf() ~= bufnr and not pcall(vim.cmd.buffer, bufnr) then
    vim.cmd.sbuffer(bufnr)
  end
  api.nvim_win_set_cursor(0, { math.max(1, math.min(line, api.nvim_buf_line_count(0))), 0 })
  vim.cmd('normal! zvzz')
end

---@param change mcp-tools.Change
---@param opts? mcp-tools.ScratchOpts
local function diff(change, opts)
  local name = shown(change)
  local names = { old = change.is_new and '/dev/null' or 'a/' .. name, new = 'b/' .. name }
  local text = text_diff.unified(change.before, changes.after(change), names)
  opts = vim.tbl_extend('error', opts or {}, { title = name, filetype = 'diff', spans = diff_view.spans })
  scratch.show('change', sanitize.lines(text), opts)
end

---@param change mcp-tools.Change
---@param done? fun()
local function revert_now(change, done)
  revert.run(change, function(reverted, err)
    if not reverted then
      return notify.error(err.message)
    end
    change_marks.clear()
    if change.is_new then
      notify.info(shown(change) .. ' is deleted')
      return done and done()
    end
    local rest = reverted.left > 0 and ('; %d were changed again and stay'):format(reverted.left) or ''
    local one = reverted.hunks == 1 and '' or 's'
    notify.info(('%s: %d change%s taken back%s'):format(shown(change), reverted.hunks, one, rest))
    if done then
      done()
    end
  end)
end

--- There is no text before a new file: to take it back is to delete it, which is asked about.
---@param change mcp-tools.Change
---@param done? fun()
local function take_back(change, done)
  if not change.is_new then
    return revert_now(change, done)
  end
  local prompt = ('%s was made by this change. Delete the file?'):format(shown(change))
  vim.ui.select({ 'Delete it', 'Leave it' }, { prompt = prompt }, function(choice)
    if choice == 'Delete it' then
      revert_now(change, done)
    end
  end)
end

local UNDO = { lhs = 'u', word = 'take back', description = 'take this change back' }

---@param here? integer the change for the cursor to be on; that of the line it is on when left out
local function show_changes(here)
  local list = changes.list()
  here = here or change_marks.at(0, api.nvim_win_get_cursor(0)[1])
  local buffer
  local function key(lhs, word, description, fn)
    local function run()
      local change = list[api.nvim_win_get_cursor(0)[1]]
      if change then
        fn(change)
      end
    end
    return { lhs = lhs, word = word, description = description, run = run }
  end
  local function draw()
    list = changes.list()
    scratch.update(buffer)
  end
  local function undo(change)
    take_back(change, draw)
  end
  local function differ(change)
    local function back()
      show_changes(change.id)
    end
    local function undo_it()
      take_back(change, back)
    end
    diff(change, { keys = { vim.tbl_extend('error', UNDO, { run = undo_it }) }, back = back })
  end
  local keys = {
    key('<CR>', 'go', 'jump to this change', jump),
    key('d', 'difference', 'show this change as a diff', differ),
    key(UNDO.lhs, UNDO.word, UNDO.description, undo),
  }
  buffer = scratch.show('changes', rows, {
    title = TITLE,
    keys = keys,
    again = draw,
  })
  for row, change in ipairs(list) do
    if change.id == here then
      api.nvim_win_set_cursor(0, { row, 0 })
    end
  end
end

local CHANGE_ACTIONS = {
  jump = jump,
  diff = function(change)
    diff(change)
  end,
  revert = take_back,
}

---@type mcp-tools.Subcommand
M.changes = {
  usage = '[jump N | diff N | revert N | clear]',
  description = 'list what agents have changed in this session, newest first, from a marked line with the cursor on'
    .. ' its change; go to one, show it as a diff, or take it back (open files stay unsaved; a file that it made is'
    .. ' deleted, after a question); take the marks away',
  run = function(rest)
    if rest == '' then
      return show_changes()
    elseif rest == 'clear' then
      return change_marks.clear(true)
    end
    local name, id = rest:match('^(%a+)%s+(%d+)$')
    local change = id and changes.find(tonumber(id) --[[@as integer]])
    if not CHANGE_ACTIONS[name] then
      notify.error(':McpTools changes [jump N | diff N | revert N | clear]')
    elseif not change then
      notify.error(('there is no change %s; :McpTools changes lists them'):format(id))
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

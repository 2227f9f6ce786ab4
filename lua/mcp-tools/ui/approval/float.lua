--- Approval in a floating window.
---
--- Receives: a question for approval.
--- Sends: it to a floating window that is never entered by itself; keys in it answer.
--- Does not know about: what an answer means, what the window looks like.
---
--- What should be on screen is said once (`wanted`); `sync` makes it so, again and again while the editor does not
--- allow it (text is locked, the command-line window is open).

local Window = require('mcp-tools.ui.approval.window')
local choices_of = require('mcp-tools.ui.approval.choices')
local config = require('mcp-tools.config')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local sanitize = require('mcp-tools.util.sanitize')

local api, uv = vim.api, vim.uv

local M = { serial = true }

local RETRY_MS = 100
-- Keys pressed before the window was entered by itself were meant for the text.
local GUARD_NS = 500e6

---@type mcp-tools.Question?
local wanted
---@type mcp-tools.ApprovalWindow?
local shown
local group, retrying, stale
---@type integer? window in which something was opened while a question was there
local opened
local in_the_way = false
local deaf_until = 0

local sync

---@param question mcp-tools.Question
---@param choice mcp-tools.Choice
local function answer(question, choice)
  if uv.hrtime() < deaf_until then
    return
  end
  local ok, why = question:answer_shown(choice)
  if not ok and why then
    notify.warn(why)
  end
end

--- Goes back to the text; the question stays.
local function leave()
  vim.cmd.wincmd('p')
  if shown and shown:has_cursor() then
    vim.cmd.wincmd('w')
  end
end

--- Enters the window for who wants that, but not out of what they are doing.
local function enter()
  if not config.get().ui.approval_focus or api.nvim_get_mode().mode ~= 'n' or vim.fn.getcmdwintype() ~= '' then
    return
  end
  deaf_until = uv.hrtime() + GUARD_NS
  api.nvim_set_current_win(shown.window)
end

---@param question mcp-tools.Question
local function open(question)
  local actions = { leave = leave }
  for _, choice in ipairs(choices_of(question)) do
    actions[choice.name] = function()
      answer(question, choice.name)
    end
  end
  shown, stale = Window.open(question, actions, opened), false
  if not question.entered then
    question.entered = true
    enter()
  end
end

local function shut()
  local old = shown
  shown = nil
  local ok, err = pcall(old.close, old)
  if not ok then
    shown = old
    error(err, 0)
  end
end

local function stop_watching()
  if group then
    api.nvim_del_augroup_by_id(group)
    group, opened = nil, nil
  end
end

--- The window is gone and it was not us. To close it from inside is a no; what closes windows from outside (`:only`,
--- the end of its tab page) says nothing of the question, which comes again.
---@param window integer
local function closed(window)
  if not shown or shown.window ~= window then
    return
  end
  local question, tab, inside = shown.question, shown.tab, shown:has_cursor()
  shown = nil
  vim.schedule(function()
    if inside and api.nvim_tabpage_is_valid(tab) and question:answer('deny') then
      notify.info(('%s was denied: its window was closed'):format(sanitize.line(question.call.name)))
    end
  end)
  vim.defer_fn(sync, RETRY_MS)
end

local function watch()
  if group then
    return
  end
  group = api.nvim_create_augroup('mcp-tools-approval-window', {})
  local function on(event, callback)
    api.nvim_create_autocmd(event, { group = group, callback = callback })
  end
  on('WinClosed', function(event)
    closed(tonumber(event.match) --[[@as integer]])
  end)
  on('VimResized', function()
    stale = true
  end)
  on('BufWinEnter', function()
    local window = api.nvim_get_current_win()
    if not shown or window ~= shown.window then
      opened = window
    end
  end)
  on({ 'BufWinEnter', 'WinEnter', 'WinResized' }, function()
    in_the_way = true
    vim.schedule(sync)
  end)
  on({ 'TabEnter', 'VimResized', 'WinScrolled', 'ModeChanged' }, function()
    vim.schedule(sync)
  end)
end

local function reconcile()
  if shown and (stale or shown.question ~= wanted or not shown:is_here()) then
    shut()
  end
  if not wanted then
    return stop_watching()
  end
  watch()
  if not shown then
    open(wanted)
  elseif in_the_way then
    shown:make_way(opened)
  end
  in_the_way = false
  shown:set_frame()
  -- The editor may be waiting for a key, in the command line for one, and would not draw by itself.
  if api.nvim_get_mode().mode:sub(1, 1) == 'c' then
    vim.cmd.redraw()
  end
end

sync = function()
  local ok, err = pcall(reconcile)
  if ok or retrying then
    return
  end
  log.debug('the window for approval waits: %s', err)
  retrying = true
  vim.defer_fn(function()
    retrying = false
    sync()
  end, RETRY_MS)
end

---@param question mcp-tools.Question
function M.show(question)
  wanted = question
  sync()
end

---@param question mcp-tools.Question
function M.hide(question)
  if wanted == question then
    wanted = nil
  end
  vim.schedule(sync) -- the next question may be there by then
  if shown and shown.question == question and shown:has_cursor() then
    leave() -- at once: what was asked for begins now, and the text is its current buffer
  end
end

function M.update()
  vim.schedule(sync)
end

--- Shows more of a question that was not on the screen whole.
---@param question mcp-tools.Question
---@return boolean more false when all of it was
function M.reveal(question)
  if not shown or shown.question ~= question or not shown:is_here() then
    return not question.read
  elseif shown:unread() == 0 then
    return false
  end
  shown:scroll()
  vim.schedule(sync)
  return true
end

--- Says in the frame why the answer was not taken.
---@param question mcp-tools.Question
---@return boolean said
function M.refuse(question)
  vim.schedule(sync)
  return shown ~= nil and shown.question == question and shown:is_here()
end

--- Enters the window, when there is one.
function M.focus()
  if shown and shown:is_here() then
    api.nvim_set_current_win(shown.window)
  else
    notify.info('nothing is being asked')
  end
end

return M

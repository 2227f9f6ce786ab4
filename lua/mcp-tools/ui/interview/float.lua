--- Interview in floating windows.
---
--- Receives: an interview; keys in its windows.
--- Sends: it to windows that are never entered by themselves; keys in them answer, go back, or leave it.
--- Does not know about: other interviews, what the windows look like.
---
--- What should be on screen is said once (`wanted`); `sync` makes it so, again and again while the editor does not
--- allow it (text is locked, the command-line window is open).

local Window = require('mcp-tools.ui.interview.window')
local config = require('mcp-tools.config')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local way_back = require('mcp-tools.ui.float.way_back')

local api, uv = vim.api, vim.uv

local M = {}

local RETRY_MS = 100
-- Keys pressed before the window was entered by itself were meant for the text.
local GUARD_NS = 500e6

---@type mcp-tools.Interview?
local wanted
---@type mcp-tools.InterviewWindow?
local shown
local group, retrying, stale
local deaf_until = 0

local sync

---@param where? 'question'|'field'
local function go(where)
  shown:enter(where)
  if shown:cursor() == 'field' then
    vim.cmd('startinsert!')
  else
    vim.cmd.stopinsert()
  end
end

--- Goes on to what comes after an answer.
local function advance()
  local interview = shown.interview
  interview.why_not = nil
  local what = interview.answers:next()
  if what == 'end' then
    return interview:finish(interview.answers:result())
  elseif what == 'missing' then
    interview.why_not = 'choose one, or type an answer'
  else
    shown:show_question()
    go()
  end
  sync()
end

--- Chooses what the cursor is at; where only one can be chosen, that is the answer.
local function confirm()
  local choice, answers = shown:choice(), shown.interview.answers
  if choice and not answers:current().multiselect then
    answers:choose(choice)
    shown:draw()
  end
  advance()
end

---@param choice integer?
local function choose(choice)
  if choice and shown.interview.answers:current().choices[choice] then
    shown.interview.answers:choose(choice)
    shown:draw()
    shown:go_to(choice)
    sync()
  end
end

local function back()
  if shown.interview.answers:back() then
    shown.interview.why_not = nil
    shown:show_question()
    go()
    sync()
  end
end

--- From one choice to the next, and behind the last one to the field.
---@param step integer
local function tab(step)
  local count, at = #shown.interview.answers:current().choices, shown:choice() or 0
  if shown:cursor() == 'field' then
    if count > 0 then
      go('question')
      shown:go_to(step > 0 and 1 or count)
    end
  elseif at + step > count or at + step < 1 then
    go('field')
  else
    shown:go_to(at + step)
  end
  sync()
end

local function cancel()
  shown.interview:finish({ completed = false, answers = {} })
end

--- A key that answers; it does nothing as long as it may have been meant for the text.
---@param fn fun(...)
---@param ... any
---@return fun()
local function key(fn, ...)
  local values = { ... }
  return function()
    if shown and uv.hrtime() >= deaf_until then
      shown:take_text()
      fn(unpack(values))
    end
  end
end

---@return mcp-tools.InterviewKeys
local function keys()
  local both = { 'n', 'i' }
  local question = {
    ['<CR>'] = { 'n', key(confirm), 'answer' },
    ['<Space>'] = {
      'n',
      key(function()
        choose(shown:choice())
      end),
      'choose',
    },
    ['<Tab>'] = { 'n', key(tab, 1), 'next choice' },
    ['<S-Tab>'] = { 'n', key(tab, -1), 'choice before' },
    ['<C-P>'] = { 'n', key(back), 'question before' },
    ['<Esc>'] = { 'n', key(cancel), 'leave the interview' },
    q = { 'n', key(way_back.go), 'leave the interview open' },
  }
  for i = 1, 9 do
    question[tostring(i)] = { 'n', key(choose, i), ('choose %d'):format(i) }
  end
  for _, name in ipairs({ 'i', 'a', 'o', 'I', 'A', 'O' }) do
    question[name] = { 'n', key(go, 'field'), 'type an answer' }
  end
  local field = {
    ['<CR>'] = { both, key(advance), 'answer' },
    ['<Tab>'] = { both, key(tab, 1), 'to the choices' },
    ['<S-Tab>'] = { both, key(tab, -1), 'to the choices' },
    ['<C-P>'] = { both, key(back), 'question before' },
    ['<Esc>'] = { 'n', key(cancel), 'leave the interview' },
    q = { 'n', key(way_back.go), 'leave the interview open' },
  }
  return { question = question, field = field }
end

--- Enters the window for who wants that, but not out of what they are doing.
local function enter()
  if not config.get().ui.interview_focus or api.nvim_get_mode().mode ~= 'n' or vim.fn.getcmdwintype() ~= '' then
    return
  end
  deaf_until = uv.hrtime() + GUARD_NS
  shown:enter('question')
end

---@param inside 'question'|'field'|nil where the cursor was in windows that these replace
local function open(inside)
  shown, stale = Window.open(wanted, keys()), false
  if inside then
    go(inside)
  elseif not wanted.entered then
    wanted.entered = true
    enter()
  end
end

---@param again boolean they are made anew, for who is in them
local function shut(again)
  local old = shown
  if not old then
    return
  end
  local inside = old:cursor()
  shown = nil
  local ok, err = pcall(function()
    old:take_text()
    if inside and not again then
      way_back.go()
    end
    old:close()
  end)
  if not ok then
    shown = old
    error(err, 0)
  end
end

local function stop_watching()
  if group then
    api.nvim_del_augroup_by_id(group)
    group = nil
  end
end

--- One of the windows is gone and it was not us. To close it from inside is to leave the interview; what closes windows
--- from outside (`:only`, the end of its tab page) says nothing of it, and it comes again.
---@param window integer
local function closed(window)
  if not shown or (window ~= shown.window and window ~= shown.field) then
    return
  end
  local interview, old, inside = shown.interview, shown, shown:cursor()
  shown:take_text()
  shown = nil
  vim.schedule(function()
    pcall(old.close, old)
    if inside and api.nvim_tabpage_is_valid(old.tab) then
      interview:finish({ completed = false, answers = {} })
    end
  end)
  vim.defer_fn(sync, RETRY_MS)
end

local function watch()
  if group then
    return
  end
  group = api.nvim_create_augroup('mcp-tools-interview-window', {})
  local function on(event, callback)
    api.nvim_create_autocmd(event, { group = group, callback = callback })
  end
  on('WinClosed', function(event)
    closed(tonumber(event.match) --[[@as integer]])
  end)
  on('VimResized', function()
    stale = true
  end)
  on('WinLeave', function()
    if shown and not shown:cursor() then
      way_back.left()
    end
  end)
  on({ 'WinEnter', 'WinResized', 'TabEnter', 'VimResized', 'WinScrolled', 'ModeChanged' }, function()
    vim.schedule(sync)
  end)
end

local function reconcile()
  local inside
  if shown and (stale or shown.interview ~= wanted or not shown:is_here()) then
    inside = shown.interview == wanted and shown:cursor() or nil
    shut(inside ~= nil)
  end
  if not wanted then
    return stop_watching()
  end
  watch()
  if not shown then
    open(inside)
  else
    shown:make_way()
  end
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
  log.debug('the window of an interview waits: %s', err)
  retrying = true
  vim.defer_fn(function()
    retrying = false
    sync()
  end, RETRY_MS)
end

--- Shows an interview, or none.
---@param interview mcp-tools.Interview?
function M.show(interview)
  wanted = interview
  vim.schedule(sync)
end

--- Takes an interview from the screen, at once if the person is in it: what comes next begins in the text.
---@param interview mcp-tools.Interview
function M.hide(interview)
  if shown and shown.interview == interview and shown:cursor() then
    local ok, err = pcall(way_back.go) -- whoever waits for the answers gets them all the same
    if not ok then
      log.debug('the window of an interview waits: %s', err)
    end
  end
end

--- Enters the window, when there is one.
function M.focus()
  if shown and shown:is_here() then
    if not shown:cursor() then
      way_back.remember()
    end
    go()
  else
    notify.info('nothing is being asked')
  end
end

return M

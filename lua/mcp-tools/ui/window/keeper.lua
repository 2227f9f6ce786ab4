--- Keeps a floating window on the screen while it is wanted, without moving the user's cursor.
---
--- `wanted` is the state to reach; `sync` reaches it, and retries while the editor does not allow it (`:h textlock`, an
--- open command-line window).

local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local windows = require('mcp-tools.editor.user.windows')

local api, uv = vim.api, vim.uv

local M = {}

local RETRY_MS = 100
-- After this many failures in a row the log gets one warning.
local MANY = 10
-- Keys typed within this time after a window was entered automatically were meant for the user's text.
M.GUARD_NS = 500e6

--- Returns whether a window that opens automatically may take the cursor: the user is not typing.
---@return boolean
function M.may_enter()
  return api.nvim_get_mode().mode == 'n' and vim.fn.getcmdwintype() == ''
end

--- Restores the mode that the user was in, without passing through normal mode, where typed keys would be commands.
---@param was { mode: string, cursor: integer[] }?
local function resume(was)
  local typing = api.nvim_get_mode().mode:sub(1, 1) == 'i' -- in a text field of the float
  local is_terminal = vim.bo.buftype == 'terminal'
  if was and was.mode == 't' and is_terminal then
    if typing then
      api.nvim_feedkeys(vim.keycode('<C-\\><C-N>i'), 'ni', false)
    else
      vim.cmd.startinsert()
    end
  elseif was and was.mode == 'i' and not is_terminal then
    pcall(api.nvim_win_set_cursor, 0, was.cursor)
    if not typing then
      vim.cmd(was.cursor[2] >= #api.nvim_get_current_line() and 'startinsert!' or 'startinsert')
    end
  elseif typing then
    vim.cmd.stopinsert()
  end
end

--- What a float shows. Its field `entered` is true once it was decided whether to enter the float automatically.
---@alias mcp-tools.FloatSubject table

---@class mcp-tools.FloatUse how a keeper creates and enters its float
---@field name string for the log and the autocommand group
---@field open fun(subject: mcp-tools.FloatSubject, opened: integer?): mcp-tools.Float `opened`: window to keep visible
---@field may_enter? fun(subject: mcp-tools.FloatSubject): boolean whether the float may be entered automatically
---@field closed? fun(subject: mcp-tools.FloatSubject) called when the user closed the float from inside

---@class mcp-tools.FloatKeeper
---@field use mcp-tools.FloatUse
---@field wanted mcp-tools.FloatSubject?
---@field next mcp-tools.FloatSubject? wanted once the user has left a float that is over
---@field is_answering boolean? a key of the float is being handled
---@field shown mcp-tools.Float?
---@field subject mcp-tools.FloatSubject? what `shown` shows
---@field outside integer? window that the user came from
---@field before { mode: string, cursor: integer[] }? mode and cursor when the user asked for the float
---@field opened integer? window that the user opened last, to keep visible
---@field group integer? autocommand group
---@field stale boolean? the float must be recreated
---@field retrying boolean?
---@field failures integer consecutive ones
---@field ignore_keys_until integer ns
local Keeper = {}
Keeper.__index = Keeper

--- Creates a keeper that shows nothing.
---@param use mcp-tools.FloatUse
---@return mcp-tools.FloatKeeper
function M.new(use)
  return setmetatable({ use = use, ignore_keys_until = 0, failures = 0 }, Keeper)
end

---@param inside integer? index of the window to enter
function Keeper:open(inside)
  local wanted = self.wanted --[[@as mcp-tools.FloatSubject]]
  self.shown, self.subject, self.stale = self.use.open(wanted, self.opened), wanted, false
  if inside then
    self.shown:enter(inside)
  elseif not wanted.entered then
    wanted.entered = true
    local may_enter = self.use.may_enter and self.use.may_enter(wanted)
    if may_enter and M.may_enter() then
      self.ignore_keys_until = uv.hrtime() + M.GUARD_NS
      self.shown:enter(1)
    end
  end
end

---@param again boolean the float is recreated, so the focus need not return
function Keeper:shut(again)
  local old = self.shown --[[@as mcp-tools.Float]]
  local inside = old:cursor()
  self.shown = nil
  local ok, err = pcall(function()
    old:save()
    if inside and not again then
      self:leave()
    end
    old:close()
  end)
  if not ok then
    self.shown = old
    error(err, 0)
  end
end

--- Handles the close of one of the float's windows by the user. If the cursor was in the float, this is an answer;
--- otherwise (`:only`, `:tabclose`) the float opens again.
---@param window integer
function Keeper:on_closed(window)
  local old, subject = self.shown, self.subject
  if not old or not vim.list_contains(old.windows, window) then
    return
  end
  local inside, is_over = old:cursor(), self:is_over()
  old:save()
  self.shown = nil
  if is_over then
    self.wanted, self.next = self.next, nil
  end
  vim.schedule(function()
    pcall(old.close, old)
    if inside and not is_over and self.use.closed and api.nvim_tabpage_is_valid(old.tab) then
      self.use.closed(subject)
    end
  end)
  vim.defer_fn(function()
    self:sync()
  end, RETRY_MS)
end

function Keeper:watch()
  if self.group then
    return
  end
  self.group = api.nvim_create_augroup(('mcp-tools-%s-window'):format(self.use.name), {})
  local function on(event, callback)
    api.nvim_create_autocmd(event, { group = self.group, callback = callback })
  end
  local function is_outside()
    return self.shown and not self.shown:cursor()
  end
  on('WinClosed', function(event)
    self:on_closed(tonumber(event.match) --[[@as integer]])
  end)
  on('VimResized', function()
    self.stale = true
  end)
  on('BufWinEnter', function()
    if not self.shown or is_outside() then
      self.opened = api.nvim_get_current_win()
    end
  end)
  on('WinLeave', function()
    if is_outside() then
      self.outside = api.nvim_get_current_win()
    end
  end)
  on('WinEnter', function()
    if is_outside() then
      self.before = nil -- the mode was left
    end
  end)
  on({ 'BufWinEnter', 'WinEnter', 'WinResized', 'TabEnter', 'VimResized', 'WinScrolled', 'ModeChanged' }, function()
    self:sync_later()
  end)
end

function Keeper:stop_watching()
  if self.group then
    api.nvim_del_augroup_by_id(self.group)
    self.group, self.opened = nil, nil
  end
end

--- Returns whether the shown subject has ended while the user was in its float.
---@return boolean
function Keeper:is_over()
  return self.shown ~= nil and self.shown.is_over == true
end

function Keeper:reconcile()
  local inside
  if self:is_over() and not self.shown:cursor() then
    self.wanted, self.next = self.next, nil
  end
  if self.shown and (self.stale or self.subject ~= self.wanted or not self.shown:is_here()) then
    inside = self.subject == self.wanted and self.shown:cursor() or nil
    self:shut(inside ~= nil)
  end
  if not self.wanted then
    return self:stop_watching()
  end
  self:watch()
  if not self.shown then
    self:open(inside)
  elseif not self.shown:cursor() then
    self.shown:move(self.opened)
  end
  self.shown:set_frames()
  -- While the editor waits in the command line it does not redraw.
  if api.nvim_get_mode().mode:sub(1, 1) == 'c' then
    vim.cmd.redraw()
  end
end

--- Shows, recreates or closes the float, now or as soon as the editor allows it.
function Keeper:sync()
  local ok, err = pcall(self.reconcile, self)
  if ok then
    self.failures = 0
    return
  elseif self.retrying then
    return
  end
  self.failures, self.retrying = self.failures + 1, true
  local level = self.failures == MANY and 'warn' or 'debug'
  log[level]('the %s window could not be updated, retrying: %s', self.use.name, err)
  vim.defer_fn(function()
    self.retrying = false
    self:sync()
  end, RETRY_MS)
end

--- Recreates the float, because its content has changed.
function Keeper:renew()
  self.stale = true
  self:sync_later()
end

--- Runs `sync` later, out of the current event.
function Keeper:sync_later()
  vim.schedule(function()
    self:sync()
  end)
end

--- Shows something instead of the current subject, or nothing.
---@param subject mcp-tools.FloatSubject?
function Keeper:show(subject)
  if self:is_over() then
    self.next = subject
  else
    self.wanted = subject
  end
  self:sync_later()
end

--- Hides a subject. After the user's answer the focus returns at once, so that the next subject does not get keys meant
--- for this one. If it ends otherwise while the user is in its float, the float stays until the user leaves it: keys
--- must not reach the user's text.
---@param subject mcp-tools.FloatSubject
---@param is_answered? boolean by the user
function Keeper:hide(subject, is_answered)
  if self.next == subject then
    self.next = nil
  end
  is_answered = is_answered or self.is_answering
  if self.shown and self.subject == subject and self.shown:cursor() and not is_answered then
    self.shown.is_over = true
    return self:sync_later()
  end
  if self.wanted == subject then
    self.wanted = nil
  end
  self:sync_later() -- a next subject may be known by then
  if self.shown and self.subject == subject and self.shown:cursor() then
    local ok, err = pcall(self.leave, self) -- `sync` shows the next subject in any case
    if not ok then
      log.debug('the focus could not leave the %s window: %s', self.use.name, err)
    end
  end
end

--- Leaves a float whose subject has ended, so that the next one is shown.
---@return boolean left
function Keeper:leave_over()
  local is_over = self:is_over()
  if is_over then
    self:leave()
  end
  return is_over
end

--- Returns the float if it is on the screen.
---@param subject mcp-tools.FloatSubject? only if it shows this
---@return mcp-tools.Float?
function Keeper:on_screen(subject)
  local shown = not self:is_over() and self.shown or nil
  return shown and (not subject or self.subject == subject) and shown:is_here() and shown or nil
end

--- Saves the text typed into the float of a subject.
---@param subject mcp-tools.FloatSubject
function Keeper:save(subject)
  if self.shown and self.subject == subject then
    self.shown:save()
  end
end

--- Enters the float if there is one, else notifies the user.
function Keeper:focus()
  local shown = self:on_screen()
  if not shown then
    return notify.info('no open question')
  end
  if not shown:cursor() then
    self.outside = api.nvim_get_current_win()
    self.before = { mode = api.nvim_get_mode().mode:sub(1, 1), cursor = api.nvim_win_get_cursor(0) }
  end
  shown:enter()
end

--- Wraps the function of a key. The key is ignored while it may have been meant for the user's text.
---@param fn fun(shown: any, ...) gets the float
---@param ... any
---@return fun()
function Keeper:key(fn, ...)
  local values = { ... }
  return function()
    if self:is_over() then
      return self:leave()
    elseif self.shown and uv.hrtime() >= self.ignore_keys_until then
      self.shown:save()
      self.is_answering = true
      local ok, thrown = pcall(fn, self.shown, unpack(values))
      self.is_answering = false
      assert(ok, thrown)
    end
  end
end

--- Returns the focus to where the user came from; the float stays open.
function Keeper:leave()
  local was = self.before
  self.before = nil
  if self.outside and api.nvim_win_is_valid(self.outside) then
    windows.enter(self.outside)
  else
    was = nil
    windows.enter(windows.previous() --[[@as integer]])
  end
  resume(was)
end

return M

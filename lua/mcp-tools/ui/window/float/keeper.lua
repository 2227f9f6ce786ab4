--- Keeps a floating window on the screen for as long as it is wanted, and the person where they are.
---
--- Who has something to show makes a kind of window (window.lua), with its frame (style.lua), and gives it here as
--- `open`; ui/approval/float.lua is an example.
---
--- What should be on screen is said once (`wanted`); `sync` makes it so, again and again while the editor does not
--- allow it (text is locked, the command-line window is open).

local focus_return = require('mcp-tools.ui.window.float.focus_return')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')

local api, uv = vim.api, vim.uv

local M = {}

local RETRY_MS = 100
-- So often in a row is no passing hindrance: the log says so, once.
local MANY = 10
-- Keys pressed before the window was entered by itself were meant for the text.
local GUARD_NS = 500e6

--- What a window can be wanted for.
---@class mcp-tools.FloatSubject
---@field entered boolean? the cursor was led to it once, or was not to be

---@class mcp-tools.FloatUse
---@field name string of what is shown, for the log and its autocommands
---@field open fun(subject: mcp-tools.FloatSubject, opened: integer?): mcp-tools.Float makes its window; `opened` is one
---that is not to be hidden
---@field may_enter fun(): boolean does the person want the cursor to be led there?
---@field closed fun(subject: mcp-tools.FloatSubject) the person closed its window from inside

---@class mcp-tools.FloatKeeper
---@field use mcp-tools.FloatUse
---@field wanted mcp-tools.FloatSubject?
---@field shown mcp-tools.Float?
---@field subject mcp-tools.FloatSubject? what it shows
---@field back mcp-tools.FocusReturn
---@field opened integer? window in which something was opened meanwhile
---@field group integer? its autocommands
---@field stale boolean? the screen has another size, or it shows what is not so any more
---@field retrying boolean?
---@field failures integer in a row
---@field deaf_until integer ns
local Keeper = {}
Keeper.__index = Keeper

--- Makes one, which shows nothing yet.
---@param use mcp-tools.FloatUse
---@return mcp-tools.FloatKeeper
function M.new(use)
  return setmetatable({ use = use, back = focus_return.new(), deaf_until = 0, failures = 0 }, Keeper)
end

--- Enters the window for who wants that, but not out of what they are doing.
function Keeper:enter_by_itself()
  if not self.use.may_enter() or api.nvim_get_mode().mode ~= 'n' or vim.fn.getcmdwintype() ~= '' then
    return
  end
  self.deaf_until = uv.hrtime() + GUARD_NS
  self.shown:enter(1)
end

---@param inside integer? which window the cursor was in, of those that these replace
function Keeper:open(inside)
  local wanted = self.wanted --[[@as mcp-tools.FloatSubject]]
  self.shown, self.subject, self.stale = self.use.open(wanted, self.opened), wanted, false
  if inside then
    self.shown:enter(inside)
  elseif not wanted.entered then
    wanted.entered = true
    self:enter_by_itself()
  end
end

---@param again boolean it is made anew, for who is in it
function Keeper:shut(again)
  local old = self.shown --[[@as mcp-tools.Float]]
  local inside = old:cursor()
  self.shown = nil
  local ok, err = pcall(function()
    old:save()
    if inside and not again then
      self.back:go()
    end
    old:close()
  end)
  if not ok then
    self.shown = old
    error(err, 0)
  end
end

--- One of its windows is gone and it was not us. To close it from inside is an answer; what closes windows from outside
--- (`:only`, the end of its tab page) says nothing, and it comes again.
---@param window integer
function Keeper:on_closed(window)
  local old, subject = self.shown, self.subject
  if not old or not vim.list_contains(old.windows, window) then
    return
  end
  local inside = old:cursor()
  old:save()
  self.shown = nil
  vim.schedule(function()
    pcall(old.close, old)
    if inside and api.nvim_tabpage_is_valid(old.tab) then
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
      self.back:left()
    end
  end)
  on('WinEnter', function()
    if is_outside() then
      self.back:returned()
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

function Keeper:reconcile()
  local inside
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
  else
    self.shown:make_way(self.opened)
  end
  self.shown:set_frames()
  -- The editor may be waiting for a key, in the command line for one, and would not draw by itself.
  if api.nvim_get_mode().mode:sub(1, 1) == 'c' then
    vim.cmd.redraw()
  end
end

--- Makes the screen as it should be, now or as soon as the editor allows it.
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
  log[level]('the window of %s cannot be shown now, and is tried again: %s', self.use.name, err)
  vim.defer_fn(function()
    self.retrying = false
    self:sync()
  end, RETRY_MS)
end

--- Makes the window anew: what it shows is not so any more.
function Keeper:renew()
  self.stale = true
  self:sync_later()
end

--- The same, when what goes on now is over.
function Keeper:sync_later()
  vim.schedule(function()
    self:sync()
  end)
end

--- Shows something, instead of what it showed before; or nothing.
---@param subject mcp-tools.FloatSubject?
function Keeper:show(subject)
  self.wanted = subject
  self:sync_later()
end

--- Takes something from the screen. The person leaves it at once: what comes next begins in the text.
---@param subject mcp-tools.FloatSubject
function Keeper:hide(subject)
  if self.wanted == subject then
    self.wanted = nil
  end
  self:sync_later() -- the next thing may be there by then
  if self.shown and self.subject == subject and self.shown:cursor() then
    local ok, err = pcall(self.back.go, self.back) -- what comes next comes all the same
    if not ok then
      log.debug('the window of %s waits: %s', self.use.name, err)
    end
  end
end

--- The window, when it is on the screen.
---@param subject mcp-tools.FloatSubject? and shows this
---@return mcp-tools.Float?
function Keeper:on_screen(subject)
  local shown = self.shown
  return shown and (not subject or self.subject == subject) and shown:is_here() and shown or nil
end

--- Leads the cursor to the window, when there is one.
function Keeper:focus()
  local shown = self:on_screen()
  if not shown then
    return notify.info('there is no open question')
  end
  if not shown:cursor() then
    self.back:remember()
  end
  shown:enter()
end

--- What a key of its window does; nothing as long as it may have been meant for the text.
---@param fn fun(shown: any, ...) gets the window
---@param ... any
---@return fun()
function Keeper:key(fn, ...)
  local values = { ... }
  return function()
    if self.shown and uv.hrtime() >= self.deaf_until then
      self.shown:save()
      fn(self.shown, unpack(values))
    end
  end
end

--- Goes back to where the person was; what is shown stays.
function Keeper:leave()
  self.back:go()
end

return M

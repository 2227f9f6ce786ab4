--- A window of ours: its frame and title, rows that are drawn again without flicker, keys, and help on `?`.
---
--- Receives: a title, keys, a function that gives the rows for a width.
--- Sends: one window and one buffer; both are gone, with all that belongs to them, when either is closed.
--- Does not know about: what it shows.
---
--- Keys are the same in all windows: `q` closes, `?` shows the keys, `r` draws anew, `<CR>` shows details, `<Tab>` and
--- `<S-Tab>` go to the next section and the one before it.

local Rows = require('mcp-tools.ui.layout.rows')
local guard = require('mcp-tools.log').guard
local help = require('mcp-tools.ui.layout.help')
local highlights = require('mcp-tools.ui.layout.highlights')
local paint = require('mcp-tools.ui.layout.paint')
local plain_window = require('mcp-tools.ui.layout.plain_window')
local style = require('mcp-tools.ui.layout.style')
local winbar = require('mcp-tools.ui.layout.winbar')

local api = vim.api

local M = {}

--- Cells of text in a float, at most: longer lines are hard to read.
local MAX_WIDTH = 110
--- Share of the screen's rows of a split.
local SPLIT = 0.5

---@class mcp-tools.LayoutKey
---@field lhs string
---@field description string
---@field run fun(item: mcp-tools.RowItem?) gets what the row of the cursor stands for
---@field footer? string word for the lower edge, where there is room

---@class mcp-tools.LayoutOpts
---@field name string of the buffer, behind `mcp-tools://`
---@field title string
---@field style 'float'|'split'
---@field keys mcp-tools.LayoutKey[]
---@field render fun(rows: mcp-tools.Rows) adds the rows that there are now
---@field on_close? fun() once, when it is gone

---@class mcp-tools.Layout
---@field buffer integer
---@field window integer
---@field private opts mcp-tools.LayoutOpts
---@field private is_float boolean
---@field private keys mcp-tools.LayoutKey[]
---@field private rows mcp-tools.Row[] what is shown
---@field private group integer of autocommands
---@field private helping boolean the keys are shown in place of the rows
---@field private closed boolean
local Layout = {}
Layout.__index = Layout

---@return vim.api.keyset.win_config
local function float_place()
  local lines = vim.o.lines - vim.o.cmdheight
  local width = math.max(20, math.min(vim.o.columns - 4, MAX_WIDTH))
  local height = math.max(3, lines - (lines > 30 and 6 or 3))
  return {
    relative = 'editor',
    width = width,
    height = height,
    row = math.max(0, math.floor((lines - height - 2) / 2)),
    col = math.max(0, math.floor((vim.o.columns - width - 2) / 2)),
  }
end

--- The keys for the lower edge, as many as there is room for.
---@return table[] chunks
function Layout:footer()
  local list, room = {}, api.nvim_win_is_valid(self.window or -1) and api.nvim_win_get_width(self.window) or 76
  for _, key in ipairs(self.helping and {} or self.keys) do
    table.insert(list, key.footer and { key.lhs, key.footer } or nil)
  end
  if self.helping then
    list = { { 'q', 'back' } }
  end
  return style.keys(list, room, 'Dim')
end

---@private
function Layout:set_footer()
  if self.is_float then
    api.nvim_win_set_config(self.window, { footer = self:footer(), footer_pos = 'right' })
  end
end

---@private
function Layout:open_window()
  local height = math.max(5, math.floor(vim.o.lines * SPLIT))
  local split = { split = 'below', win = -1, height = height }
  if self.opts.style == 'split' then
    pcall(api.nvim_open_win, self.buffer, true, split) -- there may be no room for one more
  end
  local window = vim.fn.bufwinid(self.buffer)
  self.is_float = window == -1
  if self.is_float then
    local title = (' %s '):format(self.opts.title)
    local config = vim.tbl_extend('error', float_place(), {
      style = 'minimal',
      border = 'rounded',
      title = { style.chunk(title, 'Title') },
      footer = self:footer(),
      footer_pos = 'right',
    })
    self.window = api.nvim_open_win(self.buffer, true, config)
    vim.wo[self.window][0].winhighlight = highlights.winhighlight()
  else
    self.window = window
    vim.wo[self.window][0].winbar = winbar.text(self.opts.title)
  end
  plain_window(self.window)
  vim.wo[self.window][0].wrap, vim.wo[self.window][0].cursorline = false, true
end

--- Cells that a row may have.
---@return integer
function Layout:width()
  return api.nvim_win_get_width(self.window)
end

--- Is it where the person can see it?
---@return boolean
function Layout:is_seen()
  return not self.closed
    and api.nvim_win_is_valid(self.window)
    and api.nvim_win_get_tabpage(self.window) == api.nvim_get_current_tabpage()
end

--- What the row of the cursor stands for.
---@return mcp-tools.RowItem?
function Layout:item()
  local row = self.rows[api.nvim_win_get_cursor(self.window)[1]]
  return row and row.item
end

---@param rows mcp-tools.Rows
function Layout:help_rows(rows)
  rows:add({})
  help.add(rows, self.keys)
  rows:add({})
  rows:add({ { '  ?, q or <Esc> goes back', 'Dim' } })
end

--- Puts the cursor back onto what it was on, in the same row of the window.
---@param item mcp-tools.RowItem?
---@param view table of `winsaveview`
function Layout:follow(item, view)
  local lnum = math.min(view.lnum, math.max(1, #self.rows))
  for i, row in ipairs(item and self.rows or {}) do
    if row.item and row.item.id == item.id then
      lnum = i
      break
    end
  end
  api.nvim_win_call(self.window, function()
    vim.fn.winrestview({ lnum = lnum, col = view.col, topline = math.max(1, view.topline + lnum - view.lnum) })
  end)
end

--- Draws what is there now; lines that did not change are not touched.
---@return integer changed lines
function Layout:refresh()
  if self.closed or not api.nvim_win_is_valid(self.window) then
    return 0
  end
  local rows = Rows.new(self:width())
  if self.helping then
    self:help_rows(rows)
  else
    self.opts.render(rows)
  end
  local item, view = self:item(), api.nvim_win_call(self.window, vim.fn.winsaveview)
  local changed = paint.update(self.buffer, self.rows, rows.list)
  self.rows = rows.list
  if changed > 0 then
    self:follow(item, view)
  end
  return changed
end

--- Goes to the next row that heads a section, or the one before.
---@param step 1|-1
function Layout:next_section(step)
  local lnum = api.nvim_win_get_cursor(self.window)[1] + step
  while self.rows[lnum] do
    local item = self.rows[lnum].item
    if item and item.kind == 'section' then
      return api.nvim_win_set_cursor(self.window, { lnum, 0 })
    end
    lnum = lnum + step
  end
end

--- Closes it; once is enough.
function Layout:close()
  if self.closed then
    return
  end
  self.closed = true
  pcall(api.nvim_del_augroup_by_id, self.group)
  if self.opts.on_close then
    guard('the end of a window', self.opts.on_close)
  end
  -- Who opens a text of theirs in the split keeps it there.
  local is_ours = api.nvim_win_is_valid(self.window)
    and (self.is_float or api.nvim_win_get_buf(self.window) == self.buffer)
  if is_ours and not pcall(api.nvim_win_close, self.window, true) then
    vim.cmd.enew() -- it was the last window
  end
  if api.nvim_buf_is_valid(self.buffer) then
    api.nvim_buf_delete(self.buffer, { force = true })
  end
end

---@private
function Layout:turn_help()
  self.helping = not self.helping
  self:refresh()
  self:set_footer()
  api.nvim_win_set_cursor(self.window, { 1, 0 })
end

---@private
function Layout:own_keys()
  local function turn_help()
    self:turn_help()
  end
  local function leave()
    if self.helping then
      return self:turn_help()
    end
    self:close()
  end
  local function step(by)
    return function()
      self:next_section(by)
    end
  end
  local function draw()
    self:refresh()
  end
  return {
    { lhs = 'q', description = 'close', footer = 'close', run = leave },
    { lhs = '?', description = 'show the keys', footer = 'keys', run = turn_help },
    { lhs = 'r', description = 'draw anew', run = draw },
    { lhs = '<Tab>', description = 'next section', run = step(1) },
    { lhs = '<S-Tab>', description = 'section before', run = step(-1) },
  }
end

---@private
function Layout:map_keys()
  self.keys = self:own_keys()
  local own = #self.keys
  vim.list_extend(self.keys, self.opts.keys)
  for i, key in ipairs(self.keys) do
    vim.keymap.set('n', key.lhs, function()
      if i <= own or not self.helping then
        key.run(self:item())
      end
    end, { buffer = self.buffer, nowait = true, desc = key.description })
  end
  vim.keymap.set('n', '<Esc>', function()
    if self.helping then
      self:turn_help()
    end
  end, { buffer = self.buffer, nowait = true, desc = 'leave the keys' })
end

---@private
function Layout:follow_editor()
  self.group = api.nvim_create_augroup('mcp-tools-layout-' .. self.buffer, { clear = true })
  local function on(events, fn, pattern)
    api.nvim_create_autocmd(events, { group = self.group, pattern = pattern, callback = fn })
  end
  on('WinClosed', function()
    vim.schedule(function() -- a window cannot be closed within the end of another
      self:close()
    end)
  end, tostring(self.window))
  api.nvim_create_autocmd('BufWipeout', {
    group = self.group,
    buffer = self.buffer,
    callback = vim.schedule_wrap(function()
      self:close()
    end),
  })
  on({ 'VimResized', 'TabEnter' }, function()
    if self:is_seen() and self.is_float then
      api.nvim_win_set_config(self.window, float_place())
      self:set_footer()
    end
    self:refresh()
  end)
end

--- Opens a window.
---@param opts mcp-tools.LayoutOpts
---@return mcp-tools.Layout
function M.open(opts)
  highlights.define()
  local self = setmetatable({ opts = opts, rows = {}, helping = false, closed = false }, Layout)
  self.buffer = api.nvim_create_buf(false, true)
  api.nvim_buf_set_name(self.buffer, 'mcp-tools://' .. opts.name)
  vim.bo[self.buffer].bufhidden, vim.bo[self.buffer].filetype = 'wipe', 'mcp-tools'
  vim.bo[self.buffer].modifiable = false
  self:map_keys()
  self:open_window()
  self:follow_editor()
  self:refresh()
  return self
end

return M

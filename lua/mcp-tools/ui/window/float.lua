--- Floating windows that open without a command of the user: one window, or several that open and close together.
---
--- A subclass defines `frames`; one with several windows also `layout`, `first` and `save`.

local help = require('mcp-tools.ui.window.help')
local render = require('mcp-tools.ui.window.render')
local sanitize = require('mcp-tools.util.sanitize')
local visible = require('mcp-tools.ui.window.visible')
local windows = require('mcp-tools.editor.user.windows')

local api = vim.api

local M = {}

local MIN_WIDTH = 20

--- Maximum height as a share of the screen. A text of at most `MAX_COMPLETE` rows is shown completely even in a higher
--- window, if that leaves `LEFT_FREE` rows free and does not cover the cursor.
local SHARE, MAX_COMPLETE, LEFT_FREE = 0.6, 16, 5
--- Rows of a window's border.
local FRAME = 2
M.FRAME = FRAME
--- Minimum height when the window shrinks to avoid another window.
local MIN_HEIGHT = 8
--- Covering the cursor line is worse than covering any window.
local CURSOR_COST = 1000

---@param window integer?
---@return integer? top 0-based row
---@return integer? below first row after the window
local function rows_of(window)
  if not window or not api.nvim_win_is_valid(window) or api.nvim_win_get_config(window).relative ~= '' then
    return nil
  elseif api.nvim_win_get_tabpage(window) ~= api.nvim_get_current_tabpage() then
    return nil
  end
  local info = vim.fn.getwininfo(window)[1]
  return info.winrow - 1, info.winrow - 1 + info.winbar + info.height
end

--- Returns the row of the cursor on the screen.
---@return integer 0-based
local function cursor_row()
  return api.nvim_win_get_position(0)[1] + vim.fn.winline() - 1
end

--- Finds a position that covers as little as possible. Among equal ones, the current position and the full height are
--- preferred. If the height changes, the lower edge stays in place, or at the top of the screen the upper edge.
---@param rows integer rows of the text
---@param opened integer? window to keep visible
---@param now { row: integer, height: integer }? current position
---@param cursor integer? row to keep visible; default: that of the cursor
---@return { row: integer, height: integer }
function M.place(rows, opened, now, cursor)
  local screen = vim.o.lines - vim.o.cmdheight
  local wanted = math.max(1, math.min(rows, math.floor(screen * SHARE)))
  local complete = rows <= math.min(MAX_COMPLETE, screen - LEFT_FREE - FRAME) and math.max(1, rows) or wanted
  cursor = cursor or cursor_row()
  local top, below = rows_of(opened)
  local best = { row = 0, height = wanted, cost = math.huge }
  local function try(row, height)
    local box = height + FRAME
    local covers_cursor = cursor >= row and cursor < row + box
    local covered = top and math.max(0, math.min(row + box, below) - math.max(row, top)) or 0
    local cost = (covers_cursor and CURSOR_COST or 0) + covered
    if row >= 0 and row <= math.max(0, screen - 1 - box) and cost < best.cost then
      best = { row = row, height = height, cost = cost }
    end
  end

  local low = cursor + 1 > screen / 2
  for _, height in ipairs({ complete, wanted }) do
    local lowest = math.max(0, screen - 1 - height - FRAME)
    try(not now and -1 or now.row == 0 and 0 or now.row + now.height - height, height)
    try(low and 0 or lowest, height) -- the half of the screen without the cursor
    try(low and lowest or 0, height)
  end
  -- Above or below the window to keep visible, with a lower height.
  for row, gap in pairs(top and { [0] = top - 1, [below] = screen - 1 - below } or {}) do
    local height = math.min(wanted, gap - FRAME)
    if height >= math.min(wanted, MIN_HEIGHT) then
      try(row > 0 and row or gap - FRAME - height, height)
    end
  end
  return { row = best.row, height = best.height }
end

--- Keys that lead from a mode to normal mode.
local TO_NORMAL = { i = '<Esc>', R = '<Esc>', v = '<Esc>', V = '<Esc>', ['\22'] = '<Esc>', s = '<Esc>' }
TO_NORMAL.t = [[<C-\><C-N>]]

--- Returns the keys to type before a command in the current mode, and the mode for `nvim_get_keymap`.
---@return string lead
---@return string map_mode
function M.command_keys()
  local mode = api.nvim_get_mode().mode:sub(1, 1)
  local lead = TO_NORMAL[mode] or ''
  return lead, mode == 'R' and 'i' or mode:match('[it]') or (lead ~= '' and 'v' or 'n')
end

--- Returns the key that the user has mapped to `<Plug>(mcp-tools-NAME)`.
---@param map_mode string
---@param name string
---@return string?
function M.mapped_key(map_mode, name)
  local plug = ('<Plug>(mcp-tools-%s)'):format(name)
  if map_mode ~= 't' and vim.fn.hasmapto(plug, map_mode) == 0 then -- `hasmapto()` ignores mappings of terminal mode
    return nil -- avoids the list of all mappings, which can be long
  end
  plug = plug:lower()
  for _, maps in ipairs({ api.nvim_buf_get_keymap(0, map_mode), api.nvim_get_keymap(map_mode) }) do
    for _, map in ipairs(maps) do
      if map.rhs and map.rhs:lower() == plug then
        return vim.fn.keytrans(map.lhsraw or map.lhs)
      end
    end
  end
end

--- Returns whether one `CTRL-W w` enters the window.
---@param window integer
---@return boolean
function M.is_next(window)
  local here = api.nvim_get_current_win()
  local list = vim.tbl_filter(function(each)
    return each == here or api.nvim_win_get_config(each).focusable
  end, api.nvim_tabpage_list_wins(0))
  for i, each in ipairs(list) do
    if each == here then
      return list[i % #list + 1] == window
    end
  end
  return false
end

--- Keys of a buffer: key → modes, function, description.
---@alias mcp-tools.FloatKeys table<string, { [1]: string|string[], [2]: fun(), [3]: string }>

---@class mcp-tools.FloatKind
---@field zindex integer
---@field max_width integer
---@field field? integer index of the window that is a text field, which is entered in insert mode

---@class mcp-tools.Float: mcp-tools.FloatKind
---@field windows integer[]
---@field buffers integer[]
---@field tab integer
---@field placed? { row: integer, height: integer }[] position of each window
---@field cursor_row? integer row of the cursor outside of the windows
---@field is_over? boolean what it shows has ended while the user was in it
---@field over_note? string follows the title that says so
---@field drawn_frames? string the frames on the screen
---@field rows integer number of rows of the text
---@field frames fun(self): table[] `title` and `footer` of each window, for `nvim_win_set_config`
local Float = {}
Float.__index = Float

--- Returns a subclass of Float.
---@param kind mcp-tools.FloatKind
---@return table
function M.kind(kind)
  local Kind = setmetatable(kind --[[@as table]], Float)
  Kind.__index = Kind
  return Kind
end

--- Returns the width in cells.
---@return integer
function Float:width()
  return math.max(MIN_WIDTH, math.min(self.max_width, vim.o.columns - FRAME))
end

--- Creates a buffer for one of the windows.
---@param name string buffer variable that identifies the buffer
---@param value any value of the variable
---@param keys mcp-tools.FloatKeys
---@param order? string[] of keys in the help
---@return integer buffer
function M.buffer(name, value, keys, order)
  local buffer = api.nvim_create_buf(false, true)
  vim.b[buffer][name] = value
  for key, action in pairs(keys) do
    local function run() -- the key help covers the window: close it first
      if not help.close() then
        action[2]()
      end
    end
    vim.keymap.set(action[1], key, run, { buffer = buffer, nowait = true, desc = action[3] })
  end
  if next(keys) then
    help.attach(buffer, order)
  end
  return buffer
end

--- Opens all windows, or none if one fails.
---@param options table<string, any>[] window options of each window
---@param opened integer? window to keep visible
function Float:open(options, opened)
  render.define()
  self.windows, self.tab = {}, api.nvim_get_current_tabpage()
  local ok, err = pcall(function()
    self.placed = self:layout(opened)
    for i, buffer in ipairs(self.buffers) do
      self.windows[i] = self:open_window(buffer, self.placed[i], options[i])
    end
  end)
  if not ok then
    self:close()
    error(err, 0)
  end
end

--- Opens one window with a text that may be untrusted.
---@param page mcp-tools.Rows
---@param buffer integer
---@param opened integer? window to keep visible
---@return mcp-tools.Float self
function Float:open_page(page, buffer, opened)
  self.rows, self.buffers = #page.list, { buffer }
  render.update(buffer, page.list)
  self:open({ { wrap = false, scrolloff = 0 } }, opened)
  self:show_hidden(self.windows[1])
  return self
end

--- Returns the position of each window.
---@param opened integer? window to keep visible
---@param now { row: integer, height: integer }? current position of all of them
---@return { row: integer, height: integer }[]
function Float:layout(opened, now)
  return { self:place(self.rows, opened, now) }
end

--- Finds a position that does not cover the user's cursor, nor the line that the user came from.
---@param rows integer rows of the text
---@param opened integer? window to keep visible
---@param now { row: integer, height: integer }? current position
---@return { row: integer, height: integer }
function Float:place(rows, opened, now)
  if not self:cursor() then
    self.cursor_row = cursor_row()
  end
  return M.place(rows, opened, now, self.cursor_row)
end

---@param at { row: integer, height: integer }
---@return table
function Float:config(at)
  local base = { relative = 'editor', anchor = 'NE', col = vim.o.columns, width = self:width() }
  return vim.tbl_extend('error', base, at)
end

---@param buffer integer
---@param at { row: integer, height: integer }
---@param options table<string, any>
---@return integer window
function Float:open_window(buffer, at, options)
  local fixed = { style = 'minimal', border = 'rounded', focusable = true, noautocmd = true, zindex = self.zindex }
  local window = api.nvim_open_win(buffer, false, vim.tbl_extend('error', self:config(at), fixed))
  local own = { winfixbuf = true, winhighlight = render.winhighlight() }
  render.set_options(window, vim.tbl_extend('error', own, options))
  return window
end

--- Highlights the codes of invisible characters, in a window that shows untrusted text.
---@param window integer
function Float:show_hidden(window)
  ---@diagnostic disable-next-line: param-type-mismatch -- Neovim's annotation has a string
  vim.fn.matchadd(render.group('Hidden'), sanitize.PATTERN, 10, -1, { window = window })
end

--- Returns whether all windows still exist, on the current tab page.
---@return boolean
function Float:is_here()
  return vim.iter(self.windows):all(api.nvim_win_is_valid) and self.tab == api.nvim_get_current_tabpage()
end

--- Returns the index of the window that has the cursor.
---@return integer?
function Float:cursor()
  local current = api.nvim_get_current_win()
  for i, window in ipairs(self.windows) do
    if window == current then
      return i
    end
  end
end

--- Returns the index of the window to enter first.
---@return integer
function Float:first()
  return 1
end

--- Enters one of the windows.
---@param index integer? default: `first()`
function Float:enter(index)
  index = index or self:first()
  windows.enter(self.windows[index])
  vim.cmd(index == self.field and 'startinsert!' or 'stopinsert')
end

--- Moves the windows so that they cover as little as possible.
---@param opened integer? window to keep visible
function Float:move(opened)
  local first, last = self.placed[1], self.placed[#self.placed]
  local layout = self:layout(opened, { row = first.row, height = last.row + last.height - first.row })
  if not vim.deep_equal(layout, self.placed) then
    for i, window in ipairs(self.windows) do
      api.nvim_win_set_config(window, self:config(layout[i]))
    end
    self.placed = layout
  end
end

--- Returns the last row of the text that was read, including what the first window shows now.
---@param read integer last row that was read before
---@return integer
function Float:read(read)
  return visible.read(visible.of(self.windows[1]), read)
end

--- Returns whether other windows cover all of the first window.
---@return boolean
function Float:is_covered()
  return visible.of(self.windows[1]).last == 0
end

--- Scrolls the first window to a row.
---@param row integer
function Float:scroll(row)
  visible.show(self.windows[1], row)
end

--- Returns the number of rows of the text that are below the visible part of the first window.
---@return integer
function Float:below()
  return math.max(0, self.rows - vim.fn.line('w$', self.windows[1]))
end

--- Updates titles and footers.
function Float:set_frames()
  if self.drawn_frames and api.nvim_get_mode().mode:sub(1, 1) == 'c' then
    return -- the keys in the frame are those of the mode before the command line
  end
  local frames = self:frames()
  if self.is_over then
    local is_typing = api.nvim_get_mode().mode:sub(1, 1) == 'i'
    for _, frame in ipairs(frames) do
      frame.footer = frame.footer and (' %sq closes '):format(is_typing and '<Esc> ' or '')
    end
    frames[1].title = (' The caller no longer waits%s '):format(self.over_note or '')
  end
  local drawn = vim.inspect(frames)
  if self.drawn_frames ~= drawn then
    for i, frame in ipairs(frames) do
      api.nvim_win_set_config(self.windows[i], frame)
    end
    self.drawn_frames = drawn
  end
end

--- Saves the text typed into the windows. Called before they close.
function Float:save() end

--- Closes the windows and deletes their buffers.
function Float:close()
  for _, window in ipairs(self.windows) do
    if api.nvim_win_is_valid(window) then
      api.nvim_win_close(window, true)
    end
  end
  for _, buffer in ipairs(self.buffers) do
    if api.nvim_buf_is_valid(buffer) then
      api.nvim_buf_delete(buffer, { force = true })
    end
  end
end

return M

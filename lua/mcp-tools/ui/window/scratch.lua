--- Windows for lists, reports and the dashboard: one shared window at the bottom, or a float.
---
--- Used instead of messages of several lines: their hit-enter prompt blocks the main thread.

local Rows = require('mcp-tools.ui.window.rows')
local guard = require('mcp-tools.log').guard
local notify = require('mcp-tools.notify')
local help = require('mcp-tools.ui.window.help')
local render = require('mcp-tools.ui.window.render')
local timer = require('mcp-tools.util.timer')
local visible = require('mcp-tools.ui.window.visible')
local windows = require('mcp-tools.editor.user.windows')

local api = vim.api

local M = {}

--- Maximum height of the window at the bottom on a small screen, unless it is `tall`; otherwise half of the screen.
local MAX_HEIGHT = 15
--- Maximum width of a float: longer lines are hard to read.
local MAX_WIDTH = 110
local PREFIX, GROUP = 'mcp-tools://', 'mcp-tools.window.'

---@class mcp-tools.ScratchOpts
---@field filetype? string
---@field at_end? boolean keep the cursor on the last line
---@field at? fun(): integer? row for the cursor, each time that it changes
---@field stay? boolean do not enter the window: the user may be typing
---@field title? string default: the name
---@field keys? mcp-tools.ScratchKey[] besides `q` and `?`
---@field again? fun() for `r`
---@field back? fun() for `q`; default: close the window
---@field spans? fun(lines: string[]): mcp-tools.Span[][] colors of the lines
---@field float? boolean
---@field tall? boolean the window at the bottom takes the height that it needs
---@field rows? boolean the content adds rows, which are as wide as the window
---@field every? integer ms between updates while the window is visible
---@field on_close? fun() called once

---@class mcp-tools.ScratchKey
---@field lhs string
---@field description string
---@field word? string label of the key in the frame
---@field run fun(item: mcp-tools.RowItem?) gets the item of the cursor row
---@field accepts? boolean accepts all lines: scrolls by a page until the last line was visible; not in floats

---@alias mcp-tools.ScratchContent string[]|fun(rows: mcp-tools.Rows): string[]?

---@class mcp-tools.ScratchState
---@field opts mcp-tools.ScratchOpts
---@field title string
---@field content mcp-tools.ScratchContent
---@field rows mcp-tools.Row[] content of the buffer
---@field float? integer window
---@field timer? mcp-tools.Timer
---@field seen integer last row that was visible
---@field at? integer latest value of `opts.at`
---@field tried? integer the row to which the window was scrolled last

--- By buffer.
---@type table<integer, mcp-tools.ScratchState>
local states = {}

---@param window integer
local function close_window(window)
  if not windows.close(window, true) then
    vim.cmd.enew() -- it was the last window
  end
end

--- Closes the windows of a buffer.
---@param buffer integer
function M.close(buffer)
  for _, window in ipairs(vim.fn.win_findbuf(buffer)) do
    close_window(window)
  end
end

--- Returns whether a buffer is visible on the current tab page.
---@param buffer integer?
---@return boolean
function M.is_seen(buffer)
  return buffer ~= nil and vim.fn.bufwinid(buffer) ~= -1
end

--- Returns the rows that a buffer shows.
---@param buffer integer
---@return mcp-tools.Row[]
function M.rows(buffer)
  return states[buffer] and states[buffer].rows or {}
end

---@return mcp-tools.RowItem?
local function item_at_cursor(buffer, window)
  local row = M.rows(buffer)[api.nvim_win_get_cursor(window)[1]]
  return row and row.item
end

---@param opts mcp-tools.ScratchOpts
---@return boolean
local function has_accepting_key(opts)
  return vim.iter(opts.keys or {}):any(function(key)
    return key.accepts
  end)
end

---@param buffer integer
---@param window integer
---@return mcp-tools.Row[]
local function rows_of(buffer, window)
  local state = states[buffer]
  local opts, content = state.opts, state.content
  local is_read = has_accepting_key(opts) -- the user must read every row
  local width = (opts.rows or is_read) and api.nvim_win_get_width(window) or math.huge -- the window wraps a list
  local rows = Rows.new(width, is_read)
  local lines = {}
  if type(content) == 'function' then
    content = content(rows) or {}
  end
  for _, line in ipairs(content) do
    vim.list_extend(lines, vim.split(line, '\n', { plain = true }))
  end
  local spans = opts.spans and opts.spans(lines) or {}
  for i, line in ipairs(lines) do
    rows:line(line, spans[i], true)
  end
  return rows.list
end

--- Moves the cursor to the row of its item, at the same height in the window.
---@param window integer
---@param rows mcp-tools.Row[]
---@param item mcp-tools.RowItem?
---@param view table from `winsaveview`
local function follow_item(window, rows, item, view)
  local lnum = math.min(view.lnum, math.max(1, #rows))
  for i, row in ipairs(item and rows or {}) do
    if row.item and row.item.id == item.id then
      lnum = i
      break
    end
  end
  api.nvim_win_call(window, function()
    vim.fn.winrestview({ lnum = lnum, col = view.col, topline = math.max(1, view.topline + lnum - view.lnum) })
  end)
end

--- Sets the height of the window at the bottom to its number of lines.
---@param window integer
---@param opts mcp-tools.ScratchOpts
local function fit(window, opts)
  -- If it is alone or was moved beside others, this would resize the command line.
  if vim.fn.winlayout()[1] == 'col' then
    local height = api.nvim_win_text_height(window, {}).all + (vim.wo[window].winbar ~= '' and 1 or 0)
    local command_line = vim.o.cmdheight
    api.nvim_win_set_height(
      window,
      math.max(1, math.min(height, opts.tall and vim.o.lines or math.max(MAX_HEIGHT, math.floor(vim.o.lines / 2))))
    )
    if vim.o.cmdheight ~= command_line then -- before 0.11 the window may take lines from the command line
      vim.o.cmdheight = command_line
    end
  end
end

---@param buffer integer
---@return boolean changed
local function draw(buffer)
  local state, window = states[buffer], vim.fn.win_findbuf(buffer)[1]
  local rows = rows_of(buffer, window)
  local item, view = item_at_cursor(buffer, window), api.nvim_win_call(window, vim.fn.winsaveview)
  local changed = render.update(buffer, rows, state.rows)
  state.rows = rows
  if changed then
    state.seen, state.tried = 0, nil
    follow_item(window, rows, item, view)
    if not state.opts.rows then
      fit(window, state.opts)
    end
  end
  return changed
end

---@param opts mcp-tools.ScratchOpts
---@param unread? integer pages
---@return { [1]: string, [2]: string }[]
local function labels(opts, unread)
  local list = {}
  for _, key in ipairs(opts.keys or {}) do
    local word = key.word
    if key.accepts and unread and unread > 0 then
      word = ('read on (%d more page%s)'):format(unread, unread == 1 and '' or 's')
    end
    table.insert(list, word and { key.lhs, word } or nil)
  end
  return list
end

--- Counts the unread rows, and shows in the frame what the keys do now.
---@param buffer integer
---@return integer
local function count_unread(buffer)
  local state, window = states[buffer], vim.fn.bufwinid(buffer)
  if not state or window == -1 then
    return state and #state.rows - state.seen or 0
  end
  local at = visible.of(window)
  state.seen = visible.read(at, state.seen)
  local unread = #state.rows - state.seen
  local keys = labels(state.opts, math.ceil(unread / math.max(1, at.bottom - at.top + 1)))
  vim.wo[window][0].winbar = render.winbar(state.title, keys, state.opts.back and 'back')
  return unread
end

--- Counts later, because floating windows may still move.
local count_later = vim.schedule_wrap(count_unread)

--- Scrolls to the first row that was not visible, for a key that accepts all of them.
---@param buffer integer
---@return boolean more false if all were visible
local function read_on(buffer)
  local state = states[buffer]
  vim.cmd.redraw() -- the screen is not up to date if keys were typed ahead
  if count_unread(buffer) == 0 then
    return false
  elseif state.tried == state.seen + 1 then
    notify.warn('another window covers the text: close that first')
  end
  state.tried = state.seen + 1
  visible.show(api.nvim_get_current_win(), state.tried)
  count_later(buffer)
  return true
end

---@param opts mcp-tools.ScratchOpts
---@return vim.api.keyset.win_config
local function float_config(opts)
  local lines = vim.o.lines - vim.o.cmdheight
  local width = math.max(20, math.min(vim.o.columns - 4, MAX_WIDTH))
  local config = render.centered(width, math.max(3, lines - (lines > 30 and 6 or 3)))
  local keys = vim.list_extend({ { 'q', 'close' }, { '?', 'keys' } }, labels(opts))
  config.footer, config.footer_pos = render.keys(keys, width, 'Dim'), 'right'
  return config
end

--- Updates the content regularly until it is not visible.
---@param buffer integer
local function update_regularly(buffer)
  local state = states[buffer]
  if state.opts.every and not state.timer then
    state.timer = timer.every(state.opts.every, function()
      if M.is_seen(buffer) then
        return M.update(buffer)
      end
      state.timer:stop()
      state.timer = nil
    end)
  end
end

--- Follows the size of the screen. A float closes when another window is entered, which it would cover.
---@param buffer integer
local function follow(buffer)
  local group = api.nvim_create_augroup(GROUP .. buffer, {})
  api.nvim_create_autocmd('WinEnter', {
    group = group,
    callback = vim.schedule_wrap(function()
      local is_float = states[buffer] and states[buffer].float and M.is_seen(buffer)
      if is_float and api.nvim_win_get_config(0).relative == '' then
        M.close(buffer)
      end
    end),
  })
  if has_accepting_key(states[buffer].opts) then
    api.nvim_create_autocmd('WinScrolled', {
      group = group,
      callback = function()
        count_later(buffer)
      end,
    })
  end
  api.nvim_create_autocmd({ 'VimResized', 'TabEnter' }, {
    group = group,
    callback = function()
      local state = states[buffer]
      if state.float and M.is_seen(buffer) then
        api.nvim_win_set_config(state.float, float_config(state.opts))
      end
      M.update(buffer)
      update_regularly(buffer)
    end,
  })
end

---@param buffer integer
local function closed(buffer)
  local state = states[buffer]
  if state.timer then
    state.timer:stop()
  end
  states[buffer] = nil
  pcall(api.nvim_del_augroup_by_name, GROUP .. buffer)
  if state.float then
    vim.schedule(function() -- it is still open if another buffer was opened in it
      pcall(api.nvim_win_close, state.float, true)
    end)
  end
  if state.opts.on_close then
    guard('on_close of a window', state.opts.on_close)
  end
end

---@param name string
---@return integer buffer
local function buffer_of(name)
  local full = PREFIX .. name
  for _, buffer in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_get_name(buffer) == full then
      if states[buffer] then
        return buffer
      end
      api.nvim_buf_delete(buffer, { force = true }) -- restored by a session, or from an earlier load of the plugin
    end
  end
  local buffer = api.nvim_create_buf(false, true)
  api.nvim_buf_set_name(buffer, full)
  vim.bo[buffer].bufhidden = 'wipe'
  help.attach(buffer)
  api.nvim_create_autocmd('BufWipeout', {
    buffer = buffer,
    callback = function()
      closed(buffer)
    end,
  })
  return buffer
end

--- Returns the window at the bottom of this tab page, if it is open.
---@return integer?
local function shared_window()
  for _, window in ipairs(api.nvim_tabpage_list_wins(0)) do
    local state = states[api.nvim_win_get_buf(window)]
    if state and not state.float then
      return window
    end
  end
end

--- Opens a window below all others, or a float at the bottom if there is no room.
---@param buffer integer
---@param height integer
---@return integer window
local function open_bottom(buffer, height)
  local ok, window = pcall(api.nvim_open_win, buffer, false, { split = 'below', win = -1, height = height })
  if ok then
    return window
  end
  local row, width = vim.o.lines - vim.o.cmdheight, vim.o.columns
  local place = { relative = 'editor', anchor = 'SW', row = row, col = 0, width = width, height = height }
  return api.nvim_open_win(buffer, false, place)
end

---@param buffer integer
---@param opts mcp-tools.ScratchOpts
---@return integer window
local function open_float(buffer, opts)
  local config = vim.tbl_extend('error', float_config(opts), {
    style = 'minimal',
    border = 'rounded',
    title = { render.chunk((' %s '):format(states[buffer].title), 'Title') },
  })
  local window = api.nvim_open_win(buffer, false, config)
  states[buffer].float = window
  render.set_options(window, { winhighlight = render.winhighlight(), wrap = false, cursorline = true })
  return window
end

---@param buffer integer
---@param opts mcp-tools.ScratchOpts
---@return integer window
local function open_split(buffer, opts)
  local is_list, window = not opts.rows, shared_window()
  if window then
    api.nvim_win_set_buf(window, buffer)
  else
    window = open_bottom(buffer, is_list and 1 or math.max(5, math.floor(vim.o.lines / 2)))
  end
  render.set_options(window, {
    winfixheight = true,
    wrap = is_list,
    cursorline = not is_list,
    linebreak = true,
    breakindent = true,
    breakindentopt = 'shift:4',
    scrolloff = 0, -- otherwise a page could be a single line
    winbar = render.winbar(states[buffer].title, labels(opts), opts.back and 'back'),
  })
  return window
end

---@param buffer integer
---@param opts mcp-tools.ScratchOpts
local function set_keys(buffer, opts)
  local function map(lhs, description, run)
    vim.keymap.set('n', lhs, run, { buffer = buffer, nowait = true, desc = description })
  end
  for _, key in ipairs(opts.keys or {}) do
    map(key.lhs, key.description, function()
      if help.close() then
        return
      elseif not key.accepts or not read_on(buffer) then
        key.run(item_at_cursor(buffer, api.nvim_get_current_win()))
      end
    end)
  end
  map('q', opts.back and 'back' or 'close', function()
    if help.close() then
      return
    elseif opts.back then
      return opts.back()
    end
    close_window(api.nvim_get_current_win())
  end)
  local is_live = type(states[buffer].content) == 'function'
  if opts.again or is_live then
    map('r', 'redraw', opts.again or function()
      M.update(buffer)
    end)
  end
end

--- Returns where to put the cursor after the content has changed.
---@param buffer integer
---@return integer? row nil: leave it where it is
local function cursor_row(buffer)
  local state = states[buffer]
  if state.opts.at_end then
    return #state.rows
  end
  local before, now = state.at, state.opts.at and state.opts.at()
  state.at = now
  return now ~= before and now or nil
end

--- Updates the content of a buffer, keeping cursor and view; with `at_end` the cursor moves to new last lines.
---@param buffer integer from `show`
---@return boolean seen false if the buffer is not shown in any window
function M.update(buffer)
  local shown = states[buffer] and vim.fn.win_findbuf(buffer) or {}
  if #shown == 0 then
    return false
  end
  local row = draw(buffer) and cursor_row(buffer)
  for _, window in ipairs(row and shown or {}) do
    api.nvim_win_set_cursor(window, { row, 0 })
  end
  return true
end

--- Shows content in a window.
---@param name string identifies the buffer
---@param content mcp-tools.ScratchContent
---@param opts? mcp-tools.ScratchOpts
---@return integer buffer
function M.show(name, content, opts)
  opts = opts or {}
  local buffer = buffer_of(name)
  local old = states[buffer]
  if old and old.timer then
    old.timer:stop()
  end
  states[buffer] =
    { opts = opts, title = opts.title or name, content = content, rows = {}, float = old and old.float, seen = 0 }
  if vim.bo[buffer].filetype ~= (opts.filetype or '') then
    vim.bo[buffer].filetype = opts.filetype or ''
  end
  set_keys(buffer, opts)
  local open = opts.float and open_float or open_split
  local window = open(buffer, opts)
  if not opts.stay and vim.fn.getcmdwintype() == '' then -- the command-line window cannot be left (`:h E11`)
    api.nvim_set_current_win(window)
  end
  draw(buffer)
  follow(buffer)
  update_regularly(buffer)
  api.nvim_win_set_cursor(window, { cursor_row(buffer) or 1, 0 })
  if has_accepting_key(opts) then
    count_later(buffer)
  end
  return buffer
end

return M

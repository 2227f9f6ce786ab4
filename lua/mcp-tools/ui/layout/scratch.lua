--- Scratch window at the bottom, for several lines.
---
--- Receives: lines.
--- Sends: them to one window at the bottom that `q` closes; what it showed before gives way.
--- Does not know about: what they say.
---
--- Used instead of messages of several lines, which would wait for a key and keep the bridge waiting with them.

local help = require('mcp-tools.ui.layout.help')
local plain = require('mcp-tools.ui.layout.plain')
local plain_window = require('mcp-tools.ui.layout.plain_window')
local style = require('mcp-tools.ui.layout.style')
local winbar = require('mcp-tools.ui.layout.winbar')

local M = {}

local NAMESPACE = vim.api.nvim_create_namespace('mcp-tools-scratch')

local MAX_HEIGHT = 15
local PREFIX = 'mcp-tools://'
--- Variable of its buffers: others of that prefix, as those of a review, are somebody else's.
local MINE = 'mcp_tools_scratch'

--- How the lines of each buffer are coloured.
---@type table<integer, fun(lines: string[]): mcp-tools.Span[][]>
local spans_of = {}

---@class mcp-tools.ScratchOpts
---@field filetype? string
---@field at_end? boolean cursor on the last line
---@field stay? boolean leave the cursor where it is: the person may be typing
---@field title? string stands above the lines; the name when left out
---@field keys? mcp-tools.ScratchKey[] besides `q` and `?`
---@field again? fun() shows it anew, for `r`
---@field back? fun() shows what it came from, for `q`, which closes when left out
---@field spans? fun(lines: string[]): mcp-tools.Span[][] their colours, where they are not plain lines

---@class mcp-tools.ScratchKey
---@field lhs string
---@field description string
---@field word? string stands with it above the lines
---@field run fun()

---@param lines string[]
---@return string[]
local function single_lines(lines)
  local out = {}
  for _, line in ipairs(lines) do
    vim.list_extend(out, vim.split(line, '\n', { plain = true }))
  end
  return out
end

local function close()
  if help.close() then
    return
  end
  if not pcall(vim.cmd.close) then
    vim.cmd.enew() -- it was the last window
  end
end

---@param name string
---@return integer buffer
local function buffer_of(name)
  local full = PREFIX .. name
  for _, buffer in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_get_name(buffer) == full then
      return buffer
    end
  end
  local buffer = vim.api.nvim_create_buf(false, true)
  vim.api.nvim_buf_set_name(buffer, full)
  vim.bo[buffer].bufhidden = 'wipe'
  vim.b[buffer][MINE] = true
  help.attach(buffer)
  vim.api.nvim_create_autocmd('BufWipeout', {
    buffer = buffer,
    callback = function()
      spans_of[buffer] = nil
    end,
  })
  return buffer
end

--- The window of this tab page that shows something of ours.
---@return integer?
local function shared_window()
  for _, window in ipairs(vim.api.nvim_tabpage_list_wins(0)) do
    if vim.b[vim.api.nvim_win_get_buf(window)][MINE] then
      return window
    end
  end
end

--- Gives the window the height of its lines.
---@param window integer
local function fit(window)
  -- Where it was moved beside the others, or is alone, its height would change that of the command line.
  if vim.fn.winlayout()[1] == 'col' then
    local height = vim.api.nvim_win_text_height(window, {}).all + (vim.wo[window].winbar ~= '' and 1 or 0)
    vim.api.nvim_win_set_height(window, math.max(1, math.min(height, MAX_HEIGHT)))
  end
end

--- A window below all others; above them where there is no room for one more.
---@param buffer integer
---@return integer window
local function open(buffer)
  local ok, window = pcall(vim.api.nvim_open_win, buffer, false, { split = 'below', win = -1, height = 1 })
  if ok then
    return window
  end
  local row, width = vim.o.lines - vim.o.cmdheight, vim.o.columns
  local place = { relative = 'editor', anchor = 'SW', row = row, col = 0, width = width, height = 1 }
  return vim.api.nvim_open_win(buffer, false, place)
end

---@param buffer integer
---@param title string
---@param opts mcp-tools.ScratchOpts
---@return integer window
local function window_of(buffer, title, opts)
  local window = shared_window()
  if window then
    vim.api.nvim_win_set_buf(window, buffer)
  else
    window = open(buffer)
  end
  if not opts.stay and vim.fn.getcmdwintype() == '' then -- the command-line window cannot be left (`:h E11`)
    vim.api.nvim_set_current_win(window)
  end
  plain_window(window)
  vim.wo[window][0].winfixheight = true
  vim.wo[window][0].wrap, vim.wo[window][0].linebreak = true, true
  vim.wo[window][0].breakindent, vim.wo[window][0].breakindentopt = true, 'shift:4'
  vim.wo[window][0].winbar = winbar.text(
    title,
    vim
      .iter(opts.keys or {})
      :map(function(key)
        return key.word and { key.lhs, key.word } or nil
      end)
      :totable(),
    opts.back and 'back'
  )
  fit(window)
  return window
end

---@param buffer integer
---@param lines string[]
local function write(buffer, lines)
  vim.bo[buffer].modifiable = true
  vim.api.nvim_buf_set_lines(buffer, 0, -1, false, lines)
  vim.bo[buffer].modifiable = false
  vim.api.nvim_buf_clear_namespace(buffer, NAMESPACE, 0, -1)
  local colours = spans_of[buffer]
  for row, spans in pairs(colours and colours(lines) or {}) do
    for _, span in ipairs(spans) do
      style.mark(buffer, NAMESPACE, { row = row - 1, from = span[1] - 1, to = span[2], name = span[3] }, #lines[row])
    end
  end
end

--- Keys of what is shown, for it as it is now; under one name they are the same keys each time.
---@param buffer integer
---@param opts mcp-tools.ScratchOpts
local function set_keys(buffer, opts)
  for _, key in ipairs(opts.keys or {}) do
    vim.keymap.set('n', key.lhs, key.run, { buffer = buffer, nowait = true, desc = key.description })
  end
  local function back()
    if not help.close() then
      opts.back()
    end
  end
  local q = opts.back and { back, 'back' } or { close, 'close' }
  vim.keymap.set('n', 'q', q[1], { buffer = buffer, nowait = true, desc = q[2] })
  if opts.again then
    vim.keymap.set('n', 'r', opts.again, { buffer = buffer, nowait = true, desc = 'draw anew' })
  end
end

--- Shows other lines where `buffer` is seen; the cursor and what is in view stay.
---@param buffer integer as `show` gave it
---@param lines string[]
---@param opts? { at_end: boolean? } go to the last line
---@return boolean seen false when it is seen nowhere any more
function M.update(buffer, lines, opts)
  local windows = vim.api.nvim_buf_is_valid(buffer) and vim.fn.win_findbuf(buffer) or {}
  lines = single_lines(lines)
  if #windows > 0 and not vim.deep_equal(lines, vim.api.nvim_buf_get_lines(buffer, 0, -1, false)) then
    write(buffer, lines)
    local shared = shared_window()
    if shared and vim.api.nvim_win_get_buf(shared) == buffer then
      fit(shared)
    end
    for _, window in ipairs(opts and opts.at_end and windows or {}) do
      vim.api.nvim_win_set_cursor(window, { #lines, 0 })
    end
  end
  return #windows > 0
end

--- Shows what is below the lines on the screen, for a key that agrees to all of them.
---@return boolean more false when the end is on the screen
function M.reveal()
  local seen, last = vim.fn.line('w$'), vim.api.nvim_buf_line_count(0)
  if seen >= last then
    return false
  end
  local height = vim.api.nvim_win_get_height(0) - (vim.wo.winbar ~= '' and 1 or 0)
  local top = math.max(vim.fn.line('w0') + 1, math.min(seen + 1, last - height + 1))
  vim.fn.winrestview({ topline = top, lnum = math.max(top, seen + 1), col = 0 })
  vim.api.nvim_echo({ { 'there was more of it: read on, then press the key again' } }, false, {})
  return true
end

--- Shows `lines` under `name`.
---@param name string
---@param lines string[]
---@param opts? mcp-tools.ScratchOpts
---@return integer buffer
function M.show(name, lines, opts)
  opts = opts or {}
  lines = single_lines(lines)
  local buffer = buffer_of(name)
  spans_of[buffer] = opts.spans or (opts.filetype or 'log') == 'log' and plain.spans or nil
  write(buffer, lines)
  if vim.bo[buffer].filetype ~= (opts.filetype or '') then
    vim.bo[buffer].filetype = opts.filetype or ''
  end
  set_keys(buffer, opts)
  local window = window_of(buffer, opts.title or name, opts)
  vim.api.nvim_win_set_cursor(window, { opts.at_end and #lines or 1, 0 })
  return buffer
end

return M

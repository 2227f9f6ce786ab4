--- A floating window that the person did not call for: one window, or several that stand and go together.
---
--- A kind adds `layout` and `frames`, and in place of `first`, `is_field` and `save` its own where it has a field for
--- text. ui/approval/window.lua is the shorter one to look at.

local focus_return = require('mcp-tools.ui.window.float.focus_return')
local help = require('mcp-tools.ui.window.help')
local highlights = require('mcp-tools.ui.window.highlights')
local render = require('mcp-tools.ui.window.render')
local sanitize = require('mcp-tools.util.sanitize')

local api = vim.api

local M = {}

local MIN_WIDTH = 20

--- Keys of a buffer: key → modes, what it does, description.
---@alias mcp-tools.FloatKeys table<string, { [1]: string|string[], [2]: fun(), [3]: string }>

--- What is said about a kind once.
---@class mcp-tools.FloatKind
---@field zindex integer
---@field max_width integer

---@class mcp-tools.Float: mcp-tools.FloatKind
---@field windows integer[]
---@field buffers integer[]
---@field tab integer
---@field placed? { row: integer, height: integer }[] where they stand
---@field said? string the frames as they are
---@field layout fun(self, opened: integer?, now: integer?): { row: integer, height: integer }[] by window
---@field frames fun(self): table[] by window, title and footer as `nvim_win_set_config` takes them
local Float = {}
Float.__index = Float

--- Makes a kind, a class with the methods below.
---@param kind mcp-tools.FloatKind
---@return table
function M.kind(kind)
  local Kind = setmetatable(kind --[[@as table]], Float)
  Kind.__index = Kind
  return Kind
end

--- Cells of a row.
---@return integer
function Float:width()
  return math.max(MIN_WIDTH, math.min(self.max_width, vim.o.columns - 4))
end

--- Makes a buffer for one of its windows.
---@param name string of a variable of the buffer, by which others know whose it is
---@param value any
---@param keys mcp-tools.FloatKeys
---@return integer buffer
function M.buffer(name, value, keys)
  local buffer = api.nvim_create_buf(false, true)
  vim.b[buffer][name] = value
  for key, action in pairs(keys) do
    local function run() -- with the help above the window, nobody answers what it covers
      if not help.close() then
        action[2]()
      end
    end
    vim.keymap.set(action[1], key, run, { buffer = buffer, nowait = true, desc = action[3] })
  end
  if next(keys) then
    help.attach(buffer)
  end
  return buffer
end

--- Opens its windows, all or none.
---@param options table<string, any>[] of each window
---@param opened integer? window that is not to be hidden
function Float:open(options, opened)
  highlights.define()
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
  local own = { winfixbuf = true, winhighlight = highlights.winhighlight() }
  render.set_options(window, vim.tbl_extend('error', own, options))
  return window
end

--- Makes characters stand out that cannot be seen, in a window with text of strangers.
---@param window integer
function Float:show_hidden(window)
  vim.fn.matchadd(highlights.group('Hidden'), sanitize.PATTERN, 10, -1, { window = window })
end

--- Are all of its windows still there?
---@return boolean
function Float:is_valid()
  return vim.iter(self.windows):all(api.nvim_win_is_valid)
end

--- Is it on the screen?
---@return boolean
function Float:is_here()
  return self:is_valid() and self.tab == api.nvim_get_current_tabpage()
end

--- Which of its windows has the cursor?
---@return integer?
function Float:cursor()
  local current = api.nvim_get_current_win()
  for i, window in ipairs(self.windows) do
    if window == current then
      return i
    end
  end
end

--- Which of its windows does the person begin in?
---@return integer
function Float:first()
  return 1
end

--- Is text typed into this one? In the others the keys are those of normal mode.
---@param _index integer
---@return boolean
function Float:is_field(_index)
  return false
end

--- Enters one of its windows.
---@param index integer? without it, where the person begins
function Float:enter(index)
  index = index or self:first()
  focus_return.enter(self.windows[index])
  vim.cmd(self:is_field(index) and 'startinsert!' or 'stopinsert')
end

--- Puts it where it hides nothing that matters, which may be where it is.
---@param opened integer? window that is not to be hidden
function Float:move(opened)
  local now = self:layout(opened, self.placed[1].row)
  if not vim.deep_equal(now, self.placed) then
    for i, window in ipairs(self.windows) do
      api.nvim_win_set_config(window, self:config(now[i]))
    end
    self.placed = now
  end
end

--- Makes way for the cursor, and for what has been opened since. It stays while the cursor is in it.
---@param opened integer? window
function Float:make_way(opened)
  if not self:cursor() then
    self:move(opened)
  end
end

--- How many rows of a window are below what is on the screen.
---@param index integer of the window
---@param rows integer
---@return integer
function Float:below(index, rows)
  return math.max(0, rows - vim.fn.line('w$', self.windows[index]))
end

--- Has the frames say what is true now.
function Float:set_frames()
  if self.said and api.nvim_get_mode().mode:sub(1, 1) == 'c' then
    return -- what was said before the command was typed is true after it, too
  end
  local frames = self:frames()
  local said = vim.inspect(frames)
  if self.said ~= said then
    for i, frame in ipairs(frames) do
      api.nvim_win_set_config(self.windows[i], frame)
    end
    self.said = said
  end
end

--- Takes what the person has typed into it, before it goes. Most kinds have no field for text.
function Float:save() end

--- Closes it.
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

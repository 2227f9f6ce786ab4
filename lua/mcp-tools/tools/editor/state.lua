--- Returns the state of the editor: mode, current file, tab pages and windows.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local focus = require('mcp-tools.editor.user.focus')
local position = require('mcp-tools.editor.position')
local result = require('mcp-tools.editor.result')

local api, fn = vim.api, vim.fn

--- Options of a buffer that determine how its text is written.
local OPTIONS =
  { 'expandtab', 'shiftwidth', 'tabstop', 'textwidth', 'fileformat', 'fileencoding', 'readonly', 'modifiable' }

---@param window integer
---@return string
local function kind_of(window)
  if api.nvim_win_get_config(window).relative ~= '' then
    return 'float'
  end
  local kind = fn.win_gettype(window)
  return kind ~= '' and kind or 'window'
end

---@param window integer
---@param root string
---@return table
local function window_of(window, root)
  local bufnr = api.nvim_win_get_buf(window)
  local name, place = api.nvim_buf_get_name(bufnr), api.nvim_win_get_cursor(window)
  local info, kind = fn.getwininfo(window)[1], kind_of(window)
  local buftype = vim.bo[bufnr].buftype
  return {
    window = window,
    bufnr = bufnr,
    path = name ~= '' and access.shown(name, root) or nil,
    kind = kind ~= 'window' and kind or nil,
    buftype = buftype ~= '' and buftype or nil,
    current = window == api.nvim_get_current_win() or nil,
    line = place[1],
    column = position.column(bufnr, place[1] - 1, place[2]),
    first_visible_line = info.topline,
    last_visible_line = info.botline,
    width = info.width,
    height = info.height,
  }
end

---@param root string
---@param limit integer windows
---@return table[] tabs, integer windows
local function tabs(root, limit)
  local list, count = {}, 0
  for _, tab in ipairs(api.nvim_list_tabpages()) do
    local windows = {}
    for _, window in ipairs(api.nvim_tabpage_list_wins(tab)) do
      count = count + 1
      if count <= limit then
        table.insert(windows, window_of(window, root))
      end
    end
    if #windows > 0 then
      local number = api.nvim_tabpage_get_number(tab)
      local cwd = fn.haslocaldir(-1, number) == 1 and fn.getcwd(-1, number) or nil
      table.insert(list, {
        tab = number,
        current = tab == api.nvim_get_current_tabpage() or nil,
        cwd = cwd,
        windows = windows,
      })
    end
  end
  return list, count
end

--- Returns the current file.
---@param root string
---@return table?
local function current_of(root)
  local bufnr, place = buffers.current(), focus.cursor(root)
  if not bufnr or not place then
    return nil
  end
  place.filetype = vim.bo[bufnr].filetype ~= '' and vim.bo[bufnr].filetype or nil
  place.modified = vim.bo[bufnr].modified
  place.lines = api.nvim_buf_line_count(bufnr)
  place.changedtick = api.nvim_buf_get_changedtick(bufnr)
  place.options = {}
  for _, name in ipairs(OPTIONS) do
    place.options[name] = vim.bo[bufnr][name]
  end
  return place
end

return {
  name = 'editor_state',
  title = 'State of the editor',
  description = 'Returns the editor state: mode, working directory, the current file (cursor, visible lines, unsaved'
    .. ' changes, options), and all tab pages and windows. Lines and columns (characters) count from 1.',
  args = {
    limit = { type = 'integer', description = 'Maximum number of windows', default = 30, minimum = 0, maximum = 500 },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  recommended = true,
  execute = function(ctx, args)
    local mode = api.nvim_get_mode()
    local list, count = tabs(ctx.root, args.limit)
    ctx(result.utf8({
      mode = mode.mode,
      blocking = mode.blocking or nil,
      root = ctx.root,
      cwd = fn.getcwd(),
      current = current_of(ctx.root),
      tabs = list,
      windows_total = count > args.limit and count or nil,
    }))
  end,
}

--- The editor context that is pushed to agents: current file, cursor, selection, open files.
---
--- The current window is the last one that is not a terminal; sensitive files are left out. A key press costs one
--- comparison; the context is only collected after a pause and while there are listeners.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local focus = require('mcp-tools.editor.user.focus')
local log = require('mcp-tools.log')
local paths = require('mcp-tools.files.paths')
local position = require('mcp-tools.editor.position')
local server_text = require('mcp-tools.editor.lsp.server_text')
local timer = require('mcp-tools.util.timer')
local utf8 = require('mcp-tools.util.utf8')

local api, uv = vim.api, vim.uv

local M = {}

--- Pause without events before listeners are called, and maximum delay, in ms.
local PAUSE, MAX_DELAY = 100, 200
--- Maximum number of open files, most recent first.
local MAX_FILES = 20

---@class mcp-tools.Context
---@field active mcp-tools.context.Active? nil: no readable file
---@field open_files mcp-tools.context.OpenFile[] most recently visited first
---@field diagnostics integer changes whenever diagnostics change (`M.diagnostics()` returns them)

---@class mcp-tools.context.Active
---@field path string resolved
---@field bufnr integer
---@field cursor mcp-tools.context.Position
---@field selection mcp-tools.context.Selection?

---@class mcp-tools.context.OpenFile
---@field path string resolved
---@field bufnr integer
---@field at integer time of the last visit, ms since the epoch

---@class mcp-tools.context.Position
---@field line integer 0-based
---@field character integer 0-based, in UTF-16

--- Returns the resolved path of a buffer's file; nil if it has none or is sensitive, so that agents do not even learn
--- that it is open.
---@param bufnr integer valid
---@return string?
local function path_of(bufnr)
  local kind, name = access.buffer_kind(bufnr)
  if kind ~= 'file' or access.is_marked(bufnr) then
    return nil
  end
  local path, bad = paths.resolve(name)
  return not bad and not access.is_sensitive_name(name, kind) and path or nil
end

--- Returns a position in a buffer.
---@param bufnr integer loaded
---@param row integer 0-based
---@param byte integer 0-based
---@param known? mcp-tools.position.Known
---@return mcp-tools.context.Position
local function position_of(bufnr, row, byte, known)
  return { line = row, character = position.units(position.line(bufnr, row, known) or '', byte, 'utf-16', known) }
end

--- The selection is kept after visual mode until the cursor moves or the text changes, so that it is still available
--- after the user has switched to the agent's terminal.

--- Maximum size of the selected text in bytes, since it is copied at every pause. The range is not limited.
local MAX_SELECTED = 64 * 1024

---@class mcp-tools.context.Selection
---@field start mcp-tools.context.Position
---@field finish mcp-tools.context.Position after the last character
---@field text string

---@class mcp-tools.context.Kept the selection when visual mode ended
---@field bufnr integer
---@field tick integer
---@field cursor integer[]
---@field mode string
---@field from integer[] as returned by getpos()
---@field to integer[]

local kept ---@type mcp-tools.context.Kept?

--- Returns the text between two positions.
---@param bufnr integer
---@param from integer[]
---@param to integer[]
---@param mode string
---@return string
local function text_of(bufnr, from, to, mode)
  local count = to[2] - from[2] + 1
  local lines = buffers.some_lines(bufnr, from[2], count, MAX_SELECTED)
  if mode == 'V' or #lines < count then
    return utf8.cut(table.concat(lines, '\n'), MAX_SELECTED)
  end
  return utf8.cut(focus.text_between(bufnr, from, to, mode), MAX_SELECTED)
end

--- Returns row and byte after the character at a position.
---@param bufnr integer
---@param at integer[]
---@return integer row
---@return integer byte
local function after(bufnr, at)
  local line = api.nvim_buf_get_lines(bufnr, at[2] - 1, at[2], false)[1] or ''
  if at[3] > #line then
    return at[2] - 1, #line
  end
  return at[2] - 1, at[3] + vim.str_utf_end(line, math.max(at[3], 1))
end

---@param bufnr integer
---@param from integer[]
---@param to integer[]
---@param mode string
---@return mcp-tools.context.Selection?
local function selection_of(bufnr, from, to, mode)
  local last = api.nvim_buf_line_count(bufnr)
  if from[2] < 1 or to[2] > last then
    return nil
  end
  local start, finish
  if mode == 'V' then
    start, finish = position_of(bufnr, from[2] - 1, 0), position_of(bufnr, to[2] - 1, math.huge)
  else
    start, finish = position_of(bufnr, from[2] - 1, from[3] - 1), position_of(bufnr, after(bufnr, to))
  end
  return { start = start, finish = finish, text = text_of(bufnr, from, to, mode) }
end

--- Keeps the selection when visual mode ends.
---@param mode string the mode that ended
local function keep_selection(mode)
  if #mode > 1 then -- for example "vs", Visual mode for one command
    return
  end
  local bufnr = api.nvim_get_current_buf()
  kept = {
    bufnr = bufnr,
    tick = api.nvim_buf_get_changedtick(bufnr),
    cursor = api.nvim_win_get_cursor(0),
    mode = mode,
    from = vim.fn.getpos("'<"),
    to = vim.fn.getpos("'>"),
  }
end

--- Returns the selection in a window.
---@param window integer?
---@param bufnr integer loaded
---@return mcp-tools.context.Selection?
local function selection_in(window, bufnr)
  local from, to, mode = focus.visual()
  if from and window == api.nvim_get_current_win() then
    return selection_of(bufnr, from, to, mode)
  end
  local is_kept = kept
    and window
    and kept.bufnr == bufnr
    and kept.tick == api.nvim_buf_get_changedtick(bufnr)
    and vim.deep_equal(kept.cursor, api.nvim_win_get_cursor(window))
  return is_kept and selection_of(bufnr, kept.from, kept.to, kept.mode) or nil
end

---@type table<integer, integer> buffer → ms since the epoch
local visited = {}
local diagnostics_changed = 0
---@type { fn: fun(context: mcp-tools.Context), wanted: fun(): boolean }[]
local listeners = {}

--- Maximum number of diagnostics in one result.
local MAX_DIAGNOSTICS = 1000

---@class mcp-tools.context.Diagnostic
---@field message string
---@field severity integer 1 to 4: error, warning, information, hint
---@field range { start: mcp-tools.context.Position, ["end"]: mcp-tools.context.Position }
---@field source string?
---@field code (string|integer)?

---@class mcp-tools.context.FileDiagnostics
---@field path string
---@field diagnostics mcp-tools.context.Diagnostic[]

---@param diagnostic vim.Diagnostic
---@param known mcp-tools.position.Known
---@return mcp-tools.context.Diagnostic
local function item_of(diagnostic, known)
  local bufnr = diagnostic.bufnr --[[@as integer]]
  local loaded = api.nvim_buf_is_loaded(bufnr)
  local function at(row, byte)
    return loaded and position_of(bufnr, row, byte, known) or { line = row, character = byte }
  end
  return {
    message = server_text.text(diagnostic.message),
    severity = diagnostic.severity --[[@as integer]] or 1,
    range = {
      start = at(diagnostic.lnum, diagnostic.col),
      ['end'] = at(diagnostic.end_lnum or diagnostic.lnum, diagnostic.end_col or diagnostic.col),
    },
    source = type(diagnostic.source) == 'string' and diagnostic.source or nil,
    code = type(diagnostic.code) ~= 'table' and diagnostic.code or nil,
  }
end

--- Returns the current diagnostics.
---@param path? string resolved; default: all files
---@return mcp-tools.context.FileDiagnostics[] by buffer number; an open file given as `path` has an entry even without
--- diagnostics
function M.diagnostics(path)
  local only = path and buffers.of_path(path)
  if path and not only then
    return {}
  end
  local files, count, known = {}, 0, position.known()
  local function file_of(bufnr)
    if files[bufnr] == nil then
      local shown = api.nvim_buf_is_valid(bufnr) and path_of(bufnr)
      files[bufnr] = shown and { path = shown, diagnostics = {} } or false
    end
    return files[bufnr]
  end
  if only then
    file_of(only)
  end
  for _, diagnostic in ipairs(vim.diagnostic.get(only)) do
    local file = count < MAX_DIAGNOSTICS and file_of(diagnostic.bufnr)
    if file then
      count = count + 1
      table.insert(file.diagnostics, item_of(diagnostic, known))
    end
  end
  local list = {}
  for _, file in vim.spairs(files) do
    table.insert(list, file or nil)
  end
  return list
end

---@return mcp-tools.context.OpenFile[]
local function open_files()
  local list, bufnrs = {}, vim.tbl_keys(visited)
  table.sort(bufnrs, function(a, b)
    return visited[a] > visited[b] or visited[a] == visited[b] and a > b
  end)
  for _, bufnr in ipairs(bufnrs) do
    local is_there = #list < MAX_FILES and api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].buflisted
    local path = is_there and path_of(bufnr)
    if path then
      table.insert(list, { path = path, bufnr = bufnr, at = visited[bufnr] })
    end
  end
  return list
end

---@return mcp-tools.context.Active?
local function active()
  local bufnr = buffers.current()
  local path = bufnr and path_of(bufnr)
  if not path then
    return nil
  end
  local line, byte, window = focus.place(bufnr)
  return {
    path = path,
    bufnr = bufnr,
    cursor = position_of(bufnr, line - 1, byte),
    selection = selection_in(window, bufnr),
  }
end

--- Returns the current context.
---@return mcp-tools.Context
function M.get()
  return { active = active(), open_files = open_files(), diagnostics = diagnostics_changed }
end

---@return boolean
local function has_listeners()
  return vim.iter(listeners):any(function(listener)
    return listener.wanted()
  end)
end

local function notify_listeners()
  local context = M.get()
  for _, listener in ipairs(listeners) do
    if listener.wanted() then
      log.guard('a listener for the editor context', listener.fn, context)
    end
  end
end

local armed = false
local first, last = 0, 0 -- ns; times of the first and last event not reported yet

local function wait(ms)
  timer.after(ms, function()
    local now = uv.hrtime()
    local rest = math.min(PAUSE - (now - last) / 1e6, MAX_DELAY - (now - first) / 1e6)
    if rest > 0 then
      return wait(rest)
    end
    armed = false
    notify_listeners()
  end)
end

--- Schedules the listeners after an event.
local function schedule()
  last = uv.hrtime()
  if not armed and has_listeners() then
    armed, first = true, last
    wait(PAUSE)
  end
end

local group = api.nvim_create_augroup('mcp-tools.context', {})

local function watch()
  ---@param events string|string[]
  ---@param fn fun(args: table)
  ---@param pattern? string
  local function on(events, fn, pattern)
    api.nvim_create_autocmd(events, {
      group = group,
      pattern = pattern,
      callback = function(args)
        fn(args)
        schedule()
      end,
    })
  end
  on({ 'CursorMoved', 'CursorMovedI', 'WinEnter', 'TabEnter', 'BufFilePost', 'BufWinEnter' }, function() end)
  on('ModeChanged', function()
    keep_selection((vim.v.event --[[@as table]]).old_mode)
  end, '[vV\22]*:*')
  on('ModeChanged', function() end, '*:[vV\22]*')
  on('BufEnter', function(args)
    if access.is_text(args.buf) then
      local seconds, micros = uv.gettimeofday()
      visited[args.buf] = seconds * 1000 + math.floor(micros / 1000)
    end
  end)
  on({ 'BufDelete', 'BufUnload', 'BufWipeout' }, function(args)
    visited[args.buf] = nil
  end)
  on('DiagnosticChanged', function()
    diagnostics_changed = diagnostics_changed + 1
  end)
end

--- Calls `fn` when the context may have changed.
---@param fn fun(context: mcp-tools.Context)
---@param wanted? fun(): boolean must be cheap; nothing is collected while all return false
function M.on_change(fn, wanted)
  table.insert(listeners, {
    fn = fn,
    wanted = wanted or function()
      return true
    end,
  })
  if #listeners > 1 then
    return
  end
  for _, info in ipairs(vim.fn.getbufinfo({ buflisted = 1, bufloaded = 1 })) do
    if info.lastused > 0 and access.is_text(info.bufnr) then
      visited[info.bufnr] = info.lastused * 1000
    end
  end
  watch()
end

return M

--- The editor context that is pushed to agents: current file, cursor, selection, open files.
---
--- The current window is the last one that is not a terminal; sensitive files are left out. A key press costs one
--- comparison; the context is only collected after a pause and while there are listeners.

local buffer_kind = require('mcp-tools.privacy.buffer_kind')
local buffers = require('mcp-tools.editor.buffer')
local cursor = require('mcp-tools.editor.user.cursor')
local location = require('mcp-tools.editor.context.location')
local log = require('mcp-tools.log')
local selection = require('mcp-tools.editor.context.selection')
local server_text = require('mcp-tools.editor.lsp.server_text')
local timer = require('mcp-tools.util.timer')

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
---@return mcp-tools.context.Diagnostic
local function item_of(diagnostic)
  local bufnr = diagnostic.bufnr --[[@as integer]]
  local loaded = api.nvim_buf_is_loaded(bufnr)
  local function at(row, byte)
    return loaded and location.position(bufnr, row, byte) or { line = row, character = byte }
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
  local by_buffer, count = {}, 0
  for _, diagnostic in ipairs(vim.diagnostic.get(only)) do
    local bufnr = diagnostic.bufnr --[[@as integer]]
    if count < MAX_DIAGNOSTICS and api.nvim_buf_is_valid(bufnr) and location.path(bufnr) then
      count = count + 1
      by_buffer[bufnr] = by_buffer[bufnr] or {}
      table.insert(by_buffer[bufnr], item_of(diagnostic))
    end
  end
  if only and location.path(only) then
    by_buffer[only] = by_buffer[only] or {}
  end
  local list = {}
  for bufnr, items in vim.spairs(by_buffer) do
    table.insert(list, { path = location.path(bufnr), diagnostics = items })
  end
  return list
end

---@return integer
local function now_ms()
  local seconds, micros = uv.gettimeofday()
  return seconds * 1000 + math.floor(micros / 1000)
end

---@return mcp-tools.context.OpenFile[]
local function open_files()
  local list = {}
  for bufnr, at in pairs(visited) do
    local is_there = api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].buflisted
    local path = is_there and location.path(bufnr)
    if path then
      table.insert(list, { path = path, bufnr = bufnr, at = at })
    end
  end
  table.sort(list, function(a, b)
    return a.at > b.at or a.at == b.at and a.bufnr > b.bufnr
  end)
  return vim.list_slice(list, 1, MAX_FILES)
end

---@return mcp-tools.context.Active?
local function active()
  local bufnr = buffers.current()
  local path = bufnr and location.path(bufnr)
  if not path then
    return nil
  end
  local window = cursor.window(bufnr)
  local at = window and api.nvim_win_get_cursor(window) or api.nvim_buf_get_mark(bufnr, '"')
  return {
    path = path,
    bufnr = bufnr,
    cursor = location.position(bufnr, math.max(at[1], 1) - 1, at[2]),
    selection = selection.get(window, bufnr),
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
    selection.left((vim.v.event --[[@as table]]).old_mode)
  end, '[vV\22]*:*')
  on('ModeChanged', function() end, '*:[vV\22]*')
  on('BufEnter', function(args)
    if buffer_kind.is_text(args.buf) then
      visited[args.buf] = now_ms()
    end
  end)
  on({ 'BufDelete', 'BufUnload', 'BufWipeout' }, function(args)
    visited[args.buf] = nil
    location.forget(args.buf)
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
    if info.lastused > 0 and buffer_kind.is_text(info.bufnr) then
      visited[info.bufnr] = info.lastused * 1000
    end
  end
  watch()
end

return M

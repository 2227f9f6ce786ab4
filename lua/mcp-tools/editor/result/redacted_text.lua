--- Redacts text of files and output of commands in pieces: valid UTF-8 without secrets.

local read = require('mcp-tools.privacy.read')
local redact = require('mcp-tools.privacy.redact')
local sensitive = require('mcp-tools.privacy.sensitive')
local task = require('mcp-tools.util.task')
local terminal_text = require('mcp-tools.util.terminal_text')
local time_slice = require('mcp-tools.util.time_slice')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local uv = vim.uv

local M = {}

--- Number of bytes processed between two pauses, about a millisecond of work.
local PIECE = 16 * 1024

--- Returns an iterator over pieces of whole lines.
---@param text string
---@return fun(): string?
local function pieces(text)
  local at = 1
  return function()
    if at > #text then
      return nil
    end
    local stop = text:find('\n', at + PIECE, true) or #text
    local piece = text:sub(at, stop)
    at = stop + 1
    return piece
  end
end

--- Redacts the text of a readable file; assignments to secret-looking names are kept. Runs in a coroutine.
---@param ctx mcp-tools.Ctx|mcp-tools.Task
---@param text string
---@return string text
---@return boolean lossy
function M.file(ctx, text)
  local pause, parts, lossy = time_slice.of(ctx), {}, false
  redact.refresh(pause)
  for piece in pieces(text) do
    local whole, bad = utf8.repair(redact.quoted(piece, pause))
    lossy = lossy or bad
    parts[#parts + 1] = whole
    pause()
  end
  return table.concat(parts), lossy
end

--- Converts command output to plain text without redacting it. Runs in a coroutine.
---@param ctx mcp-tools.Ctx|mcp-tools.Task
---@param text string
---@return string
function M.plain(ctx, text)
  local pause, parts = time_slice.of(ctx), {}
  for piece in pieces(text) do
    parts[#parts + 1] = utf8.repair(terminal_text.plain(piece, pause))
    pause()
  end
  return table.concat(parts)
end

--- Converts command output to redacted plain text. Runs in a coroutine.
---@param ctx mcp-tools.Ctx|mcp-tools.Task
---@param text string
---@return string
function M.output(ctx, text)
  return redact.text(M.plain(ctx, text), time_slice.of(ctx))
end

--- Maximum size of a line of progress in bytes.
local MAX_LINE = 200
--- Maximum number of bytes searched per piece of output, from its end.
local MAX_SEARCHED = 4096

--- Returns the last line that is not blank.
---@param text string
---@return string?
local function last_line(text)
  local plain = terminal_text.plain(text:sub(-MAX_SEARCHED))
  for line in vim.gsplit(plain:reverse(), '\n', { plain = true }) do
    if line:find('%S') then
      return utf8.cut(redact.line((utf8.repair(trim(line:reverse())))), MAX_LINE)
    end
  end
end

--- Returns an `on_output` function for `process.run` that reports the last line as progress of the call.
---@param ctx mcp-tools.Ctx|mcp-tools.Task
---@return fun(stream: 'stdout'|'stderr', text: string)
function M.progress(ctx)
  local bytes = 0
  return function(_, text)
    bytes = bytes + #text
    local line = last_line(text)
    if line then
      ctx:progress(bytes, nil, line)
    end
  end
end

--- Maximum size of a file in bytes, and number of sensitive files and of directory entries considered.
local MAX_FILE, MAX_FILES, MAX_ENTRIES = 64 * 1024, 20, 5000

---@type table<string, integer> path → modification time when its lines were learned
local learned = {}

--- Returns the paths of the sensitive files of a directory.
---@param ctx mcp-tools.Ctx|mcp-tools.Task
---@param directory string
---@return string[]
local function sensitive_in(ctx, directory)
  local entries = task.uv(ctx, uv.fs_scandir, directory)
  local paths, pause = {}, time_slice.of(ctx)
  for _ = 1, entries and MAX_ENTRIES or 0 do
    local name, kind = uv.fs_scandir_next(entries)
    if not name or #paths == MAX_FILES then
      break
    elseif kind ~= 'directory' and sensitive.is_sensitive(directory .. '/' .. name) then
      table.insert(paths, directory .. '/' .. name)
    end
    pause()
  end
  return paths
end

--- Learns the lines of sensitive files in a command's directory, such as `.env`, so that they are redacted from its
--- output. Runs in a coroutine.
---@param ctx mcp-tools.Ctx|mcp-tools.Task
---@param directory string
function M.learn(ctx, directory)
  for _, path in ipairs(sensitive_in(ctx, directory)) do
    local stat = uv.fs_stat(path)
    local changed_at = stat and stat.type == 'file' and stat.mtime.sec * 1e9 + stat.mtime.nsec
    if changed_at and learned[path] ~= changed_at then
      learned[path] = changed_at
      local text = read.await(ctx, path, MAX_FILE, read.any)
      redact.learn(vim.split(text or '', '\r?\n'))
    end
  end
end

return M

--- Redacts secrets in text that belongs to no file, such as messages, before it leaves the editor: lines of sensitive
--- buffers (also of deleted ones), tokens, and values with secret names.

local access = require('mcp-tools.privacy.access')
local log = require('mcp-tools.log')
local secrets = require('mcp-tools.util.secrets')
local trim = require('mcp-tools.util.trim')

local api = vim.api

local M = {}

local MARK = secrets.MARK

-- Lines of sensitive buffers ------------------------------------------------------------------------------------------

--- Minimum length; shorter lines are common words.
local MIN = 6
--- Maximum length; the rest of a longer line is redacted too.
local MAX = 200
--- Number of bytes of a line searched between two pauses: each byte may be compared with pieces of `MAX` lengths.
local STRETCH = 1024
--- Maximum number of lines per buffer, and of pieces in all; the oldest are dropped first.
local MAX_LINES, MAX_PIECES = 500, 50000

---@class mcp-tools.SensitiveStart pieces with the same first bytes
---@field pieces table<string, true>
---@field lengths integer[] longest first

---@type table<string, mcp-tools.SensitiveStart> by their first bytes
local starts = {}
--- Number of starts by their first three bytes (as one number): most positions of a text need no further look-up.
---@type table<integer, integer>
local heads = {}
---@type string[]
local order, oldest = {}, 1
---@type table<integer, integer> buffer → changedtick when its lines were learned
local learned = {}

---@param text string
---@param at integer
---@return integer
local function head(text, at)
  local a, b, c = text:byte(at, at + 2)
  return a * 0x10000 + b * 0x100 + c
end

---@param key string
---@param change integer
local function count(key, change)
  local number = head(key, 1)
  local sum = (heads[number] or 0) + change
  heads[number] = sum > 0 and sum or nil
end

---@param piece string
local function forget(piece)
  local start = starts[piece:sub(1, MIN)]
  if start then
    start.pieces[piece] = nil
    if not next(start.pieces) then
      starts[piece:sub(1, MIN)] = nil
      count(piece:sub(1, MIN), -1)
    end
  end
end

---@param text string
local function add(text)
  local piece = trim(text):sub(1, MAX)
  if #piece < MIN then
    return
  end
  local key = piece:sub(1, MIN)
  local start = starts[key]
  if not start then
    start = { pieces = {}, lengths = {} }
    starts[key] = start
    count(key, 1)
  elseif start.pieces[piece] then
    return
  end
  start.pieces[piece] = true
  if not vim.list_contains(start.lengths, #piece) then
    table.insert(start.lengths, #piece)
    table.sort(start.lengths, function(a, b)
      return a > b
    end)
  end
  order[#order + 1] = piece
  if #order - oldest + 1 > MAX_PIECES then
    forget(order[oldest])
    oldest = oldest + 1
    if oldest > MAX_PIECES then
      order, oldest = vim.list_slice(order, oldest), 1
    end
  end
end

---@param bufnr integer loaded
---@return boolean
local function is_sensitive(bufnr)
  local kind, name = access.buffer_kind(bufnr)
  return access.is_marked(bufnr) or access.is_sensitive_name(name, kind)
end

--- Adds lines to redact: of a buffer or of a file that a command may print.
---@param lines string[]
function M.learn(lines)
  for i = 1, math.min(#lines, MAX_LINES) do
    add(lines[i])
    add(lines[i]:match('[:=]%s*["\']?([^"\']+)') or '')
  end
end

--- Learns the lines of a buffer if it is sensitive and has changed.
---@param bufnr integer
local function learn_buffer(bufnr)
  if not api.nvim_buf_is_loaded(bufnr) then
    return
  end
  local tick = api.nvim_buf_get_changedtick(bufnr)
  if learned[bufnr] == tick or not is_sensitive(bufnr) then
    return
  end
  learned[bufnr] = tick
  M.learn(api.nvim_buf_get_lines(bufnr, 0, MAX_LINES, false))
end

local watching = false

--- Starts to learn lines before their buffer is deleted.
function M.watch()
  if watching then
    return
  end
  watching = true
  api.nvim_create_autocmd({ 'BufReadPost', 'BufWritePost', 'BufUnload' }, {
    group = api.nvim_create_augroup('mcp-tools.sensitive_lines', {}),
    desc = 'mcp-tools: remember the lines of sensitive buffers',
    callback = function(args)
      if vim.v.exiting == vim.NIL then
        learn_buffer(args.buf)
      end
      if args.event == 'BufUnload' then
        learned[args.buf] = nil
      end
    end,
  })
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    learn_buffer(bufnr)
  end
end

--- Learns the current lines of all sensitive buffers.
---@param pause fun() called between pieces of work
function M.refresh(pause)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    learn_buffer(bufnr)
    pause()
  end
end

--- Returns the length of the piece at a position of a line.
---@param line string
---@param at integer
---@return integer? length
local function piece_at(line, at)
  local start = starts[line:sub(at, at + MIN - 1)]
  for _, length in ipairs(start and start.lengths or {}) do
    if start.pieces[line:sub(at, at + length - 1)] then
      return length
    end
  end
end

--- Replaces ranges of a text by the mark.
---@param text string
---@param ranges integer[] for each range its first byte and the byte after it
---@return string
local function masked(text, ranges)
  if #ranges == 0 then
    return text
  end
  local out, done = {}, 1
  for i = 1, #ranges, 2 do
    out[i], out[i + 1] = text:sub(done, ranges[i] - 1), MARK
    done = ranges[i + 1]
  end
  return table.concat(out) .. text:sub(done)
end

--- Redacts the sensitive pieces in a line.
---@param line string
---@param pause? fun() called between pieces of work
---@return string
local function strip(line, pause)
  if next(starts) == nil then
    return line
  end
  local ranges, at, next_pause = {}, 1, STRETCH
  while at <= #line - MIN + 1 do
    if at > next_pause then
      next_pause = at + STRETCH
      if pause then
        pause()
      end
    end
    local length = heads[head(line, at)] and piece_at(line, at)
    if length then
      ranges[#ranges + 1] = at
      at = length == MAX and #line + 1 or at + length
      ranges[#ranges + 1] = at
    else
      at = at + 1
    end
  end
  return masked(line, ranges)
end

-- Texts ---------------------------------------------------------------------------------------------------------------

--- Parts of names whose values are secrets.
local NAMES = vim.split(
  'password passwd passphrase passcode secret token apikey accesskey accountkey authkey privatekey credential',
  ' '
)

--- Returns whether a name suggests that its value is a secret.
---@param name string
---@return boolean
function M.is_secret_name(name)
  local plain = name:lower():gsub('[_%-%.]', '')
  for _, word in ipairs(NAMES) do
    if plain:find(word, 1, true) then
      return true
    end
  end
  return false
end

--- `name = value`, `name: value`, with or without quotes.
local NAMED = '%f[%w_.-]([%w_.-]+)["\']?%s*[:=]+%s*()'
--- A quoted value, an unclosed one, or a word.
local VALUES = { '^"()[^"]*()"', "^'()[^']*()'", '^["\']()%S*()', '^()[^%s,;"\']+()' }

---@param line string
---@return string
local function assignments(line)
  local ranges = {}
  local _, _, name, at = line:find(NAMED) ---@type any, any, string, integer?
  while at do
    for _, value in ipairs(M.is_secret_name(name) and VALUES or {}) do
      local from, to = line:match(value, at)
      if from then
        if to > from then
          ranges[#ranges + 1], ranges[#ranges + 2] = from, to
          at = to
        end
        break
      end
    end
    _, _, name, at = line:find(NAMED, at)
  end
  return masked(line, ranges)
end

--- Redacts a line. Lines of sensitive buffers are known as of the last `refresh`.
---@param line string
---@param pause? fun() called between pieces of work
---@return string
function M.line(line, pause)
  line = secrets.tokens(strip(line, pause))
  if pause then
    pause()
  end
  return assignments(line)
end

--- Redacts text of a readable file; assignments are kept, as in the file.
---@param text string
---@param pause? fun() called between pieces of work
---@return string
function M.quoted(text, pause)
  return secrets.tokens(strip(text, pause))
end

local function no_pause() end

--- Redacts a text.
---@param text string
---@param pause? fun() called between pieces of work
---@return string
function M.text(text, pause)
  pause = pause or no_pause
  text = log.strip(text, MARK)
  M.refresh(pause)
  local lines = secrets.without_keys(vim.split(text, '\n', { plain = true }))
  for i, line in ipairs(lines) do
    lines[i] = M.line(line, pause)
    pause()
  end
  return table.concat(lines, '\n')
end

return M

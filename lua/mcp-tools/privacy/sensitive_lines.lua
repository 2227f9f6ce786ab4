--- Lines of sensitive buffers, also of those that are gone: messages and lists quote them for as long as they live.

local buffer_kind = require('mcp-tools.privacy.buffer_kind')
local trim = require('mcp-tools.util.trim')

local api = vim.api

local M = {}

--- Shorter ones are words that stand anywhere.
local MIN = 6
--- What follows in the same line is left out, too.
local MAX = 200
--- Bytes of a line that are looked through in one go.
local STRETCH = 64 * 1024
--- Lines of each buffer that are looked for, and pieces that are remembered; the oldest give way.
local MAX_LINES, MAX_PIECES = 500, 50000

---@class mcp-tools.GuardedStart pieces that begin with the same bytes
---@field pieces table<string, true>
---@field lengths integer[] longest first

---@type table<string, mcp-tools.GuardedStart> by their first bytes
local starts = {}
--- How many of them begin with the same three bytes, by those as one number: no string is made for most places.
---@type table<integer, integer>
local heads = {}
---@type string[]
local order, oldest = {}, 1
---@type table<integer, integer> buffer → changedtick when its lines were taken
local taken = {}

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
  local kind, name = buffer_kind.kind(bufnr)
  return buffer_kind.is_marked(bufnr) or buffer_kind.is_sensitive_name(name, kind)
end

--- Lines that are to be left out from now on: of a buffer, or of a file that a program may print.
---@param lines string[]
function M.learn(lines)
  for i = 1, math.min(#lines, MAX_LINES) do
    add(lines[i])
    add(lines[i]:match('[:=]%s*["\']?([^"\']+)') or '')
  end
end

--- Takes the lines of a buffer, if it is a sensitive one and they are new.
---@param bufnr integer
local function take(bufnr)
  if not api.nvim_buf_is_loaded(bufnr) then
    return
  end
  local tick = api.nvim_buf_get_changedtick(bufnr)
  if taken[bufnr] == tick or not is_sensitive(bufnr) then
    return
  end
  taken[bufnr] = tick
  M.learn(api.nvim_buf_get_lines(bufnr, 0, MAX_LINES, false))
end

local watching = false

--- From now on lines are known before their buffer goes.
function M.watch()
  if watching then
    return
  end
  watching = true
  api.nvim_create_autocmd({ 'BufReadPost', 'BufWritePost', 'BufUnload' }, {
    group = api.nvim_create_augroup('mcp-tools.guarded', {}),
    desc = 'mcp-tools: lines of sensitive buffers are known when their buffer is gone',
    callback = function(args)
      if vim.v.exiting == vim.NIL then
        take(args.buf)
      end
      if args.event == 'BufUnload' then
        taken[args.buf] = nil
      end
    end,
  })
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    take(bufnr)
  end
end

--- Takes the lines of all sensitive buffers as they are now.
---@param pause fun() called between pieces of work
function M.refresh(pause)
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    take(bufnr)
    pause()
  end
end

--- The piece that stands at a place of a line.
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

--- A line of text without those lines.
---@param line string
---@param mark string
---@param pause? fun() called between pieces of work
---@return string
function M.strip(line, mark, pause)
  if next(starts) == nil then
    return line
  end
  local out, done, at, next_pause = nil, 1, 1, STRETCH
  while at <= #line - MIN + 1 do
    if at > next_pause then
      next_pause = at + STRETCH
      if pause then
        pause()
      end
    end
    local length = heads[head(line, at)] and piece_at(line, at)
    if length then
      out = out or {}
      out[#out + 1] = line:sub(done, at - 1)
      out[#out + 1] = mark
      at = length == MAX and #line + 1 or at + length
      done = at
    else
      at = at + 1
    end
  end
  if not out then
    return line
  end
  out[#out + 1] = line:sub(done)
  return table.concat(out)
end

return M

--- Lines appended to a file that does not grow without end: a full one is moved aside, and one such is kept.
---
--- Several editors write the same file: it is opened anew for every batch, so nobody goes on writing to a file that
--- another one has moved away.

local time_slice = require('mcp-tools.util.time_slice')

local uv = vim.uv

local M = {}

local OWNER_ONLY = tonumber('600', 8)
local OWNER_ONLY_DIR = tonumber('700', 8)

--- ms that lines wait for company, and how many at most: a batch costs three file operations however long it is.
local BATCH_MS, BATCH_LINES = 200, 256
--- Lines that wait to be made into text: what they are made of may be large, and a call may have to wait for them.
local SLICE = 8
--- A lock of this age was left by an editor that died.
local STALE_SECONDS = 10

---@class mcp-tools.RotatingFile
---@field path fun(): string
---@field max_bytes integer
---@field queue (string|fun(pause: fun()): string)[] not yet in the file
---@field private made integer how many of these are text
---@field private making boolean? the others are being made
---@field private make_scheduled boolean?
---@field private writes boolean? they are written once they are made
---@field private waiting fun()[] called when all are in the file
---@field failed string? why the last batch could not be written
---@field private scheduled boolean? the next batch is written in a moment
---@field private leave_watched boolean?
local RotatingFile = {}
RotatingFile.__index = RotatingFile

--- Makes one.
---@param opts { path: (fun(): string), max_bytes: integer }
---@return mcp-tools.RotatingFile
function M.new(opts)
  local self = { path = opts.path, max_bytes = opts.max_bytes, queue = {}, made = 0, waiting = {} }
  return setmetatable(self, RotatingFile)
end

--- Moves the full file aside. Another editor may have just done so: a rename without a look under a lock would put its
--- new file in place of all the lines before. While another one has the lock, this one appends.
---@param is_full fun(): boolean
function RotatingFile:rotate(is_full)
  local target = self.path()
  local lock = target .. '.lock'
  local fd = uv.fs_open(lock, 'wx', OWNER_ONLY)
  local stat = not fd and uv.fs_stat(lock)
  if fd then
    uv.fs_close(fd)
    if is_full() then
      uv.fs_rename(target, target .. '.1')
    end
    uv.fs_unlink(lock)
  elseif stat and math.abs(uv.gettimeofday() - stat.mtime.sec) > STALE_SECONDS then
    uv.fs_unlink(lock) -- the next batch rotates
  end
end

--- Appends what is queued, which is made.
function RotatingFile:append()
  local text, target = table.concat(self.queue, '\n') .. '\n', self.path()
  self.queue, self.made = {}, 0
  local function is_full()
    local stat = uv.fs_stat(target)
    return stat ~= nil and stat.size > 0 and stat.size + #text > self.max_bytes
  end
  if is_full() then
    self:rotate(is_full)
  end
  local folder = vim.fs.dirname(target)
  if not uv.fs_stat(folder) then
    pcall(vim.fn.mkdir, folder, 'p', OWNER_ONLY_DIR)
  end
  local fd, err = uv.fs_open(target, 'a', OWNER_ONLY)
  if fd then
    err = select(2, uv.fs_write(fd, text, -1))
    uv.fs_close(fd)
  end
  self.failed = err
end

--- Writes what is queued, which is made, and tells who waits for it.
function RotatingFile:write()
  if #self.queue > 0 then
    self:append()
  end
  local waiting = self.waiting
  self.waiting = {}
  for _, go_on in ipairs(waiting) do
    go_on()
  end
end

---@param line string|fun(pause: fun()): string
---@param pause fun()
---@return string
local function text_of(line, pause)
  if type(line) == 'string' then
    return line
  end
  local ok, text = pcall(line, pause)
  return ok and text or 'a line that could not be made: ' .. tostring(text):gsub('%c', ' ')
end

--- Makes what is queued into text; writes a whole batch.
---@param now? boolean in one go, before this returns
function RotatingFile:make(now)
  if self.making and not now then
    return -- that takes all that is queued
  end
  self.making = true
  time_slice.run(function(pause)
    while self.made < #self.queue do
      local queue, n = self.queue, self.made + 1
      local text = text_of(queue[n], pause)
      if self.queue ~= queue then
        return -- the editor ends: they were made at once, meanwhile
      end
      queue[n], self.made = text, n
      pause()
    end
    self.making = false
    if self.writes or #self.queue >= BATCH_LINES then
      self.writes = false
      self:write()
    end
  end, now)
end

--- Writes what is queued.
---@param now? boolean before this returns
function RotatingFile:flush(now)
  self.writes = true
  self:make(now)
end

--- What is still queued when the editor ends is written at once: a few lines, nothing else would run any more.
function RotatingFile:watch_leave()
  if self.leave_watched then
    return
  end
  self.leave_watched = true
  vim.api.nvim_create_autocmd('VimLeave', {
    group = vim.api.nvim_create_augroup('mcp-tools.append ' .. vim.fs.basename(self.path()), {}),
    callback = function()
      self:flush(true)
    end,
  })
end

--- Adds a line; also in fast callbacks.
---@param line string|fun(pause: fun()): string what is no string is called when the line is written, twice when the
---  editor ends meanwhile; what it throws is written instead
function RotatingFile:add(line)
  table.insert(self.queue, line)
  if not self.making and not self.make_scheduled and #self.queue - self.made >= SLICE then
    self.make_scheduled = true
    vim.schedule(function()
      self.make_scheduled = false
      self:make()
    end)
  end
  if not self.scheduled then
    self.scheduled = true
    vim.defer_fn(function()
      self.scheduled = false
      self:watch_leave()
      self:flush()
    end, BATCH_MS)
  end
end

---@param path string
---@param bytes integer
---@param done fun(lines: string[]?, err: string?)
local function read_end(path, bytes, done)
  uv.fs_open(path, 'r', 0, function(open_err, fd)
    if not fd then
      return done(nil, open_err)
    end
    uv.fs_fstat(fd, function(_, stat)
      local size = stat and stat.size or 0
      local offset = math.max(0, size - bytes)
      uv.fs_read(fd, bytes, offset, function(read_err, data)
        uv.fs_close(fd, function() end)
        if not data then
          return done(nil, read_err)
        end
        local lines = vim.split(data, '\n', { plain = true, trimempty = true })
        if offset > 0 and #lines > 1 then
          table.remove(lines, 1) -- the first one is cut
        end
        done(lines)
      end)
    end)
  end)
end

--- Reads the end of the file without blocking, with all lines that were added before.
---@param bytes integer
---@param cb fun(lines: string[]?, err: string?) on the main loop
function RotatingFile:tail(bytes, cb)
  table.insert(self.waiting, function()
    read_end(self.path(), bytes, vim.schedule_wrap(cb))
  end)
  self:flush()
end

return M

--- Lines appended to a file that does not grow without end.
---
--- Receives: lines, from the main loop and from fast callbacks.
--- Sends: them to one file, asynchronously; a full file is moved aside and one such is kept.
--- Does not know about: what a line says.
---
--- Several editors write the same file: it is opened anew for every batch, so nobody goes on writing to a file that
--- another one has moved away.

local time_slice = require('mcp-tools.util.time_slice')

local uv = vim.uv

local M = {}

local OWNER_ONLY = tonumber('600', 8)
local OWNER_ONLY_DIR = tonumber('700', 8)

-- A batch costs four file operations in other threads however long it is, so lines wait this long for company (ms) …
local BATCH_MS = 200
-- … but not more of them than this: what a batch takes of the main loop (0.1 ms) is what a call may have to wait for.
local BATCH_LINES = 64
-- A lock of this age was left by an editor that died.
local STALE_SECONDS = 10
-- Lines that wait to be made into text: what they are made of may be large.
local SLICE = 8

---@class mcp-tools.RotatingFile
---@field path fun(): string
---@field max_bytes integer
---@field queue (string|fun(pause: fun()): string)[] not yet handed to the file
---@field private made integer how many of these are text
---@field private making boolean? the others are being made
---@field private make_scheduled boolean? they will be in a moment
---@field private flush_scheduled boolean? a whole batch will be written in a moment
---@field private made_all fun()? called when all are
---@field failed string? why the last batch could not be written
---@field readers fun()[]? wait until everything is written
---@field private writing boolean? a batch is on its way
---@field private scheduled boolean? the next batch will go out in a moment
---@field private leave_watched boolean? what is queued at the end of the editor is written then
local RotatingFile = {}
RotatingFile.__index = RotatingFile

--- Makes one.
---@param opts { path: (fun(): string), max_bytes: integer }
---@return mcp-tools.RotatingFile
function M.new(opts)
  return setmetatable({ path = opts.path, max_bytes = opts.max_bytes, queue = {}, made = 0 }, RotatingFile)
end

---@param err? string
function RotatingFile:finish(err)
  self.failed = err
  self.writing = false
  local readers = self.readers
  if #self.queue > 0 and readers then
    vim.schedule(function()
      self:flush()
    end)
  elseif #self.queue > 0 then
    self:flush_soon()
  elseif readers then
    self.readers = nil
    for _, read in ipairs(readers) do
      read()
    end
  end
end

---@param fd integer
---@param text string
function RotatingFile:write_and_close(fd, text)
  uv.fs_write(fd, text, -1, function(write_err)
    uv.fs_close(fd, function(close_err)
      self:finish(write_err or close_err)
    end)
  end)
end

--- Moves the full file aside. Another editor may have just done so: a rename without a look under a lock would put its
--- new file in place of all the lines before. While another one has the lock, this one appends.
---@param is_full fun(stat: uv.fs_stat.result?): boolean
---@param done fun()
function RotatingFile:rotate(is_full, done)
  local target = self.path()
  local lock = target .. '.lock'
  local function unlock()
    uv.fs_unlink(lock, done)
  end
  uv.fs_open(lock, 'wx', OWNER_ONLY, function(_, fd)
    if not fd then
      return uv.fs_stat(lock, function(_, stat)
        local is_stale = stat and math.abs(uv.gettimeofday() - stat.mtime.sec) > STALE_SECONDS
        return (is_stale and unlock or done)() -- the next batch rotates
      end)
    end
    uv.fs_close(fd, function()
      uv.fs_stat(target, function(_, stat)
        if is_full(stat) then
          uv.fs_rename(target, target .. '.1', unlock)
        else
          unlock()
        end
      end)
    end)
  end)
end

--- Appends `text`; rotates first when the file is full.
---@param text string
function RotatingFile:append(text)
  local target = self.path()
  local function is_full(stat)
    return stat ~= nil and stat.size > 0 and stat.size + #text > self.max_bytes
  end
  local function open()
    uv.fs_open(target, 'a', OWNER_ONLY, function(err, fd)
      if not fd then
        return self:finish(err)
      end
      self:write_and_close(fd, text)
    end)
  end
  uv.fs_stat(target, function(_, stat)
    if is_full(stat) then
      self:rotate(is_full, open)
    else
      open()
    end
  end)
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

--- Makes the lines that wait into text.
---@param now? boolean in one go, before this returns
---@param done? fun() when all are
function RotatingFile:make(now, done)
  self.made_all = done or self.made_all
  if self.making and not now then
    return
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
    local told = self.made_all
    self.made_all = nil
    if told then
      told()
    end
  end, now)
end

--- The same in a moment, once there are some.
function RotatingFile:make_soon()
  if self.making or self.make_scheduled or #self.queue - self.made < SLICE then
    return
  end
  self.make_scheduled = true
  vim.schedule(function()
    self.make_scheduled = false
    self:make()
  end)
end

--- The lines that were made, as text; they wait no longer.
---@return string
function RotatingFile:take()
  local lines = self.queue
  self.queue, self.made = {}, 0
  return table.concat(lines, '\n') .. '\n'
end

---@return boolean made
---@return string? err
function RotatingFile:make_folder()
  local folder = vim.fs.dirname(self.path())
  if uv.fs_stat(folder) then
    return true
  end
  return pcall(vim.fn.mkdir, folder, 'p', OWNER_ONLY_DIR)
end

function RotatingFile:flush()
  if self.writing or #self.queue == 0 then
    return
  end
  self.writing = true
  self:make(false, function()
    local text = self:take()
    local made, err = self:make_folder()
    if made then
      self:append(text)
    else
      self:finish(err)
    end
  end)
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
      local fd = #self.queue > 0 and self:make_folder() and uv.fs_open(self.path(), 'a', OWNER_ONLY)
      if fd then
        self.made_all = nil
        self:make(true)
        uv.fs_write(fd, self:take(), -1)
        uv.fs_close(fd)
      end
    end,
  })
end

--- Writes what is queued in a moment; at once when that is a whole batch.
function RotatingFile:flush_soon()
  if #self.queue >= BATCH_LINES and not self.writing then
    if not self.flush_scheduled then
      self.flush_scheduled = true
      vim.schedule(function()
        self.flush_scheduled = false
        self:flush()
      end)
    end
    return
  elseif self.scheduled then
    return
  end
  self.scheduled = true
  vim.defer_fn(function()
    self.scheduled = false
    self:watch_leave()
    self:flush()
  end, BATCH_MS)
end

--- Adds a line.
---@param line string|fun(pause: fun()): string what is no string is called when the line is written, twice when the
---  editor ends meanwhile; what it throws stands in its place
function RotatingFile:add(line)
  table.insert(self.queue, line)
  self:make_soon()
  self:flush_soon()
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
  local path, done = self.path(), vim.schedule_wrap(cb)
  self:flush()
  if self.writing then
    self.readers = self.readers or {}
    table.insert(self.readers, function()
      read_end(path, bytes, done)
    end)
  else
    read_end(path, bytes, done)
  end
end

return M

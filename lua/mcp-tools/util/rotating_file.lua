--- Appends lines to a file of bounded size: a full file is renamed, and one old file is kept.
---
--- Several Neovim instances write the same file, so it is opened for every batch: none keeps writing to a file that
--- another one has renamed.

local lock_file = require('mcp-tools.util.lock')
local time_slice = require('mcp-tools.util.time_slice')

local uv = vim.uv

local M = {}

local OWNER_ONLY = tonumber('600', 8)
local OWNER_ONLY_DIR = tonumber('700', 8)

--- Delay of a batch in ms: a batch of any size costs three file operations.
local BATCH_MS = 200

---@class mcp-tools.RotatingFile
---@field path fun(): string
---@field max_bytes integer
---@field queue (string|fun(pause: fun()): string)[] not yet in the file
---@field private formatting boolean? the queue is being formatted and will be written
---@field private waiting fun()[] called when everything is written
---@field failed string? why the last batch could not be written
---@field private scheduled boolean? the next batch is written in a moment
---@field private leave_watched boolean?
local RotatingFile = {}
RotatingFile.__index = RotatingFile

--- Creates a rotating file.
---@param opts { path: (fun(): string), max_bytes: integer }
---@return mcp-tools.RotatingFile
function M.new(opts)
  local self = { path = opts.path, max_bytes = opts.max_bytes, queue = {}, waiting = {} }
  return setmetatable(self, RotatingFile)
end

--- Renames the full file. Another Neovim may just have done so: without a check under a lock, its new file would
--- replace all earlier lines. While another one holds the lock, this one appends.
---@param is_full fun(): boolean
function RotatingFile:rotate(is_full)
  local target = self.path()
  local lock = lock_file.take(target .. '.lock')
  if lock then
    if is_full() and lock:is_held() then
      uv.fs_rename(target, target .. '.1')
    end
    lock:release()
  end
end

---@param text string
function RotatingFile:append(text)
  local target = self.path()
  local function is_full()
    local stat = uv.fs_stat(target)
    return stat ~= nil and stat.size > 0 and stat.size + #text > self.max_bytes
  end
  if is_full() then
    self:rotate(is_full)
  end
  local directory = vim.fs.dirname(target)
  if not uv.fs_stat(directory) then
    pcall(vim.fn.mkdir, directory, 'p', OWNER_ONLY_DIR)
  end
  local fd, err = uv.fs_open(target, 'a', OWNER_ONLY)
  if fd then
    err = select(2, uv.fs_write(fd, text, -1))
    uv.fs_close(fd)
  end
  self.failed = err
end

---@param line string|fun(pause: fun()): string
---@param pause fun()
---@return string
local function text_of(line, pause)
  if type(line) == 'string' then
    return line
  end
  local ok, text = pcall(line, pause)
  return ok and text or 'cannot format a line: ' .. tostring(text):gsub('%c', ' ')
end

--- Formats and writes the queue, then calls the waiting callbacks.
---@param now? boolean before this returns
function RotatingFile:flush(now)
  if self.formatting and not now then
    return -- it writes the whole queue
  end
  self.formatting = true
  time_slice.run(function(pause)
    local queue, texts = self.queue, {}
    while #texts < #queue do
      texts[#texts + 1] = text_of(queue[#texts + 1], pause)
      if self.queue ~= queue then
        return -- Neovim is exiting and has written them synchronously
      end
      pause()
    end
    self.queue, self.formatting = {}, false
    if #texts > 0 then
      self:append(table.concat(texts, '\n') .. '\n')
    end
    local waiting = self.waiting
    self.waiting = {}
    for _, go_on in ipairs(waiting) do
      go_on()
    end
  end, now)
end

--- Writes the queue synchronously when Neovim exits: nothing would run later.
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

--- Adds a line. May be called in fast callbacks.
---@param line string|fun(pause: fun()): string a function is called when the line is written, twice if Neovim exits
---  meanwhile; its error is written instead
function RotatingFile:add(line)
  table.insert(self.queue, line)
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
          table.remove(lines, 1) -- the first one is incomplete
        end
        done(lines)
      end)
    end)
  end)
end

--- Reads the end of the file asynchronously, including all lines added before.
---@param bytes integer
---@param cb fun(lines: string[]?, err: string?) on the main loop
function RotatingFile:tail(bytes, cb)
  table.insert(self.waiting, function()
    read_end(self.path(), bytes, vim.schedule_wrap(cb))
  end)
  self:flush()
end

return M

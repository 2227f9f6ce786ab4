--- Announcement: the discovery files that should lie there now, and those that do.
---
--- Receives: paths and texts that are wanted; the end of the editor.
--- Sends: files to the disk, one after the other, in the order in which they were wanted.
--- Does not know about: companions, roots, what an agent does with a file.
---
--- Another editor may have put its own in the place of ours, on a port that was ours before: that one stays.
---
--- What this editor has written stands in a record, so that the next editor takes away what this one leaves when it
--- is killed: it touches nothing that is not, to the byte, what the record says.

local discovery_files = require('mcp-tools.ide.discovery_files')
local log = require('mcp-tools.log')
local private_files = require('mcp-tools.files.private')
local project = require('mcp-tools.files.project')
local read_now = require('mcp-tools.files.read_now')
local task = require('mcp-tools.util.task')

local uv = vim.uv

local M = {}

---@type table<string, string> path → text; what is written may not lie there yet
local wanted, written = {}, {}
---@type table<string, string> path → text of files that lie there
local there = {}
---@type table<string, string> path → why it is not there
local faults = {}
---@type string[] paths of sockets, which go with the files
local sockets = {}
local at_work, ended = false, false

---@return string
local function folder()
  return vim.fs.joinpath(project.state_dir(), 'companions')
end

---@param pid integer
---@return string
local function record_of(pid)
  return vim.fs.joinpath(folder(), ('%d.json'):format(pid))
end

--- What is left when the editor is killed now.
---@param socket string of the editor
local function keep_record(socket)
  local record = { pid = uv.os_getpid(), boot = project.boot, files = {}, sockets = sockets }
  record.socket, record.mark = socket, discovery_files.mark(socket)
  for _, texts in ipairs({ written, wanted }) do
    for path, text in pairs(texts) do
      record.files[path] = record.files[path] or {}
      table.insert(record.files[path], vim.fn.sha256(text))
    end
  end
  for _, place in ipairs({ project.state_dir(), folder() }) do
    local ok, fault = private_files.ensure_dir(place)
    if not ok then
      return log.warn('what is written for companions is not recorded: %s', fault)
    end
  end
  local ok, fault = private_files.write(record_of(record.pid), record)
  if not ok then
    log.warn('what is written for companions is not recorded: %s', fault)
  end
end

--- The next file that is not as it should be.
---@return string? path
---@return string? text nil: it goes
local function due()
  for path in pairs(written) do
    if not wanted[path] then
      return path
    end
  end
  for path, text in vim.spairs(wanted) do
    if written[path] ~= text and not faults[path] then
      return path, text
    end
  end
end

---@param path string
---@param text string? that lies there
---@return boolean
local function is_ours(path, text)
  return text ~= nil and (text == written[path] or text == there[path])
end

---@param ctx mcp-tools.Task
local function work(ctx)
  local path, text = due()
  while path and not ended do
    if text then
      written[path] = text -- from now on it may lie there
      local ok, fault = discovery_files.write(ctx, path, text)
      if ended then
        uv.fs_unlink(path)
      elseif not ok then
        written[path], there[path], faults[path] = nil, nil, fault
        log.warn('agents cannot find this editor by %s: %s', path, fault)
      else
        there[path] = text
      end
    else
      if is_ours(path, discovery_files.read(ctx, path)) then
        discovery_files.remove(ctx, path)
      end
      written[path], there[path] = nil, nil
    end
    path, text = due()
  end
end

--- From now on these files lie there, and no others.
---@param files table<string, string> path → text
---@param opts { socket: string, sockets: string[] } of the editor; of the endpoints
function M.want(files, opts)
  if vim.deep_equal(files, wanted) and next(faults) == nil then
    return
  end
  wanted, faults, sockets, ended = files, {}, opts.sockets, false
  if next(wanted) == nil and next(written) == nil then
    return
  end
  keep_record(opts.socket)
  if at_work then
    return
  end
  at_work = true
  task.run({}, work, function(ok, err)
    at_work = false
    if not ok then
      log.error('discovery files: %s', err)
    elseif next(wanted) == nil and not ended then
      uv.fs_unlink(record_of(uv.os_getpid()))
    end
  end)
end

--- Takes all away at once: the editor ends. What is on its way to the disk may still get there; then the record stays,
--- and the next editor takes it away.
function M.remove_now()
  ended = true
  for path in pairs(written) do
    if is_ours(path, (read_now(path, discovery_files.MAX_BYTES))) then
      uv.fs_unlink(path)
    end
  end
  for _, path in ipairs(sockets) do
    uv.fs_unlink(path)
  end
  wanted, written, there, sockets = {}, {}, {}, {}
  if not at_work then
    uv.fs_unlink(record_of(uv.os_getpid()))
  end
end

--- Takes away what an editor that is gone has left.
---@param ctx mcp-tools.Task
---@param path string of its record
---@param record table
local function sweep_one(ctx, path, record)
  for file, sums in pairs(type(record.files) == 'table' and record.files or {}) do
    local text = discovery_files.read(ctx, file)
    if text and type(sums) == 'table' and vim.list_contains(sums, vim.fn.sha256(text)) and not wanted[file] then
      discovery_files.remove(ctx, file)
      log.info('removed what an editor that is gone had left: %s', file)
    end
  end
  -- Their paths have the process id; the bridge takes away itself what is in the place of its own.
  local theirs = record.pid ~= uv.os_getpid() and type(record.sockets) == 'table' and record.sockets or {}
  for _, socket in ipairs(theirs) do
    discovery_files.remove(ctx, socket)
  end
  discovery_files.remove(ctx, path)
end

--- Looks for what editors that are gone have left.
---@param cb? fun() when it is done
function M.sweep(cb)
  task.run({}, function(ctx)
    if private_files.fault(folder(), 'directory') then
      return -- not ours to believe
    end
    for _, name in ipairs(discovery_files.names(ctx, folder())) do
      local path = vim.fs.joinpath(folder(), name)
      local found = name:find('^%d+%.json$') and private_files.read(path)
      local record = found and found.value
      if record and type(record.pid) == 'number' then
        local is_earlier_self = record.pid == uv.os_getpid() and record.boot ~= project.boot
        local is_self = record.pid == uv.os_getpid() and not is_earlier_self
        if not is_self and (is_earlier_self or not discovery_files.is_alive(ctx, record)) then
          sweep_one(ctx, path, record)
        end
      end
    end
  end, function(ok, err)
    if not ok then
      log.error('what dead editors have left is not looked for: %s', err)
    end
    if cb then
      cb()
    end
  end)
end

--- Files that could not be written, and why.
---@return table<string, string>
function M.faults()
  return faults
end

--- Files that lie there as they should.
---@return string[]
function M.paths()
  local paths = vim.tbl_filter(function(path)
    return there[path] == wanted[path]
  end, vim.tbl_keys(there))
  table.sort(paths)
  return paths
end

return M

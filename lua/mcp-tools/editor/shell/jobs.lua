--- Jobs: commands that outlive the call that started them, until they are stopped or Neovim exits.

local background = require('mcp-tools.editor.process.background')
local output = require('mcp-tools.editor.process.output')
local process = require('mcp-tools.editor.process')

local M = {}

--- Maximum number of bytes of output kept per job, from its end.
local MAX_OUTPUT = 1024 * 1024
--- Jobs have no time limit, but a process needs one: 30 days in ms.
local FOREVER = 30 * 24 * 3600 * 1000

---@class mcp-tools.shell.Job: mcp-tools.process.Work
---@field command mcp-tools.shell.Command
---@field started_at integer seconds since the epoch
---@field bytes integer number of bytes of output so far
---@field result mcp-tools.process.Result? nil: still running
---@field private kept mcp-tools.process.Output
---@field private handle { kill: fun(self) }
local Job = {}
Job.__index = Job

--- Shared by all clients. Finished jobs can still be read.
local jobs = background.new({
  prefix = 'job',
  max_running = 16,
  max_ended = 32,
  busy = '%d jobs are already running; stop one (action stop) or ask the user to (:McpTools jobs)',
})

M.refusal, M.all, M.of, M.get, M.reason = jobs.refusal, jobs.all, jobs.of, jobs.get, jobs.reason

--- Returns the running jobs.
---@return mcp-tools.shell.Job[]
function M.running()
  return vim.tbl_filter(function(job)
    return job.result == nil
  end, M.all())
end

--- Starts a job.
---@param command mcp-tools.shell.Command
---@param owner mcp-tools.Owner
---@return mcp-tools.shell.Job?
---@return mcp-tools.Error? err
function M.start(command, owner)
  local job = setmetatable({
    command = command,
    started_at = os.time(),
    bytes = 0,
    kept = output.new(MAX_OUTPUT, 'tail'),
  }, Job)
  local err = jobs.add(job, owner)
  if err then
    return nil, err
  end
  job.handle = process.run(command.argv, {
    cwd = command.cwd,
    env = command.env,
    timeout = FOREVER,
    limit = MAX_OUTPUT,
    keep = 'tail',
    on_output = function(_, text)
      job.bytes = job.bytes + #text
      job.kept:add(text)
      background.notify(job)
    end,
  }, function(result)
    result.stdout, result.stderr = '', '' -- `kept` has both in order
    job.result = result
    jobs.finish(job)
  end)
  return job
end

---@class mcp-tools.shell.Piece
---@field text string whole lines if possible
---@field partial string? unfinished last line
---@field offset integer byte offset of `text`
---@field next_offset integer
---@field skipped integer? number of bytes before `text` that are no longer kept

--- Returns output from an offset, by default its end.
---@param since integer? byte offset
---@param max integer bytes
---@return mcp-tools.shell.Piece
function Job:read(since, max)
  local text = self.kept:text()
  local first = self.bytes - #text -- offset of the kept text
  local offset = math.min(math.max(since or self.bytes - max, first), self.bytes)
  local piece = text:sub(offset - first + 1, offset - first + max)
  local rest
  if not since and offset > first then -- begin with a whole line
    local head = piece:match('^[^\n]*\n') or ''
    piece, offset = piece:sub(#head + 1), offset + #head
  end
  local is_last = offset + #piece >= self.bytes
  if not (is_last and self.result) then
    local whole = piece:match('^.*\n')
    if whole or is_last then
      whole = whole or ''
      rest = is_last and piece:sub(#whole + 1) or ''
      piece = whole
    end
  end
  return {
    text = piece,
    partial = rest and rest ~= '' and rest or nil,
    offset = offset,
    next_offset = offset + #piece,
    skipped = since and offset > since and offset - since or nil,
  }
end

--- Kills the process group; listeners are notified when it has exited.
function Job:stop()
  self.handle:kill()
end

return M

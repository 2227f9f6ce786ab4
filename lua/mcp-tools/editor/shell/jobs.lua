--- Jobs: commands that go on when the call that started them has ended, until they are stopped or the editor ends.

local background = require('mcp-tools.editor.process.background')
local output = require('mcp-tools.editor.process.output')
local process = require('mcp-tools.editor.process')

local M = {}

--- Of each job so many bytes are kept, its last.
local MAX_OUTPUT = 1024 * 1024
--- Jobs have no time limit; a program needs one: 30 days.
local FOREVER = 30 * 24 * 3600 * 1000

---@class mcp-tools.shell.Job: mcp-tools.process.Work
---@field command mcp-tools.shell.Command
---@field started_at integer s
---@field bytes integer of output so far
---@field result mcp-tools.process.Result? when it has ended
---@field private kept mcp-tools.process.Output
---@field private handle { kill: fun(self) }
local Job = {}
Job.__index = Job

--- Of all clients together. Those that have ended can still be read.
local jobs = background.new({
  prefix = 'job',
  max_running = 16,
  max_ended = 32,
  busy = '%d jobs run already; stop one (action stop), or have the user stop one (:McpTools jobs)',
})

M.refusal, M.all, M.of, M.get = jobs.refusal, jobs.all, jobs.of, jobs.get

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
    result.stdout, result.stderr = '', '' -- both are kept, in the order in which they came
    job.result = result
    jobs.finish(job)
  end)
  return job
end

---@class mcp-tools.shell.Piece
---@field text string whole lines, as far as there are any
---@field partial string? the beginning of a line that is still being written
---@field offset integer of the text
---@field next_offset integer
---@field skipped integer? bytes before it that are not kept any more

--- Output from an offset on; the last of it when there is none.
---@param since integer? bytes
---@param max integer bytes
---@return mcp-tools.shell.Piece
function Job:read(since, max)
  local text = self.kept:text()
  local first = self.bytes - #text -- the offset of what is kept
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

--- Ends it with all that it started; the end is told as news.
function Job:stop()
  self.handle:kill()
end

return M

--- Jobs: programs that go on when the call that started them has ended, until they are stopped or the editor ends.
---
--- Receives: commands; who asks for which job.
--- Sends: jobs, their output from an offset on, their end.
--- Does not know about: arguments of tools, what output means.

local errors = require('mcp-tools.errors')
local output = require('mcp-tools.editor.process.output')
local owners = require('mcp-tools.util.owner')
local process = require('mcp-tools.editor.process')
local timer = require('mcp-tools.util.timer')

local M = {}

--- At a time, of all clients together.
M.MAX_RUNNING = 16
--- Of each job so many bytes are kept, its last.
local MAX_OUTPUT = 1024 * 1024
--- Jobs that have ended and can still be read.
local MAX_ENDED = 32
--- Jobs have no time limit; a program needs one: 30 days.
local FOREVER = 30 * 24 * 3600 * 1000

---@class mcp-tools.shell.Job
---@field id string
---@field owner mcp-tools.Owner
---@field command mcp-tools.shell.Command
---@field started_at integer s
---@field bytes integer of output so far
---@field result mcp-tools.process.Result? when it has ended
---@field private kept mcp-tools.process.Output
---@field private handle { kill: fun(self) }
---@field private listeners table<fun(), true>
local Job = {}
Job.__index = Job

---@type mcp-tools.shell.Job[] oldest first
local jobs = {}
local count = 0

---@return integer
local function running()
  local n = 0
  for _, job in ipairs(jobs) do
    n = n + (job.result and 0 or 1)
  end
  return n
end

--- The oldest of those that have ended give way.
local function forget()
  local ended = #jobs - running()
  for i = 1, #jobs do
    if ended <= MAX_ENDED then
      return
    elseif jobs[i] and jobs[i].result then
      table.remove(jobs, i)
      return forget()
    end
  end
end

---@param job mcp-tools.shell.Job
local function tell(job)
  for listener in pairs(vim.deepcopy(job.listeners)) do
    listener()
  end
end

--- Why no job can be started now.
---@return mcp-tools.Error?
function M.refusal()
  if running() >= M.MAX_RUNNING then
    local text = '%d jobs run already; stop one (action stop), or have the user stop one (:McpTools jobs)'
    return errors.new('busy', text:format(M.MAX_RUNNING))
  end
end

--- Starts a job.
---@param command mcp-tools.shell.Command
---@param owner mcp-tools.Owner
---@return mcp-tools.shell.Job?
---@return mcp-tools.Error? err
function M.start(command, owner)
  local err = M.refusal()
  if err then
    return nil, err
  end
  count = count + 1
  local job = setmetatable({
    id = 'job' .. count,
    owner = owner,
    command = command,
    started_at = os.time(),
    bytes = 0,
    kept = output.new(MAX_OUTPUT, 'tail'),
    listeners = {},
  }, Job)
  table.insert(jobs, job)
  job.handle = process.run(command.argv, {
    cwd = command.cwd,
    env = command.env,
    timeout = FOREVER,
    limit = MAX_OUTPUT,
    keep = 'tail',
    on_output = function(_, text)
      job.bytes = job.bytes + #text
      job.kept:add(text)
      tell(job)
    end,
  }, function(result)
    result.stdout, result.stderr = '', '' -- both are kept, in the order in which they came
    job.result = result
    tell(job)
    forget()
  end)
  return job
end

--- All jobs, of whoever has started them, oldest first.
---@return mcp-tools.shell.Job[]
function M.all()
  return vim.list_slice(jobs)
end

--- The jobs that a call may see, oldest first: those of its session, and of clients of the same name.
---@param call table a call or its ctx
---@return mcp-tools.shell.Job[]
function M.of(call)
  return vim.tbl_filter(function(job)
    return owners.is_related(job.owner, call)
  end, jobs)
end

--- One of them.
---@param call table a call or its ctx
---@param id string?
---@return mcp-tools.shell.Job?
function M.get(call, id)
  return vim.iter(M.of(call)):find(function(job)
    return job.id == id
  end)
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

--- Calls `cb` when there is news of the job or the time has passed; at once when it has ended.
---@param ms integer
---@param cb fun()
---@return fun() forget
function Job:on_news(ms, cb)
  local limit
  local function finish()
    self.listeners[finish] = nil
    if limit then
      limit:stop()
    end
    cb()
  end
  if self.result or ms == 0 then
    cb()
    return function() end
  end
  limit = timer.after(ms, finish)
  self.listeners[finish] = true
  return function()
    self.listeners[finish] = nil
    limit:stop()
  end
end

--- Ends it with all that it started; the end is told as news.
function Job:stop()
  self.handle:kill()
end

return M

--- One attached bridge or calling program: the listener of all its calls.

local json = require('mcp-tools.util.json')
local log = require('mcp-tools.log')
local utf8 = require('mcp-tools.util.utf8')

local uv = vim.uv

local M = {}

--- Maximum bytes of a reply in a `wake` event. A larger result is replaced by its size.
local WAKE_MAX = 64 * 1024
--- Maximum bytes of a log message, which is cut, and of a state, which is then sent only as a progress message.
local LOG_MAX = 64 * 1024
local CUT = '… (cut: %d of %d bytes)'
--- Progress messages per second that one call may send.
local PROGRESS_RATE = 20

---@class mcp-tools.Channel: mcp-tools.Listener
---@field id integer
---@field answering table<string, true> ids of calls that a verb handles now; its reply will have their state
---@field role 'bridge'|'client'|nil
---@field buckets table<string, { tokens: number, at: integer, waiting: boolean? }> token buckets for progress, by call
local Channel = {}
Channel.__index = Channel

--- Creates the listener for a channel.
---@param id integer its channel
---@return mcp-tools.Channel
function M.new(id)
  return setmetatable({ id = id, answering = {}, buckets = {} }, Channel)
end

--- Takes the state of another object for the same channel, after a second `hello`.
---@param before mcp-tools.Channel
function Channel:take_over(before)
  self.answering, self.buckets = before.answering, before.buckets
end

--- Sends an event. Does nothing if the channel is closed; rpc/channels.lua detects that.
---@return boolean sent
function Channel:emit(event, ...)
  local ok, err = pcall(vim.rpcnotify, self.id, event, ...)
  if not ok then
    log.debug('channel %d: %s could not be sent: %s', self.id, event, err)
  end
  return ok
end

--- Neovim writes this event at once, so it arrives even if the tool then blocks the main thread.
function Channel:started(call)
  self:emit('started', call.id, call.deadline)
end

--- Cuts a text and appends how much is left.
---@param text string
---@param max integer bytes
---@return string
local function shortened(text, max)
  if #text <= max then
    return text
  end
  return (utf8.cut(text, max):gsub('…$', '')) .. CUT:format(max, #text)
end

function Channel:log(call, level, data)
  local text, err = json.encode(data, 'data')
  text = text or json.encode(('(not shown: %s)'):format(err.message))
  if #text > LOG_MAX then
    text = json.encode(shortened(type(data) == 'string' and data or text, LOG_MAX))
  end
  self:emit('log', call.id, level, text)
end

--- Sends an intermediate state as a progress message. A state that is not a string is also sent as JSON.
function Channel:state(call, state)
  local last, text, value = call.latest, state, nil
  if type(state) ~= 'string' then
    value = json.encode(state, 'state')
    text = value or vim.inspect(state)
    value = value and #value <= LOG_MAX and value or nil
  end
  call:progress(last and last.done + 1 or 1, last and last.total, text, value)
end

--- Returns the state or result of a call: the reply to `execute` and `get_result`, also sent in `wake`.
---@param call mcp-tools.Call
---@param most? integer maximum bytes of a result; of a larger one only the size is returned
---@return table reply
function M.reply_of(call, most)
  local reply = { clock = uv.hrtime(), done = call:ended(), progress = call.latest }
  if not reply.done then
    -- `received`: the file that the question will show is still being read.
    reply.state = call.state == 'received' and 'waiting_approval' or call.state
    reply.inputs, reply.withdrawn = call.inputs, call.withdrawn
    reply.deadline = call.deadline
    if call.state == 'waiting_approval' then
      reply.deadline = call.answer_by
    end
    return reply
  end
  local outcome = call.outcome
  if outcome.error then
    local bound = call.definition and call.definition.output_schema and true or nil
    reply.result = { state = outcome.state, error = outcome.error, schema_bound = bound }
  else
    local payload = outcome.payload
    if most and payload.text and #payload.text > most then
      reply.size = #payload.text
      return reply
    end
    reply.result = { state = 'done', kind = payload.kind, text = payload.text, structured = payload.structured }
  end
  return reply
end

function Channel:wake(call)
  if self.answering[call.id] then
    return -- the reply will have it
  end
  local payload = call.outcome and call.outcome.payload
  local asked = not payload and call.inputs and call.inputs.json
  if asked and #asked > WAKE_MAX then
    self:emit('wake', call.id)
  else
    self:emit('wake', call.id, M.reply_of(call, WAKE_MAX))
  end
end

function Channel:done(call)
  if call.latest then -- assigning nil to a new key would grow the table
    self.buckets[call.id] = nil
  end
  self:wake(call)
end

Channel.inputs = Channel.wake

--- Sends progress at once while the call has tokens, otherwise the latest one when there is a token again.
function Channel:progress(call)
  local now = uv.hrtime()
  local bucket = self.buckets[call.id]
  if not bucket then
    bucket = { tokens = PROGRESS_RATE, at = now }
    self.buckets[call.id] = bucket
  end
  bucket.tokens = math.min(PROGRESS_RATE, bucket.tokens + (now - bucket.at) / 1e9 * PROGRESS_RATE)
  bucket.at = now
  if bucket.tokens >= 1 then
    bucket.tokens = bucket.tokens - 1
    self:emit('wake', call.id, M.reply_of(call))
  elseif not bucket.waiting then
    bucket.waiting = true
    vim.defer_fn(function()
      bucket.waiting = false
      if not call:ended() then
        self:progress(call)
      end
    end, math.ceil(1000 / PROGRESS_RATE))
  end
end

return M

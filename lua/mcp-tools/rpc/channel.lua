--- One attached bridge, or program that calls tools: the listener of every call that it makes.

local json = require('mcp-tools.util.json')
local log = require('mcp-tools.log')
local utf8 = require('mcp-tools.util.utf8')

local uv = vim.uv

local M = {}

--- A reply up to this size rides in the wake-up itself; of a larger result its size.
local WAKE_MAX = 64 * 1024
--- What a tool tells while it runs is no result: of a larger log message the beginning goes, of a state its text alone.
local LOG_MAX = 64 * 1024
local CUT = '… (cut: %d of %d bytes)'
--- Progress messages per second that one call may send.
local PROGRESS_RATE = 20

---@class mcp-tools.Channel: mcp-tools.Listener
---@field id integer
---@field answering table<string, true> calls inside a verb whose reply reports their outcome
---@field role 'bridge'|'client'|nil
---@field peers table<integer, table> clients that it has introduced, by their numbers
---@field buckets table<string, { tokens: number, at: integer, waiting: boolean? }> how much progress a call may show
local Channel = {}
Channel.__index = Channel

--- Makes the listener of a bridge.
---@param id integer its channel
---@return mcp-tools.Channel
function M.new(id)
  return setmetatable({ id = id, answering = {}, buckets = {}, peers = {} }, Channel)
end

--- Goes on for another one on the same channel, whose calls it is given.
---@param before mcp-tools.Channel
function Channel:take_over(before)
  self.answering, self.buckets, self.peers = before.answering, before.buckets, before.peers
end

--- Sends an event. Of a closed channel it goes unheard; rpc/channels.lua finds those.
---@return boolean sent
function Channel:emit(event, ...)
  local ok, err = pcall(vim.rpcnotify, self.id, event, ...)
  if not ok then
    log.debug('channel %d: %s did not go out: %s', self.id, event, err)
  end
  return ok
end

--- Sent before the tool runs: Neovim writes it at once, so it arrives even if the tool then blocks the main thread.
function Channel:started(call)
  self:emit('started', call.id, call.deadline)
end

--- The beginning of a text, and how much that is.
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

--- An intermediate state is progress with the state as its message; one that is no string goes along as it is, too.
function Channel:state(call, state)
  local last, text, value = call.latest, state, nil
  if type(state) ~= 'string' then
    value = json.encode(state, 'state')
    text = value or vim.inspect(state)
    value = value and #value <= LOG_MAX and value or nil
  end
  call:progress(last and last.done + 1 or 1, last and last.total, text, value)
end

--- What is known of a call, as it crosses: the answer to `execute` and `get_result`, and what rides in a wake-up.
---@param call mcp-tools.Call
---@param most? integer bytes; of a larger result only the size is told, until it is asked for without such a bound
---@return table reply
function M.reply_of(call, most)
  local reply = { clock = uv.hrtime(), done = call:ended(), progress = call.latest }
  if not reply.done then
    -- What a question is to show may still be read from the disk.
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
    return -- the reply to `execute` is about to say it
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
  if call.latest then -- a key without a value would take room
    self.buckets[call.id] = nil
  end
  self:wake(call)
end

Channel.inputs = Channel.wake

--- Progress goes out at once while the call has tokens, else when it has one again: the latest, not all of them.
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

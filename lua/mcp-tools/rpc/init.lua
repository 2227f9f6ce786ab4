--- The verbs that bridge processes call, and programs that only call or provide tools.
---
--- They call `nvim_exec_lua("return require('mcp-tools.rpc').<verb>(...)", args)` and nothing else. Replies are plain
--- values, and events follow. A `wake` event only makes the bridge poll at once, so a lost one does no harm. Times are
--- `vim.uv.hrtime`.

local channels = require('mcp-tools.rpc.channels')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local current = require('mcp-tools.bridge.current')
local inputs = require('mcp-tools.calls.inputs')
local json = require('mcp-tools.util.json')
local listing = require('mcp-tools.scope.listing')
local log = require('mcp-tools.log')
local project = require('mcp-tools.instances.project')
local mounted = require('mcp-tools.rpc.mounted')
local remote = require('mcp-tools.calls.remote')
local results = require('mcp-tools.calls.result')
local scope = require('mcp-tools.scope')
local settings = require('mcp-tools.rpc.settings')
local tool_search = require('mcp-tools.scope.tool_search')
local utf8 = require('mcp-tools.util.utf8')

local uv = vim.uv

local M = {}

--- Version of the verbs. Increment it for changes that an old bridge cannot work with.
M.PROTOCOL = 1

local attached = channels.attached

-- Events of calls -------------------------------------------------------------------------------------------------

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
local function reply_of(call, most)
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
    self:emit('wake', call.id, reply_of(call, WAKE_MAX))
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
    self:emit('wake', call.id, reply_of(call))
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

-- Verbs -----------------------------------------------------------------------------------------------------------

--- Detaches a channel at its own request.
M.lost = channels.lost

---@param id integer
---@return mcp-tools.Channel
local function channel_of(id)
  return attached[id] or error(('channel %s is not attached; say hello first'):format(tostring(id)))
end

--- Attaches a bridge or a program that only calls tools, which calls `lost` when it exits.
---@param id integer its channel
---@param info table `{ protocol, role, pid, port, wanted_port, port_holder, versions }`; a client has no ports
---@return table hello versions, settings, revisions, clock
function M.hello(id, info)
  if info.protocol ~= M.PROTOCOL then
    error(
      ('the plugin uses protocol %d, the bridge %s. Run :McpTools install, then :McpTools restart'):format(
        M.PROTOCOL,
        tostring(info.protocol)
      )
    )
  end
  local channel = attached[id] or setmetatable({ id = id, answering = {}, buckets = {} }, Channel)
  channel.role = info.role
  channels.attach(channel)
  local token, endpoints, hook_token ---@type string?, mcp-tools.agents.Endpoint[]?, string?
  if info.role == 'client' then
    channels.keep_watch() -- a client that was killed does not call `lost`
  else
    token = current.attached(id, info)
    endpoints = config.get('agents') and require('mcp-tools.agents').endpoints(id) or nil -- start-up cost
    hook_token = id == current.reported.channel and current.hook_token() or nil
    local mounts = package.loaded['mcp-tools.mounts'] -- start-up cost: loaded later, if needed
    if mounts then
      mounts.sync()
    end
  end
  local current_settings = settings.get()
  local parts = current_settings.preload and core.begin() or core.parts()
  return {
    protocol = M.PROTOCOL,
    boot = project.boot,
    clock = uv.hrtime(),
    revision = parts.registry.revisions,
    versions = { nvim = tostring(vim.version()), plugin = project.VERSION },
    token = token,
    endpoints = endpoints,
    hook_token = hook_token,
    settings = current_settings,
  }
end

local function report_unknown_names()
  require('mcp-tools.loading.report').notify_unknown(core.get().registry) -- start-up cost
end

--- Starts to watch for files that agents write outside of Neovim.
local function watch_disk_writes()
  vim.schedule(function()
    require('mcp-tools.editor.agents.disk_writes').start() -- start-up cost
  end)
end

--- Returns the definitions of a kind, as JSON for clients.
---@param kind mcp-tools.Kind
---@param revision? integer that the bridge has
---@param seen_by? { client: string, scope: mcp-tools.Scope? } for one client's scope (default: all definitions)
---@return { clock: integer, revision: integer, unchanged: true?, loading: true?, json: string? }
function M.list(kind, revision, seen_by)
  watch_disk_writes()
  current.client_connected()
  local parts, is_pending = core.begin()
  local view = seen_by and scope.view(seen_by.scope, seen_by.client) or nil
  if view and kind ~= 'tools' and not view.agent then
    view = nil
  end
  local latest = parts.registry.revisions[kind]
  if not latest then
    error(("unknown kind '%s'"):format(tostring(kind)))
  end
  local reply = { clock = uv.hrtime(), revision = latest }
  if is_pending(kind) and not (view and (view.agent or view.catalogue == 'search')) then
    reply.loading = true -- the bridge asks again soon
  elseif revision == latest then
    reply.unchanged = true
  else
    reply.json = listing.json(parts.registry, kind, config.get().tool_prefix, view, seen_by and seen_by.client)
    if kind == 'tools' and not is_pending(kind) then
      vim.schedule(report_unknown_names) -- plugins have most likely registered their tools by now
    end
  end
  return reply
end

M.instructions = settings.instructions

--- Decodes a value that was sent as JSON text, because it is nested too deeply for msgpack.
---@param value table|string|nil
---@return table?
local function decoded(value)
  if type(value) == 'string' then
    return vim.json.decode(value)
  end
  return value
end

--- Starts a call. If it ends synchronously, the reply has the result.
---@param name string
---@param args table|string
---@param opts { channel: integer, call_id: string, start_by: integer, timeout: integer, limit: integer?,
---  client: table?, session: string?, capabilities: (table|string)?, host: string?, kind: string?,
---  scope: mcp-tools.Scope?, most: integer? } `most`: see `get_result`
---@return table reply
function M.execute(name, args, opts)
  local channel, client = channel_of(opts.channel), opts.client
  if type(opts.host or '') ~= 'string' or type(opts.session or '') ~= 'string' then
    error('opts.host and opts.session must be strings')
  end
  args = decoded(args)
  if opts.scope and opts.scope.agent == 'lsp' then
    require('mcp-tools.agents.lsp').load(function() -- start-up cost
      return core.get().registry
    end)
  end
  local view = scope.view(opts.scope, client and client.name)
  local inner = view and view.catalogue == 'search' and tool_search.inner(core.registry(), name, args)
  local executor = core.for_call(opts.kind, inner or name).executor
  channel.answering[opts.call_id] = true
  local ok, call = pcall(executor.execute, executor, name, args, {
    id = opts.call_id,
    kind = opts.kind,
    host = opts.host or 'mcp',
    start_by = opts.start_by,
    timeout = opts.timeout,
    limit = opts.limit,
    -- A copy, because a tool may change it.
    client = client and { name = client.name, version = client.version },
    session = opts.session,
    capabilities = decoded(opts.capabilities),
    view = view,
    listener = channel,
    exact_args = true,
    keep = true,
  })
  channel.answering[opts.call_id] = nil
  if not ok then
    error(call, 0)
  end
  if not call:ended() then
    channels.keep_watch()
  end
  return reply_of(call, opts.most)
end

--- Returns the state or result of a call. The result is kept until acknowledged.
---@param id string
---@param _ integer? last progress that the bridge received
---@param most? integer bytes; for a larger result only the size is returned, so that the bridge fetches one at a time
---@return table reply
function M.get_result(id, _, most)
  local call = core.parts().executor:get(id)
  if call then
    return reply_of(call, most)
  end
  local text = ('unknown or expired task: %s'):format(tostring(id))
  return {
    clock = uv.hrtime(),
    done = true,
    result = { state = 'failed', error = { code = 'not_found', message = text } },
  }
end

--- Passes the client's answers to a call. Answers to a question that is not open are ignored.
---@param id string
---@param seq integer of the question
---@param text string `{"key": {"result": …} | {"error": {"code": …, "message": …}}, …}`
---@param most? integer see `get_result`
---@return table reply with `stale = true` if the answers were ignored
function M.answer(id, seq, text, most)
  local call = core.parts().executor:get(id)
  local channel = call and call.listener --[[@as mcp-tools.Channel?]]
  local answering = channel and channel.answering
  if not answering or call:ended() then
    return M.get_result(id, nil, most)
  end
  answering[id] = true
  local taken = inputs.answer(call, seq, text)
  answering[id] = nil
  local reply = reply_of(call, most)
  reply.stale = not taken or nil
  return reply
end

--- Cancels a call, or drops the result of one that has ended.
---@param id string
---@param reason string
function M.cancel_task(id, reason)
  local executor = core.parts().executor
  local cancelled = executor:cancel(id, reason or 'client')
  if not cancelled then
    executor:acknowledge({ id })
  end
  return { cancelled = cancelled }
end

--- Drops the results of these calls, which the bridge has received.
---@param ids string[]
function M.acknowledge(ids)
  core.parts().executor:acknowledge(ids)
end

--- Returns where a result has bytes that are not UTF-8.
---@param id string
---@return { path: string, message: string }
function M.explain(id)
  local call = core.parts().executor:get(id)
  local outcome = call and call.outcome
  local path = outcome and results.bad_bytes(results.value_of(outcome)) or 'result'
  return { path = path, message = ('%s: bytes that are not UTF-8'):format(path) }
end

--- Sends `updated(uri)` to the channel whenever the resource changes. Subscriptions are counted: each needs its own
--- `unsubscribe`.
---@param id integer
---@param uri string
---@return { clock: integer, error: mcp-tools.Error? }
function M.subscribe(id, uri)
  channel_of(id)
  local err = channels.subscriptions():subscribe(id, uri)
  if not err then
    channels.keep_watch()
  end
  return { clock = uv.hrtime(), error = err }
end

---@param id integer
---@param uri string
---@return { clock: integer, unsubscribed: boolean }
function M.unsubscribe(id, uri)
  return { clock = uv.hrtime(), unsubscribed = channels.subscriptions():unsubscribe(id, uri) }
end

--- Registers definitions that the caller runs itself, until it withdraws them or its channel closes. It receives calls
--- as `remote_call(call_id, { provider, kind, name }, args, info)`, `remote_cancel(call_id, reason)` and
--- `remote_answer(call_id, ask, …)`.
---@param id integer
---@param provider string
---@param definitions table[]|string a list, or its JSON text
---@param kind? mcp-tools.Kind default: tools
---@param piece? mcp-tools.DefinitionPiece if the list is sent in pieces
---@return { clock: integer, refused: string[] }
function M.provide(id, provider, definitions, kind, piece)
  channel_of(id)
  local reply = mounted.provide(id, provider, decoded(definitions) --[[@as table[] ]], kind, piece) --[[@as table]]
  channels.keep_watch()
  reply.clock = uv.hrtime()
  return reply --[[@as any]]
end

---@param id integer
---@param provider string
function M.withdraw(id, provider)
  mounted.withdraw(id, provider)
end

for _, verb in ipairs({ 'remote_result', 'remote_progress', 'remote_log', 'remote_ask' }) do
  --- A message about a call that the caller runs; see calls/remote.lua.
  M[verb] = function(...)
    remote.receive(verb, ...)
  end
end

--- A watched resource that the caller provides has changed.
---@param uri string
function M.remote_updated(uri)
  channels.updated(uri)
end

--- State of the bridge, for the user interface.
---@param kind 'listening'|'port_taken'|'endpoints'|'integrations'|'sessions'|'blocked'|'mount'
---@param data table
---@param id integer its channel
function M.report(kind, data, id)
  if kind == 'mount' then
    return require('mcp-tools.mounts').reported(id, data) -- start-up cost
  end
  current.report(kind, data, id)
end

--- A terminal agent has connected, has sent a notification outside of MCP, or has disconnected.
---@param event 'opened'|'notified'|'left'
---@param data { agent: string, session: string, client: string?, version: string?, method: string?,
---  params: string? }
---@param id integer the bridge's channel
function M.agent_event(event, data, id)
  if id == current.reported.channel and config.get('agents') then
    watch_disk_writes()
    require('mcp-tools.agents').handle(event, data) -- start-up cost
  end
end

--- Answers an event of an agent's hook. A late request changes nothing, since nobody waits for its answer.
---@param id string of the event
---@param event mcp-tools.hooks.Event
---@param start_by integer
---@param channel integer of the bridge
---@return { text: string?, pending: boolean? } pending: the event `hook(id, text)` follows
function M.hook(id, event, start_by, channel)
  if channel ~= current.reported.channel or not current.hook_token() or uv.hrtime() > start_by then
    return {}
  end
  watch_disk_writes()
  return require('mcp-tools.agents.hooks').handle(event, function(text) -- start-up cost
    current.send('hook', id, text or '')
  end)
end

return M

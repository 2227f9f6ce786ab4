--- The bridge's only way in: the verbs that it may call.
---
--- Receives: `nvim_exec_lua("return require('mcp-tools.rpc').<verb>(...)", args)` from bridge processes, and from
--- programs that only call or provide tools.
--- Sends: replies as plain values. What comes later than a reply is sent by rpc/channel.lua.
--- Does not know about: MCP, HTTP, what a tool does, how a lost channel is noticed (rpc/channels.lua).
---
--- A wake-up only makes the bridge's poll immediate; losing all of them loses nothing. Times are `vim.uv.hrtime`.

local Channel = require('mcp-tools.rpc.channel')
local channels = require('mcp-tools.rpc.channels')
local attachment = require('mcp-tools.bridge.attachment')
local catalogue = require('mcp-tools.scope.tool_search')
local validate = require('mcp-tools.util.validate')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local current = require('mcp-tools.bridge.current')
local inputs = require('mcp-tools.calls.inputs')
local listing = require('mcp-tools.scope.listing')
local project = require('mcp-tools.instances.project')
local provided = require('mcp-tools.rpc.mounted')
local remote = require('mcp-tools.calls.remote')
local results = require('mcp-tools.calls.result')
local scope = require('mcp-tools.scope')
local settings = require('mcp-tools.rpc.settings')

local uv = vim.uv

local M = {}

--- The version of these verbs. Raised when an old bridge could not work with them.
M.PROTOCOL = 1

local attached = channels.attached

--- A channel that says so itself is gone.
M.lost = channels.lost

---@param id integer
---@return mcp-tools.Channel
local function channel_of(id)
  return attached[id] or error(('channel %s is not attached; say hello first'):format(tostring(id)))
end

--- Attaches a bridge, or a program that only calls tools; that one says with `lost` that it goes.
---@param id integer its channel
---@param info table `{ protocol, role, pid, port, wanted_port, port_holder, versions }`, of a client without ports
---@return table hello versions, settings, revisions, clock
function M.hello(id, info)
  if info.protocol ~= M.PROTOCOL then
    error(
      ('this plugin speaks protocol %d, the bridge %s: run :McpTools install, then :McpTools restart'):format(
        M.PROTOCOL,
        tostring(info.protocol)
      )
    )
  end
  local channel = Channel.new(id)
  channel.role = info.role
  channels.attach(channel)
  local token, endpoints ---@type string?, mcp-tools.agents.Endpoint[]?
  if info.role == 'client' then
    channels.keep_watch() -- they come and go, and one that was killed has not said so
  else
    token = attachment.attached(id, info)
    endpoints = config.get('companions') and require('mcp-tools.agents').endpoints(id) or nil -- start-up cost
    local mounts = package.loaded['mcp-tools.mounts'] -- start-up cost: the first look loads it, where it has to
    if mounts then
      mounts.sync()
    end
  end
  return {
    protocol = M.PROTOCOL,
    boot = project.boot,
    clock = uv.hrtime(),
    revision = core.begin().registry.revisions,
    versions = { nvim = tostring(vim.version()), plugin = project.VERSION },
    token = token,
    scopes = true, -- one that is asked for is kept to: a bridge refuses to go without
    peers = true, -- what stays the same from call to call may be left out after the first
    endpoints = endpoints,
    settings = settings.get(),
  }
end

local function tell_unknown()
  require('mcp-tools.loading.report').tell_unknown(core.get().registry) -- start-up cost
end

--- An agent is there, and may write files by itself.
local function look_after_files()
  vim.schedule(function()
    require('mcp-tools.editor.agents.disk_writes').start() -- start-up cost
  end)
end

--- Definitions of a kind, as the JSON text that clients get.
---@param kind mcp-tools.Kind
---@param revision? integer the one that the bridge has
---@param seen_by? { client: string, scope: mcp-tools.Scope? } whose list it is; all of them when left out
---@return { clock: integer, revision: integer, unchanged: true?, loading: true?, json: string? }
function M.list(kind, revision, seen_by)
  look_after_files()
  attachment.client_connected()
  local parts, is_pending = core.begin()
  local view = seen_by and scope.view(seen_by.scope, seen_by.client) or nil
  if view and kind ~= 'tools' and not view.companion then
    view = nil
  end
  local now = parts.registry.revisions[kind]
  if not now then
    error(("unknown kind '%s'"):format(tostring(kind)))
  end
  local reply = { clock = uv.hrtime(), revision = now }
  if is_pending(kind) and not (view and (view.companion or view.catalogue == 'search')) then
    reply.loading = true -- to be asked again in a moment
  elseif revision == now then
    reply.unchanged = true
  else
    reply.json = listing.json(parts.registry, kind, config.get().tool_prefix, view)
    if kind == 'tools' and not is_pending(kind) then
      vim.schedule(tell_unknown) -- by now everybody has registered their tools, as far as can be known
    end
  end
  return reply
end

--- A value of the client: as it is, or as JSON text when it nests too deep for a message.
---@param value table|string|nil
---@return table?
local function unpacked(value)
  if type(value) == 'string' then
    return vim.json.decode(value)
  end
  return value
end

--- Whose call it is. What stays the same in the calls of one client comes with the first of them.
---@param channel mcp-tools.Channel
---@param opts table of `execute`
---@return table
local function caller(channel, opts)
  local peer, who = opts.peer, opts.who
  if not peer then
    who = opts
  elseif not who then
    return channel.peers[peer] or error(('nobody was introduced as %s'):format(tostring(peer)))
  end
  validate('opts.host', who.host, 'string', true)
  validate('opts.session', who.session, 'string', true)
  who.capabilities = unpacked(who.capabilities)
  if peer then
    channel.peers[peer] = who
  end
  return who
end

--- Runs a tool; a result that is there at once comes in the reply.
---@param name string
---@param args table|string
---@param opts { channel: integer, call_id: string, start_by: integer, timeout: integer, limit: integer?,
---  peer: integer?, who: table?, client: table?, session: string?, capabilities: (table|string)?, host: string?,
---  kind: string?,
---  ack: string[]?, scope: mcp-tools.Scope?, most: integer? } `most`: see `get_result`
---@return table reply
function M.execute(name, args, opts)
  local channel = channel_of(opts.channel)
  local who = caller(channel, opts)
  local client = who.client
  args = unpacked(args)
  local view = scope.view(who.scope, client and client.name)
  local inner = view and view.catalogue == 'search' and catalogue.inner(core.registry(), name, args)
  local executor = core.for_call(opts.kind, inner or name).executor
  if opts.ack then
    executor:acknowledge(opts.ack)
  end
  channel.answering[opts.call_id] = true
  local ok, call = pcall(executor.execute, executor, name, args, {
    id = opts.call_id,
    kind = opts.kind,
    host = who.host or 'mcp',
    start_by = opts.start_by,
    timeout = who.timeout,
    limit = opts.limit,
    -- A table of its own: a tool may write into what it is given.
    client = client and { name = client.name, version = client.version },
    session = who.session,
    capabilities = who.capabilities,
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
  return Channel.reply_of(call, who.most)
end

--- What a call has come to. Repeated until acknowledged.
---@param id string
---@param _ integer? the last progress that the bridge has seen
---@param most? integer bytes; of a larger result only the size is told: the bridge takes those one after the other
---@return table reply
function M.get_result(id, _, most)
  local call = core.begin().executor:get(id)
  if call then
    return Channel.reply_of(call, most)
  end
  local text = ('unknown or expired task: %s'):format(tostring(id))
  return {
    clock = uv.hrtime(),
    done = true,
    result = { state = 'failed', error = { code = 'not_found', message = text } },
  }
end

--- The client's answers to what a call waits for. Those to another question than the open one change nothing.
---@param id string
---@param seq integer of the question
---@param text string `{"key": {"result": …} | {"error": {"code": …, "message": …}}, …}`
---@param most? integer see `get_result`
---@return table reply with `stale = true` when nothing came of it
function M.answer(id, seq, text, most)
  local call = core.begin().executor:get(id)
  local answering = call and call.listener.answering
  if not answering or call:ended() then
    return M.get_result(id, nil, most)
  end
  answering[id] = true
  local taken = inputs.answer(call, seq, text)
  answering[id] = nil
  local reply = Channel.reply_of(call, most)
  reply.stale = not taken or nil
  return reply
end

--- Cancels a call; the tool's hooks run. Nobody waits for what came of one that has ended already.
---@param id string
---@param reason string
function M.cancel_task(id, reason)
  local executor = core.begin().executor
  local cancelled = executor:cancel(id, reason or 'client')
  if not cancelled then
    executor:acknowledge({ id })
  end
  return { cancelled = cancelled }
end

--- The results of these calls have arrived.
---@param ids string[]
function M.acknowledge(ids)
  core.begin().executor:acknowledge(ids)
end

--- Where in a result the bytes stand that are not UTF-8.
---@param id string
---@return { path: string, message: string }
function M.explain(id)
  local call = core.begin().executor:get(id)
  local outcome = call and call.outcome
  local path = outcome and results.bad_bytes(results.value_of(outcome)) or 'result'
  return { path = path, message = ('%s: bytes that are not UTF-8'):format(path) }
end

--- From now on the channel gets `updated(uri)` when the resource has changed. As often as it says so, it must
--- unsubscribe.
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

--- Offers what the caller runs itself, until it takes it back or its channel closes. Calls come to it as
--- `remote_call(call_id, { provider, kind, name }, args, info)`, `remote_cancel(call_id, reason)` and
--- `remote_answer(call_id, ask, …)`.
---@param id integer
---@param provider string
---@param definitions table[]|string a list, or JSON text of one
---@param kind? mcp-tools.Kind tools when left out
---@param piece? mcp-tools.Piece that these are of the list; all of it when left out
---@return { clock: integer, refused: string[] }
function M.provide(id, provider, definitions, kind, piece)
  channel_of(id)
  local reply = provided.provide(id, provider, unpacked(definitions) --[[@as table[] ]], kind, piece)
  channels.keep_watch()
  reply.clock = uv.hrtime()
  return reply
end

---@param id integer
---@param provider string
function M.withdraw(id, provider)
  provided.withdraw(id, provider)
end

for _, verb in ipairs({ 'remote_result', 'remote_progress', 'remote_log', 'remote_ask' }) do
  --- What a process tells of a call that it runs; see calls/remote.lua.
  M[verb] = function(...)
    remote.receive(verb, ...)
  end
end

--- A resource that the caller provides, and was told to watch, has changed.
---@param uri string
function M.remote_updated(uri)
  channels.updated(uri)
end

--- News from the bridge, for people.
---@param kind 'listening'|'sessions'|'blocked'|'doors'|'mount'
---@param data table
---@param id integer its channel
function M.report(kind, data, id)
  if kind == 'mount' then
    return require('mcp-tools.mounts').reported(id, data) -- start-up cost
  end
  attachment.reported(kind, data, id)
end

--- The agent of a companion has come, has told something that MCP does not know, or is gone.
---@param event 'opened'|'notified'|'left'
---@param data { companion: string, session: string, client: string?, version: string?, method: string?,
---  params: string? }
---@param id integer the bridge's channel
function M.companion(event, data, id)
  if id == current.reported.channel and config.get('companions') then
    look_after_files()
    require('mcp-tools.agents').handle(event, data) -- start-up cost
  end
end

return M

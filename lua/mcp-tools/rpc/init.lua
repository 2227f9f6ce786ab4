--- The verbs that bridge processes call, and programs that only call or provide tools.
---
--- They call `nvim_exec_lua("return require('mcp-tools.rpc').<verb>(...)", args)` and nothing else. Replies are plain
--- values; rpc/channel.lua sends later events. A `wake` event only makes the bridge poll at once, so a lost one does
--- no harm. Times are `vim.uv.hrtime`.

local Channel = require('mcp-tools.rpc.channel')
local channels = require('mcp-tools.rpc.channels')
local validate = require('mcp-tools.util.validate')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local current = require('mcp-tools.bridge.current')
local inputs = require('mcp-tools.calls.inputs')
local listing = require('mcp-tools.scope.listing')
local project = require('mcp-tools.instances.project')
local mounted = require('mcp-tools.rpc.mounted')
local remote = require('mcp-tools.calls.remote')
local results = require('mcp-tools.calls.result')
local scope = require('mcp-tools.scope')
local settings = require('mcp-tools.rpc.settings')
local tool_search = require('mcp-tools.scope.tool_search')

local uv = vim.uv

local M = {}

--- Version of the verbs. Increment it for changes that an old bridge cannot work with.
M.PROTOCOL = 1

local attached = channels.attached

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
  local channel = Channel.new(id)
  channel.role = info.role
  channels.attach(channel)
  local token, endpoints ---@type string?, mcp-tools.agents.Endpoint[]?
  if info.role == 'client' then
    channels.keep_watch() -- a client that was killed does not call `lost`
  else
    token = current.attached(id, info)
    endpoints = config.get('agents') and require('mcp-tools.agents').endpoints(id) or nil -- start-up cost
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
  local now = parts.registry.revisions[kind]
  if not now then
    error(("unknown kind '%s'"):format(tostring(kind)))
  end
  local reply = { clock = uv.hrtime(), revision = now }
  if is_pending(kind) and not (view and (view.agent or view.catalogue == 'search')) then
    reply.loading = true -- the bridge asks again soon
  elseif revision == now then
    reply.unchanged = true
  else
    reply.json = listing.json(parts.registry, kind, config.get().tool_prefix, view)
    if kind == 'tools' and not is_pending(kind) then
      vim.schedule(report_unknown_names) -- plugins have most likely registered their tools by now
    end
  end
  return reply
end

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
---  client: table?, session: string?, capabilities: (table|string)?, host: string?, kind: string?, ack: string[]?,
---  scope: mcp-tools.Scope?, most: integer? } `most`: see `get_result`
---@return table reply
function M.execute(name, args, opts)
  local channel, client = channel_of(opts.channel), opts.client
  validate('opts.host', opts.host, 'string', true)
  validate('opts.session', opts.session, 'string', true)
  args = decoded(args)
  local view = scope.view(opts.scope, client and client.name)
  local inner = view and view.catalogue == 'search' and tool_search.inner(core.registry(), name, args)
  local executor = core.for_call(opts.kind, inner or name).executor
  if opts.ack then
    executor:acknowledge(opts.ack)
  end
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
  return Channel.reply_of(call, opts.most)
end

--- Returns the state or result of a call. The result is kept until acknowledged.
---@param id string
---@param _ integer? last progress that the bridge received
---@param most? integer bytes; for a larger result only the size is returned, so that the bridge fetches one at a time
---@return table reply
function M.get_result(id, _, most)
  local call = core.parts().executor:get(id)
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
  local reply = Channel.reply_of(call, most)
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

return M

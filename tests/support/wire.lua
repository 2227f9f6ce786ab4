-- Replaces the RPC verbs of the plugin in tests of the bridge.
local uv = vim.uv
local W = { calls = {}, seen = {}, settings = { limits = {}, tool_timeout = 5000 }, boot = 'boot-of-the-editor' }

local function reply(call)
  local out = { clock = uv.hrtime(), done = call.result ~= nil, result = call.result, progress = call.progress }
  if not call.result then
    out.state, out.deadline = 'running', call.deadline
  end
  return out
end

local function note(...) W.seen[#W.seen + 1] = { ... } end

function W.hello(channel, info)
  note('hello', info)
  if W.refuse then
    error(W.refuse)
  end
  W.channel = channel
  local token = info.port_holder == 'foreign' and 'new-token' or nil
  return {
    protocol = 1,
    boot = W.boot,
    clock = uv.hrtime(),
    revision = { tools = 3 },
    settings = W.settings,
    versions = { nvim = tostring(vim.version()), plugin = '0' },
    token = token,
    endpoints = W.endpoints,
  }
end

function W.list(kind, revision)
  if revision == 3 then
    return { clock = uv.hrtime(), revision = 3, unchanged = true }
  end
  return { clock = uv.hrtime(), revision = 3, json = vim.json.encode({ { name = 'nvim_echo', kind = kind } }) }
end

local tools = {}
function tools.echo(call, args) call.result = { state = 'done', kind = 'text', text = args.text } end
function tools.value(call) call.result = { state = 'done', kind = 'json', text = '{"n":1}', structured = true } end
function tools.fail(call)
  local errors = { { field = 'n', message = 'caf\233' } }
  call.result = { state = 'failed', error = { code = 'stale', message = 'no', errors = errors }, schema_bound = true }
end
function tools.later(call, args)
  vim.defer_fn(function()
    call.result = { state = 'done', kind = 'text', text = ('x'):rep(args.size) }
    vim.rpcnotify(W.channel, 'wake', call.id, args.size <= 65536 and reply(call) or nil)
  end, args.ms)
end
function tools.throw() error('secret path') end
function tools.forever() end

function W.execute(name, args, opts)
  note('execute', name, opts)
  local call = { id = opts.call_id, deadline = uv.hrtime() + opts.timeout * 1e6 }
  if uv.hrtime() > opts.start_by then
    call.result = { state = 'failed', error = { code = 'editor_blocked', message = 'too late' } }
    return reply(call)
  end
  W.calls[call.id] = call
  vim.rpcnotify(W.channel, 'started', call.id, call.deadline)
  tools[name](call, args)
  return reply(call)
end

function W.get_result(id) return reply(W.calls[id]) end

function W.explain() return { path = 'result', message = 'result: bytes that are not UTF-8' } end

for _, verb in ipairs({ 'cancel_task', 'acknowledge', 'report', 'agent_event' }) do
  W[verb] = function(...) note(verb, ...) end
end

function W.times(verb)
  return #vim.tbl_filter(function(entry) return entry[1] == verb end, W.seen)
end

package.loaded['mcp-tools.rpc'] = W

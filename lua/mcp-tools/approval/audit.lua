--- Audit log: the caller, decision and outcome of every call, one JSON object per line.

local canonical_json = require('mcp-tools.util.canonical_json')
local project = require('mcp-tools.instances.project')
local rotating_file = require('mcp-tools.util.rotating_file')
local utf8 = require('mcp-tools.util.utf8')

local uv = vim.uv
local PID = uv.os_getpid()

local M = {}

--- About thirty thousand calls. The previous file is kept, too.
local MAX_BYTES = 10 * 1024 * 1024
--- Characters of the hash of a session id. The id itself is a secret: with the token, it gives access to the session.
local ID_CHARS = 12

---@return string
function M.path()
  return vim.fs.joinpath(project.state_dir(), 'audit.jsonl')
end

local file = rotating_file.new({ path = M.path, max_bytes = MAX_BYTES })

--- Returns why the last lines could not be written.
---@return string?
function M.failure()
  return file.failed
end

---@param value any
---@return string? text
local function short_text(value)
  return type(value) == 'string' and utf8.repair(value:sub(1, 200)) or nil
end

---@param ms integer unix time
---@return string
local function time_of(ms)
  return ('%s.%03dZ'):format(os.date('!%Y-%m-%dT%H:%M:%S', math.floor(ms / 1000)), ms % 1000)
end

---@param from integer? ns
---@param to integer? ns
---@return number? ms
local function ms_between(from, to)
  return from and to and math.floor((to - from) / 1e4 + 0.5) / 100 or nil
end

--- Logs a call that has ended. Slow work is done when the editor is idle; the closure must not keep the call, whose
--- result may be large.
---@param call mcp-tools.Call
function M.record(call)
  local seconds, micros = uv.gettimeofday()
  local outcome, decision, client = call.outcome, call.decision, call.client
  local session, snapshot = call.session, call.snapshot
  local entry = {
    host = call.host,
    tool = call.name,
    decision = decision.allowed and 'allow' or 'deny',
    by = decision.by,
    outcome = outcome.state,
    code = outcome.error and outcome.error.code or nil,
    reason = not decision.allowed and outcome.error and outcome.error.message or nil,
    ms = ms_between(call.created_at, call.ended_at),
    waited_ms = ms_between(call.created_at, call.started_at),
    pid = PID,
    time = seconds * 1000 + math.floor(micros / 1000), ---@type integer|string
    client = client and client.name,
    client_version = client and client.version,
    project = call.project,
  }
  file:add(function(pause)
    local text = snapshot and canonical_json.text_of(snapshot, pause)
    pause()
    entry.time = time_of(entry.time --[[@as integer]])
    entry.session = session and vim.fn.sha256(session):sub(1, ID_CHARS) or nil
    for _, field in ipairs({ 'client', 'client_version', 'reason' }) do
      entry[field] = short_text(entry[field])
    end
    entry.args_sha256 = text and vim.fn.sha256(text) or nil
    return vim.json.encode(entry)
  end)
end

--- Reads the last entries.
---@param bytes integer
---@param cb fun(entries: table[]?, err: string?) on the main loop
function M.tail(bytes, cb)
  file:tail(bytes, function(lines, err)
    if not lines then
      return cb(nil, err)
    end
    local entries = {}
    for _, line in ipairs(lines) do
      local ok, entry = pcall(vim.json.decode, line)
      if ok and type(entry) == 'table' then
        table.insert(entries, entry)
      end
    end
    cb(entries)
  end)
end

return M

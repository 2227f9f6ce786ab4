--- Who called what, what was decided, what came of it: one JSON object a line, for people and their tools.
---
--- Receives: calls that were decided on, when they have ended.
--- Sends: lines to a file that is bounded like the log.
--- Does not know about: why something was decided. Arguments and results are not in it, only the hash of the arguments.

local append = require('mcp-tools.append')
local canonical = require('mcp-tools.canonical')

local uv = vim.uv
local PID = uv.os_getpid()

local M = {}

-- About thirty thousand calls; one file before it is kept.
local MAX_BYTES = 10 * 1024 * 1024
-- Of a session's id, which opens that session for whoever has the token: enough to tell sessions apart.
local ID_CHARS = 12

--- The file.
---@return string
function M.path()
  return vim.fs.joinpath(require('mcp-tools.bridge.identity').state_dir(), 'audit.jsonl')
end

local file = append.new({ path = M.path, max_bytes = MAX_BYTES })

--- Why the last lines could not be written.
---@return string?
function M.failure()
  return file.failed
end

---@param value any
---@return string? text a client may send anything
local function text_of(value)
  return type(value) == 'string' and require('mcp-tools.utf8').repair(value:sub(1, 200)) or nil
end

---@param seconds integer
---@param micros integer
local function time_of(seconds, micros)
  return os.date('!%Y-%m-%dT%H:%M:%S', seconds) .. ('.%03dZ'):format(math.floor(micros / 1000))
end

--- Notes a call that has ended. Hashing is left for when the editor is idle.
---@param call mcp-tools.Call
function M.record(call)
  local seconds, micros = uv.gettimeofday()
  local outcome, decision, snapshot = call.outcome, call.decision, call.snapshot
  local session, client, root = call.session, call.client or {}, call.project
  local entry = {
    host = call.host,
    tool = call.name,
    decision = decision.allowed and 'allow' or 'deny',
    by = decision.by,
    outcome = outcome.state,
    code = outcome.error and outcome.error.code or nil,
    ms = math.floor((call.ended_at - call.created_at) / 1e4 + 0.5) / 100,
    waited_ms = call.started_at and math.floor((call.started_at - call.created_at) / 1e4 + 0.5) / 100 or nil,
    pid = PID,
  }
  file:add(function()
    entry.time = time_of(seconds, micros)
    entry.session = session and vim.fn.sha256(session):sub(1, ID_CHARS) or nil
    entry.client = text_of(client.name)
    entry.client_version = text_of(client.version)
    entry.args_sha256 = snapshot and vim.fn.sha256(canonical.text_of(snapshot)) or nil
    entry.project = root
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

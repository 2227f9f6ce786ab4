--- Who called what, what was decided, what came of it: one JSON object a line, for people and their tools.
---
--- Receives: calls that were decided on, when they have ended.
--- Sends: lines to a file that is bounded like the log.
--- Does not know about: why something was decided. Arguments and results are not in it, only the hash of the arguments.

local rotating_file = require('mcp-tools.util.rotating_file')
local canonical_json = require('mcp-tools.util.canonical_json')
local project = require('mcp-tools.files.project')
local utf8 = require('mcp-tools.util.utf8')

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
  return vim.fs.joinpath(project.state_dir(), 'audit.jsonl')
end

local file = rotating_file.new({ path = M.path, max_bytes = MAX_BYTES })

--- Why the last lines could not be written.
---@return string?
function M.failure()
  return file.failed
end

---@param value any
---@return string? text a client may send anything
local function text_of(value)
  return type(value) == 'string' and utf8.repair(value:sub(1, 200)) or nil
end

---@param seconds integer
---@param micros integer
local function time_of(seconds, micros)
  return os.date('!%Y-%m-%dT%H:%M:%S', seconds) .. ('.%03dZ'):format(math.floor(micros / 1000))
end

local hashed, hash

--- Clients make many calls in a row.
---@param session string
---@return string
local function hash_of(session)
  if hashed ~= session then
    hashed, hash = session, vim.fn.sha256(session):sub(1, ID_CHARS)
  end
  return hash
end

---@param from integer? ns
---@param to integer? ns
---@return number? ms
local function ms_between(from, to)
  return from and to and math.floor((to - from) / 1e4 + 0.5) / 100 or nil
end

---@class mcp-tools.AuditNote what a line is made from; the call itself may hold a large result
local Note = {}

--- The line of a call.
---@param note mcp-tools.AuditNote
---@return string
function Note.__call(note)
  local decision, client, error, snapshot = note.decision, note.client, note.error, note.snapshot
  return vim.json.encode({
    host = note.host,
    tool = note.tool,
    decision = decision.allowed and 'allow' or 'deny',
    by = decision.by,
    outcome = note.outcome,
    code = error and error.code or nil,
    ms = ms_between(note.created_at, note.ended_at),
    waited_ms = ms_between(note.created_at, note.started_at),
    pid = PID,
    time = time_of(note.seconds, note.micros),
    session = note.session and hash_of(note.session) or nil,
    client = text_of(client.name),
    client_version = text_of(client.version),
    args_sha256 = snapshot and vim.fn.sha256(canonical_json.text_of(snapshot)) or nil,
    project = note.project,
  })
end

--- Notes a call that has ended. What takes time is left for when the editor is idle.
---@param call mcp-tools.Call
function M.record(call)
  local seconds, micros = uv.gettimeofday()
  local outcome = call.outcome
  file:add(setmetatable({
    host = call.host,
    tool = call.name,
    decision = call.decision,
    outcome = outcome.state,
    error = outcome.error,
    created_at = call.created_at,
    started_at = call.started_at,
    ended_at = call.ended_at,
    seconds = seconds,
    micros = micros,
    session = call.session,
    client = call.client or {},
    snapshot = call.snapshot,
    project = call.project,
  }, Note))
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

--- Audit log: who called what, what was decided, what came of it; one JSON object a line, for people and their tools.
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

local second, second_text

---@param ms integer unix time
local function time_of(ms)
  local now = math.floor(ms / 1000)
  if now ~= second then
    second, second_text = now, os.date('!%Y-%m-%dT%H:%M:%S', now)
  end
  return ('%s.%03dZ'):format(second_text, ms % 1000)
end

--- Of sessions, which make many calls: the hashes of so many are kept.
local MAX_HASHES = 64
local hashes, count = {}, 0 ---@type table<string, string>, integer

---@param session string
---@return string
local function hash_of(session)
  local hash = hashes[session]
  if not hash then
    if count >= MAX_HASHES then
      hashes, count = {}, 0
    end
    hash = vim.fn.sha256(session):sub(1, ID_CHARS)
    hashes[session], count = hash, count + 1
  end
  return hash
end

---@param from integer? ns
---@param to integer? ns
---@return number? ms
local function ms_between(from, to)
  return from and to and math.floor((to - from) / 1e4 + 0.5) / 100 or nil
end

---@class mcp-tools.AuditNote what a line is made from, under the line's own names; the call may hold a large result
local Note = {}

--- The line of a call, once: the note becomes what is written.
---@param note mcp-tools.AuditNote
---@param pause fun()
---@return string
function Note.__call(note, pause)
  local snapshot = note.args_sha256
  local text = snapshot and canonical_json.text_of(snapshot, pause)
  pause()
  setmetatable(note, nil)
  note.time = time_of(note.time)
  note.session = note.session and hash_of(note.session) or nil
  note.client, note.client_version = text_of(note.client), text_of(note.client_version)
  note.args_sha256 = text and vim.fn.sha256(text) or nil
  return vim.json.encode(note)
end

--- Notes a call that has ended. What takes time is left for when the editor is idle.
---@param call mcp-tools.Call
function M.record(call)
  local seconds, micros = uv.gettimeofday()
  local outcome, decision, client = call.outcome, call.decision, call.client
  file:add(setmetatable({
    host = call.host,
    tool = call.name,
    decision = decision.allowed and 'allow' or 'deny',
    by = decision.by,
    outcome = outcome.state,
    code = outcome.error and outcome.error.code or nil,
    ms = ms_between(call.created_at, call.ended_at),
    waited_ms = ms_between(call.created_at, call.started_at),
    pid = PID,
    time = seconds * 1000 + math.floor(micros / 1000),
    session = call.session,
    client = client and client.name,
    client_version = client and client.version,
    args_sha256 = call.snapshot,
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

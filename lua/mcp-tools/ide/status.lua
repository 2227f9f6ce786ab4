--- Status of a companion, for people: can its agent find this editor, who is there, and what keeps it away.
---
--- Receives: what is known of one companion. Sends: one table, made anew each time.
--- Does not know about: how it is shown, how any of it came to be.

local announcement = require('mcp-tools.ide.announcement')
local companion_sessions = require('mcp-tools.editor.companion')
local current = require('mcp-tools.bridge.current')

local M = {}

---@class mcp-tools.ide.Status of one companion
---@field name string
---@field label string?
---@field state 'on'|'waiting'|'off' on: an agent can find it
---@field reason string? why it is not on
---@field fault boolean? the reason is a fault
---@field connect string? what the user does in the agent while it is not connected
---@field proposes string? in which of its modes it proposes edits here
---@field files string[] by which its agent finds this editor
---@field sessions mcp-tools.companion.Session[]

---@class mcp-tools.ide.Known
---@field fault string? of its endpoint or its files
---@field is_open boolean? its endpoint is open
---@field owners table<string, string> path of a discovery file → companion

---@param name string
---@param owners table<string, string>
---@return string[] files
---@return string? fault
local function files_of(name, owners)
  local files, fault = {}, nil
  for _, path in ipairs(announcement.paths()) do
    if owners[path] == name then
      table.insert(files, path)
    end
  end
  for path, why in vim.spairs(announcement.faults()) do
    if owners[path] == name then
      fault = ('%s: %s'):format(path, why)
    end
  end
  return files, fault
end

---@param verdict mcp-tools.companion.Verdict
---@param known mcp-tools.ide.Known
---@return mcp-tools.ide.Status
function M.of(verdict, known)
  local name, loaded = verdict.name, verdict.loaded
  local files, unwritten = files_of(name, known.owners)
  local failed = current.said.endpoints and current.said.endpoints.failed[name]
  local fault = verdict.fault or known.fault or failed or unwritten
  local status = {
    name = name,
    label = loaded and loaded.companion.label,
    state = 'off',
    connect = loaded and loaded.companion.connect,
    proposes = loaded and loaded.companion.proposes,
    reason = fault or verdict.skipped,
    fault = fault ~= nil or nil,
    files = files,
    sessions = companion_sessions.sessions(name),
  }
  if loaded and not status.reason then
    local port = current.get_port()
    status.state = port and known.is_open and 'on' or 'waiting'
    status.reason = not port and 'the bridge is not ready' or not known.is_open and 'its endpoint is not open' or nil
  end
  return status
end

return M

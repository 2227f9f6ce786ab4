--- Subcommands that only show: dashboard, log, audit.

local audit = require('mcp-tools.approval.audit')
local bridge = require('mcp-tools.bridge')
local config = require('mcp-tools.config')
local core = require('mcp-tools.core')
local dashboard = require('mcp-tools.ui.dashboard')
local groups = require('mcp-tools.groups')
local log = require('mcp-tools.log')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.window.scratch')

---@type table<string, mcp-tools.Subcommand>
local M = {}

---@type mcp-tools.Subcommand
M.dashboard = {
  description = 'show the dashboard (|mcp-tools-dashboard|): bridge, clients, calls, tools and what waits for you,'
    .. ' as they are now, with keys for what can be done about them; so does |:McpTools| alone',
  run = function()
    local parts = core.get()
    dashboard.open({
      style = config.get('ui.dashboard'),
      registry = parts.registry,
      executor = parts.executor,
      gateway = parts.gateway,
      history = parts.history,
      bridge = bridge.status,
      items = groups.items,
      run = function(text)
        vim.api.nvim_cmd({ cmd = 'McpTools', args = { text } }, {})
      end,
    })
  end,
}

--- About a thousand lines: enough to see what went on, quick to read from a file of ten megabytes.
local LOG_TAIL = 128 * 1024

local function show_log()
  log.tail(LOG_TAIL, function(lines)
    -- Nothing was written yet, or it cannot be: what this editor remembers is better than an error.
    lines = lines or log.lines()
    if #lines == 0 then
      lines = { 'The log is empty: ' .. log.path() }
    end
    lines = vim.tbl_map(sanitize.text, lines)
    scratch.show('log', lines, { filetype = 'log', at_end = true, again = show_log })
  end)
end

---@type mcp-tools.Subcommand
M.log = {
  description = 'show the end of the log',
  run = show_log,
}

--- About two thousand calls.
local AUDIT_TAIL = 512 * 1024

---@param entry table
---@return string
local function line_of(entry)
  local who = entry.client or entry.host or '?'
  return ('%s  %-5s  %s  (%s)  %s in %.1f ms, for %s%s'):format(
    (tostring(entry.time):match('T(%d+:%d+:%d+)')),
    tostring(entry.decision),
    sanitize.line(tostring(entry.tool)),
    tostring(entry.by),
    tostring(entry.outcome),
    tonumber(entry.ms) or 0,
    sanitize.line(tostring(who)),
    entry.session and ', session ' .. tostring(entry.session) or ''
  )
end

local function show_audit()
  audit.tail(AUDIT_TAIL, function(entries)
    local lines = vim.tbl_map(line_of, entries or {})
    if #lines == 0 then
      lines = { 'No call was noted yet: ' .. audit.path() }
    end
    scratch.show('audit', lines, { at_end = true, again = show_audit })
  end)
end

---@type mcp-tools.Subcommand
M.audit = {
  description = 'show the last calls, what was decided on them and what came of it',
  run = show_audit,
}

return M

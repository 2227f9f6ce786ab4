--- Subcommands that show something: dashboard, log, audit.

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
  description = 'show the dashboard (|mcp-tools-dashboard|): the current bridge, clients, calls, tools and open'
    .. ' questions, with keys to act on them; |:McpTools| alone does the same',
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

--- In bytes: about a thousand lines.
local LOG_TAIL = 128 * 1024

local function show_log()
  log.tail(LOG_TAIL, function(lines)
    -- Without a readable file, the messages in memory are shown.
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

--- In bytes: about two thousand calls.
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
      lines = { 'No call was recorded yet: ' .. audit.path() }
    end
    scratch.show('audit', lines, { at_end = true, again = show_audit })
  end)
end

---@type mcp-tools.Subcommand
M.audit = {
  description = 'show the last calls, the decisions on them and their outcomes',
  run = show_audit,
}

return M

--- `:McpTools audit`: who called what, and what came of it.

local audit = require('mcp-tools.trust.audit')
local sanitize = require('mcp-tools.util.sanitize')
local scratch = require('mcp-tools.ui.layout.scratch')

--- About two thousand calls.
local TAIL = 512 * 1024

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

local show

function show()
  audit.tail(TAIL, function(entries)
    local lines = vim.tbl_map(line_of, entries or {})
    if #lines == 0 then
      lines = { 'No call was noted yet: ' .. audit.path() }
    end
    scratch.show('audit', lines, { at_end = true, again = show })
  end)
end

---@type mcp-tools.Subcommand
return {
  description = 'show the last calls, what was decided on them and what came of it',
  run = show,
}

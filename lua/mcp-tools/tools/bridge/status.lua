--- Returns the state of the editor's MCP server.

local mcp_tools = require('mcp-tools')
local redact = require('mcp-tools.privacy.redact')
local result = require('mcp-tools.editor.result')

--- Maximum number of loading errors in an answer; :checkhealth has all.
local MAX_FAILURES = 20

--- Counts the registered tools by group; those of plugins, users and Python by their source.
---@param tools mcp-tools.Offered[]
---@return table<string, integer>
local function groups_of(tools)
  local counts = vim.empty_dict()
  for _, tool in ipairs(tools) do
    local name = tool.group or tool.origin
    counts[name] = (counts[name] or 0) + 1
  end
  return counts
end

---@param failures mcp-tools.Failure[]
---@return { source: string, error: string }[]?
local function failures_of(failures)
  local list = {}
  for _, failure in ipairs(vim.list_slice(failures, 1, MAX_FAILURES)) do
    -- The first line only: the log has the traceback.
    table.insert(list, { source = failure.source, error = redact.line(tostring(failure.error):match('[^\n]*')) })
  end
  return #list > 0 and list or nil
end

---@param sessions { count: integer, clients: table[] }?
---@return table?
local function clients_of(sessions)
  return sessions
    and {
      count = sessions.count,
      clients = vim.tbl_map(function(client)
        return { name = client.name, version = client.version, transport = client.transport }
      end, sessions.clients or {}),
    }
end

--- Returns pairs as text: `a 1, b 2`.
---@param fields table<string, any>
---@return string
local function pairs_text(fields)
  local list = {}
  for name, value in vim.spairs(fields) do
    table.insert(list, ('%s %s'):format(name:gsub('_', ' '), tostring(value)))
  end
  return table.concat(list, ', ')
end

---@param value table
---@return string
local function render(value)
  local rows = {
    value.to_do and ('%s; to do: %s'):format(value.health, value.to_do) or value.health,
    ('project %s, working directory %s'):format(value.project, value.cwd),
    'bridge: ' .. pairs_text(value.bridge),
    'you: ' .. pairs_text(value.you),
    'versions: ' .. pairs_text(value.versions),
    ('%d running calls; %s; prefix %s'):format(value.calls, pairs_text(value.offered), value.tool_prefix),
    'tools: ' .. pairs_text(value.tools),
  }
  if value.sessions then
    table.insert(rows, result.count(value.sessions.count, 'session'))
    for _, client in ipairs(value.sessions.clients) do
      table.insert(rows, '  ' .. pairs_text(client))
    end
  end
  if value.failures then
    table.insert(rows, ('%d definitions could not be loaded:'):format(value.failures_total))
    for _, failure in ipairs(value.failures) do
      table.insert(rows, ('  %s: %s'):format(failure.source, failure.error))
    end
  end
  return table.concat(rows, '\n')
end

return {
  name = 'bridge_status',
  title = 'State of the bridge',
  description = "Returns the state of the editor's MCP server: problem and solution, versions, project, address,"
    .. ' sessions, running calls, tools by group, and definitions that could not be loaded.',
  search_hint = 'health, MCP connection, connected clients, version of Neovim',
  annotations = { read_only = true, idempotent = true, open_world = false },
  execute = function(ctx)
    local status, report = mcp_tools.status(), mcp_tools.report()
    local trouble = status.state ~= 'ready' and (status.last_error or 'the bridge is ' .. status.state) or status.note
    ctx(result.utf8({
      health = trouble and redact.text(trouble) or 'ok',
      to_do = status.to_do,
      project = ctx.root,
      cwd = ctx.cwd,
      you = { client = ctx.client.name, version = ctx.client.version, host = ctx.host, session = ctx.session ~= nil },
      bridge = {
        state = status.state,
        url = status.url,
        wanted_port = status.port ~= status.wanted_port and status.wanted_port or nil,
        restarts = status.tries > 0 and status.tries or nil,
        blocked = status.blocked and status.blocked.mode,
      },
      versions = vim.tbl_extend('keep', { neovim = tostring(vim.version()), plugin = status.version }, status.versions),
      sessions = clients_of(status.sessions),
      calls = status.calls,
      offered = status.offered,
      tools = groups_of(report.tools),
      tool_prefix = report.tool_prefix,
      failures = failures_of(report.failures),
      failures_total = #report.failures,
    }))
  end,
  render = render,
}

-- Helpers for agents' definitions: the tools of an agent's endpoint, and data formats that several agents use.

local agent_sessions = require('mcp-tools.editor.agents')
local content = require('mcp-tools.content')
local editor_context = require('mcp-tools.editor.context')
local json = require('mcp-tools.util.json')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')
local proposals = require('mcp-tools.editor.agents.proposals')
local read_sync = require('mcp-tools.util.read_sync')

local M = {}

--- Maximum size of a configuration file of an agent, bytes.
local MAX_CONFIG = 1024 * 1024

M.STRING, M.BOOLEAN, M.INTEGER = { type = 'string' }, { type = 'boolean' }, { type = 'integer' }

--- Returns the session of a call.
---@param ctx mcp-tools.Ctx
---@return mcp-tools.agents.Session
function M.session(ctx)
  return agent_sessions.session(ctx.session) or error('the connection is gone')
end

--- Makes a result with one text item for each text.
---@param ... string
---@return mcp-tools.ContentResult
function M.texts(...)
  return content.result({ content = vim.tbl_map(content.text, { ... }) })
end

--- Makes a result with one text item, encoded as JSON.
---@param value any
---@return mcp-tools.ContentResult
function M.json(value)
  return M.texts((assert(json.encode(value))))
end

--- Makes a tool with the name that the agent expects. It is read-only unless `more` says otherwise.
---@param name string
---@param description string
---@param properties table<string, table>
---@param required string[]
---@param execute fun(ctx: mcp-tools.Ctx, args: table)
---@param more table? fields that are added or replaced
---@return table
function M.tool(name, description, properties, required, execute, more)
  return vim.tbl_extend('force', {
    name = name,
    description = description,
    input_schema = {
      type = 'object',
      properties = next(properties) and properties or vim.empty_dict(),
      required = #required > 0 and required or nil,
    },
    annotations = { read_only = true },
    execute = execute,
  }, more or {})
end

--- Shows a proposal under the name of its tab. The call ends with the user's decision.
---@param ctx mcp-tools.Ctx
---@param tab string
---@param spec { path: string, text: string, editable: boolean? }
---@param answer fun(outcome: mcp-tools.agents.Outcome)
function M.propose(ctx, tab, spec, answer)
  local session = M.session(ctx)
  local ok, fault, code = proposals.open(session, tab, spec, function(outcome)
    if outcome.state == 'busy' then
      return ctx:fail('busy', outcome.reason)
    end
    answer(outcome)
  end)
  if not ok then
    return ctx:fail(code or 'tool_error', fault)
  end
  ctx:on_cancel(function()
    proposals.close(session, tab, 'the agent stopped waiting')
  end)
end

--- The `left` function of agents that wait for decisions. After the end of the bridge no call can be answered.
---@param session mcp-tools.agents.Session
---@param is_bridge_gone boolean
function M.left(session, is_bridge_gone)
  if is_bridge_gone then
    return proposals.abandon(session)
  end
  proposals.close_all(session, 'the agent disconnected')
end

--- Returns a configuration file of an agent as text.
---@param path string
---@return string text '' if the file cannot be read
function M.config_text(path)
  return read_sync(path, MAX_CONFIG) or ''
end

--- Returns whether a file of the project defines a server with this name, or cannot be read.
---@param path string
---@param name string
---@return boolean
local function is_defined(path, name)
  if not vim.uv.fs_lstat(path) then
    return false
  end
  local ok, values = pcall(vim.json.decode, M.config_text(path))
  return not ok
    or type(values) ~= 'table'
    or vim.iter({ 'mcpServers', 'mcp' }):any(function(key)
      local servers = values[key]
      return servers ~= nil and (type(servers) ~= 'table' or servers[name] ~= nil)
    end)
end

--- Returns rules for the tools that the agent runs without asking; none if a file of the project defines a server with
--- our name, because the rules would also allow its tools.
---@param server { name: string, permitted: string[]?, cwd: string? } cwd: where the agent starts
---@param files string[] files in which the agent looks for servers, there and in the directories above
---@param rule string with %s for the name of the tool
---@return string[]
function M.rules(server, files, rule)
  local home = vim.uv.fs_realpath(vim.uv.os_homedir() or '')
  for _, start in ipairs({ project.root(), server.cwd or vim.uv.cwd() }) do
    for directory in vim.fs.parents((vim.uv.fs_realpath(start) or start) .. '/.') do
      if directory == home then -- the user's own files
        break
      end
      for _, file in ipairs(files) do
        if is_defined(vim.fs.joinpath(directory, file), server.name) then
          return {}
        end
      end
    end
  end
  return vim.tbl_map(function(name)
    return rule:format(name)
  end, server.permitted or {})
end

--- Returns the configuration of our MCP server in the format that several agents read.
---@param server { name: string, url: string, token: string }
---@param more table? fields of the server's entry
---@return table
function M.mcp_servers(server, more)
  local headers = { Authorization = 'Bearer ' .. server.token }
  local entry = vim.tbl_extend('force', { type = 'http', url = server.url, headers = headers }, more or {})
  return { mcpServers = { [server.name] = entry } }
end

--- Makes a tool that returns the current diagnostics of one file (`uri`) or of all open files.
---@param name string
---@param shape fun(files: mcp-tools.context.FileDiagnostics[]): table[] converts to the agent's format
---@return table
function M.diagnostics_tool(name, shape)
  local description = 'Returns the current diagnostics of a file, or of all open files'
  return M.tool(name, description, { uri = M.STRING }, {}, function(ctx, args)
    local path, bad
    if args.uri and args.uri ~= '' then
      path, bad = paths.resolve(args.uri)
    end
    if bad then
      return ctx:fail('validation_error', 'uri: ' .. bad)
    end
    proposals.refresh(M.session(ctx), function()
      local ok, result = pcall(function()
        return M.json(shape(editor_context.diagnostics(path)))
      end)
      if not ok then -- without this the call would never end
        return ctx:fail('execution_error', tostring(result))
      end
      ctx(result)
    end)
  end)
end

--- Converts the selection, or the cursor, in the active file; nil without a file that may be shared.
---@param context mcp-tools.Context
---@param base integer? number of the first line (default 0)
---@return table?
function M.selection(context, base)
  local active = context.active
  if not active then
    return nil
  end
  local function at(position)
    return { line = position.line + (base or 0), character = position.character }
  end
  local selection = active.selection
  return {
    text = selection and selection.text or '',
    filePath = active.path,
    fileUrl = vim.uri_from_fname(active.path),
    selection = {
      start = at(selection and selection.start or active.cursor),
      ['end'] = at(selection and selection.finish or active.cursor),
      isEmpty = selection == nil,
    },
  }
end

--- Converts the diagnostics of one file.
---@param file mcp-tools.context.FileDiagnostics
---@param severities string[] names of the severities 1 (error) to 4 (hint)
---@return { uri: string, diagnostics: table[] }
function M.diagnostics(file, severities)
  return {
    uri = vim.uri_from_fname(file.path),
    diagnostics = vim.tbl_map(function(item)
      return vim.tbl_extend('force', item, { severity = severities[item.severity] or severities[1] })
    end, file.diagnostics),
  }
end

return M

-- What the files of companions share: tools of an agent's own channel, and shapes that two agents have.

local companion = require('mcp-tools.editor.agents')
local content = require('mcp-tools.content')
local editor_context = require('mcp-tools.editor.context')
local json = require('mcp-tools.util.json')
local paths = require('mcp-tools.files.paths')
local proposals = require('mcp-tools.editor.agents.proposals')
local writes = require('mcp-tools.editor.agents.writes')

local M = {}

M.STRING, M.BOOLEAN, M.INTEGER = { type = 'string' }, { type = 'boolean' }, { type = 'integer' }

--- The session of a call.
---@param ctx mcp-tools.Ctx
---@return mcp-tools.companion.Session
function M.session(ctx)
  return companion.session(ctx.session) or error('the connection is gone')
end

--- A result of texts.
---@param ... string
---@return mcp-tools.ContentResult
function M.texts(...)
  return content.result({ content = vim.tbl_map(content.text, { ... }) })
end

--- A result of one text, which is JSON.
---@param value any
---@return mcp-tools.ContentResult
function M.json(value)
  return M.texts((assert(json.encode(value))))
end

--- A tool by the name that the agent knows.
---@param name string
---@param description string
---@param properties table<string, table>
---@param required string[]
---@param execute fun(ctx: mcp-tools.Ctx, args: table)
---@param more table?
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

--- Shows a proposal by the name of its tab, and keeps the call waiting for the decision.
---@param ctx mcp-tools.Ctx
---@param tab string
---@param spec { path: string, text: string, editable: boolean? }
---@param answer fun(outcome: mcp-tools.companion.Outcome)
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
    proposals.close(session, tab, 'the agent has given up waiting')
  end)
end

--- `left` of a companion whose agents wait for decisions: of one whose bridge is gone nobody can be answered.
---@param session mcp-tools.companion.Session
---@param is_bridge_gone boolean
function M.left(session, is_bridge_gone)
  if is_bridge_gone then
    return proposals.abandon(session)
  end
  proposals.close_all(session, 'the agent is gone')
end

--- Our server, for agents that are given a file of servers.
---@param server { name: string, url: string, token: string }
---@param more table?
---@return table
function M.mcp_servers(server, more)
  local headers = { Authorization = 'Bearer ' .. server.token }
  local entry = vim.tbl_extend('force', { type = 'http', url = server.url, headers = headers }, more or {})
  return { mcpServers = { [server.name] = entry } }
end

--- A tool that tells diagnostics, live, of one file (`uri`) or of all.
---@param name string
---@param shape fun(files: mcp-tools.context.FileDiagnostics[]): table[]
---@return table
function M.diagnostics_tool(name, shape)
  local description = 'What language servers and linters say now of a file, or of all that are open'
  return M.tool(name, description, { uri = M.STRING }, {}, function(ctx, args)
    local path, bad
    if args.uri and args.uri ~= '' then
      path, bad = paths.resolve(args.uri)
    end
    if bad then
      return ctx:fail('validation_error', 'uri: ' .. bad)
    end
    writes.refresh(M.session(ctx), function()
      local ok, result = pcall(function()
        return M.json(shape(editor_context.diagnostics(path)))
      end)
      if not ok then -- nobody else could answer the call
        return ctx:fail('execution_error', tostring(result))
      end
      ctx(result)
    end)
  end)
end

--- The selection as they are told it; nil where no file may be told.
---@param context mcp-tools.Context
---@param base integer? that lines count from (default 0)
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

--- Diagnostics of one file.
---@param file mcp-tools.context.FileDiagnostics
---@param severities string[]
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

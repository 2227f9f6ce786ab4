--- The endpoint of two commands: `mcp-tools lsp`, through which the LSP clients of agents use the language servers of
--- this editor, and `mcp-tools connect`, which asks for the tools that agents may run.
---
--- The bridge always opens it, with a token of its own. Its clients have two tools, which no other client sees. Their
--- calls are approved and audited like all calls.

local definition = require('mcp-tools.registry.definition.tool')
local permissions = require('mcp-tools.agents.permissions')
local scope = require('mcp-tools.scope')

local M = {}

--- Name of the endpoint, as in bridge/mcp_tools_nvim/agents/agents.py.
M.NAME = 'lsp'

--- Maximum time of a call, ms. Claude Code waits 60 s for an answer, the others longer.
local TIMEOUT_MS = 55000

local loaded = false

--- Adds the tools when it is called for the first time.
---@param registry fun(): mcp-tools.Registry returns the registry with all definitions loaded
function M.load(registry)
  if loaded then
    return
  end
  loaded = true
  local tool = assert(definition.normalize({
    name = 'lsp_request',
    description = 'Sends a request of an LSP client to the language servers of the editor, and returns their result.',
    input_schema = {
      type = 'object',
      properties = {
        method = { type = 'string', description = 'Method of the Language Server Protocol' },
        params = { type = 'object', description = 'Its parameters; columns in UTF-16 units, lines as on disk' },
        near = { type = 'string', description = 'URI of the file that the client opened last' },
      },
      required = { 'method', 'params' },
    },
    annotations = { read_only = true },
    needs_approval = false,
    timeout = TIMEOUT_MS,
    run = function(ctx, args)
      return require('mcp-tools.editor.language_server').run(ctx, args) -- start-up cost
    end,
  }))
  local permitted = assert(definition.normalize({
    name = 'permitted_tools',
    description = 'Returns the names of the tools that an agent may run without asking the user.',
    annotations = { read_only = true },
    needs_approval = false,
    execute = function(ctx)
      local names, err = permissions.names(registry())
      if not names then
        return ctx:fail('access_denied', err)
      end
      ctx({ tools = names })
    end,
  }))
  for _, each in ipairs({ tool, permitted }) do
    each.agent = M.NAME
    each.source = { origin = 'bundled', name = 'mcp-tools lsp', group = M.NAME }
  end
  scope.set_agent_tools(M.NAME, { tool, permitted })
end

return M

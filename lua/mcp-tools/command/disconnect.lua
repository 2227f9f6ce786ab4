--- `:McpTools disconnect`: takes this server out of an AI client's configuration.

local client_files = require('mcp-tools.command._client_files')

local OPTIONS = { project = '--project' }

---@type mcp-tools.Subcommand
return {
  usage = '[CLIENT] [project]',
  description = "take this server out of an AI client's configuration again; the change is shown first",
  run = client_files.run('disconnect', OPTIONS),
  complete = client_files.complete(OPTIONS),
  arguments = 2,
}

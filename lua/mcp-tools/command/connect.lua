--- `:McpTools connect`: puts this server into an AI client's configuration.

local client_files = require('mcp-tools.command._client_files')

local OPTIONS = { project = '--project', http = '--http' }

---@type mcp-tools.Subcommand
return {
  usage = '[CLIENT] [project] [http]',
  description = "put this server into an AI client's configuration: yours, or with `project` that of the project; it"
    .. ' finds the editor by itself, or with `http` by the URL and token of this project. The change is shown first',
  run = client_files.run('connect', OPTIONS),
  complete = client_files.complete(OPTIONS),
  arguments = 3,
}

--- `:McpTools connect`: puts this server into an AI client's configuration.

local client_files = require('mcp-tools.command._client_files')

local OPTIONS = { project = '--project', http = '--http', skill = '--skill' }

---@type mcp-tools.Subcommand
return {
  usage = '[CLIENT] [project] [http] [skill]',
  description = "put this server into an AI client's configuration: yours, or with `project` that of the project; it"
    .. ' finds the editor by itself, or with `http` by the URL and token of this project. `skill` adds a SKILL.md'
    .. ' that tells when to use the tools. The change is shown first',
  run = client_files.run('connect', OPTIONS),
  complete = client_files.complete(OPTIONS),
  arguments = 4,
}

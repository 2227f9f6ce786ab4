-- Gemini CLI. The user enables the connection once with `/ide enable`; the dialog at its start cannot do it.
-- System settings named by the environment are only read if root owns the file and its directory (0.61), so our tools
-- must be in the user's own settings.

local workspace = require('mcp-tools.agents.known._workspace')

return workspace.new({
  name = 'gemini',
  label = 'Gemini CLI',
  connect = 'type `/ide enable` in it, also after a restart of Neovim; answer No to its own question about Neovim',
  proposes = 'in its default mode; never with `--approval-mode auto_edit`',

  discovery = function(endpoint)
    local directory = vim.uv.os_tmpdir() .. '/gemini/ide'
    return {
      {
        path = ('%s/gemini-ide-server-%d-%d.json'):format(directory, endpoint.pid, endpoint.port),
        body = {
          port = endpoint.port,
          workspacePath = workspace.workspace_path(endpoint.roots),
          authToken = endpoint.token,
          ideInfo = { name = 'neovim', displayName = 'Neovim' }, -- required, or only built-in editors are accepted
        },
      },
    }
  end,

  environment = function(endpoint)
    local env = {}
    if endpoint.token then
      env.GEMINI_CLI_IDE_SERVER_PORT = tostring(endpoint.port)
      env.GEMINI_CLI_IDE_WORKSPACE_PATH = workspace.workspace_path(endpoint.roots)
      env.GEMINI_CLI_IDE_AUTH_TOKEN = endpoint.token
      env.GEMINI_CLI_IDE_PID = tostring(endpoint.pid)
      if vim.uv.fs_stat('/.dockerenv') and not vim.env.SSH_CONNECTION then
        env.REMOTE_CONTAINERS = 'true' -- without it the agent looks for the editor on the host of this container
      end
    end
    return { command = { 'gemini' }, env = env }
  end,
})

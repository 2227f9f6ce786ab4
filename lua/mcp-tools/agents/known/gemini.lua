-- Gemini CLI. Its person turns it on once with `/ide enable`; the dialog that it shows by itself cannot do it.
-- Settings that it is given by the environment count only in files of root in folders of root (0.61): our tools have to
-- be in its own.

local workspace = require('mcp-tools.agents.known._workspace')

return workspace.new({
  name = 'gemini',
  label = 'Gemini CLI',
  connect = 'type `/ide enable` in it, also after a restart of Neovim; its own question about Neovim cannot connect it',
  proposes = 'in its default mode; never with `--approval-mode auto_edit`',

  discovery = function(endpoint)
    local folder = vim.uv.os_tmpdir() .. '/gemini/ide'
    return {
      {
        path = ('%s/gemini-ide-server-%d-%d.json'):format(folder, endpoint.pid, endpoint.port),
        body = {
          port = endpoint.port,
          workspacePath = workspace.workspace_path(endpoint.roots),
          authToken = endpoint.token,
          ideInfo = { name = 'neovim', displayName = 'Neovim' }, -- without it only known editors are taken
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
        env.REMOTE_CONTAINERS = 'true' -- else it looks for the editor on the host of this container
      end
    end
    return { command = { 'gemini' }, env = env }
  end,
})

-- Qwen Code: a fork of Gemini CLI with its own discovery files.

local project = require('mcp-tools.instances.project')
local shapes = require('mcp-tools.agents.known._shapes')
local workspace = require('mcp-tools.agents.known._workspace')

---@return string
local function home()
  local own = vim.env.QWEN_HOME
  return own and own ~= '' and vim.fs.normalize(own) or vim.uv.os_homedir() .. '/.qwen'
end

--- Returns whether the project's language servers are ours alone (`connect qwen-code project lsp`). A hostile project
--- may name any command there, which the flag would start.
---@return boolean
local function has_only_our_server()
  local ok, servers = pcall(vim.json.decode, shapes.config_text(project.root() .. '/.lsp.json'))
  local ours = ok and type(servers) == 'table' and vim.tbl_count(servers) == 1 and servers['nvim-tools']
  if type(ours) ~= 'table' then
    return false
  end
  ours.extensionToLanguage = nil
  return vim.deep_equal(ours, { command = 'mcp-tools', args = { 'lsp' } })
end

return workspace.new({
  name = 'qwen',
  label = 'Qwen Code',
  connect = 'type `/ide enable` in it, also after a restart of Neovim; answer No to its own question about Neovim',
  proposes = 'with `"tools": {"approvalMode": "default"}` in its settings; never in its default mode auto',

  discovery = function(endpoint)
    return {
      {
        path = ('%s/ide/%d.lock'):format(home(), endpoint.port),
        body = {
          port = endpoint.port,
          workspacePath = workspace.workspace_path(endpoint.roots),
          authToken = endpoint.token,
          ideName = 'Neovim',
          ideInfo = { name = 'neovim', displayName = 'Neovim' }, -- required, or only built-in editors are accepted
          ppid = endpoint.pid, -- the agent removes files without a live process
        },
      },
    }
  end,

  environment = function(endpoint)
    local server = endpoint.server
    local entry = { httpUrl = server.url, headers = { Authorization = 'Bearer ' .. server.token } }
    local settings = { mcpServers = { [server.name] = entry } }
    local rules = shapes.rules(server, { '.qwen/settings.json', '.mcp.json' }, 'mcp__nvim-tools__%s')
    settings.permissions = #rules > 0 and { allow = rules } or nil
    local env = { QWEN_CODE_SYSTEM_DEFAULTS_PATH = endpoint.file(settings) }
    if endpoint.token then
      env.QWEN_CODE_IDE_SERVER_PORT = tostring(endpoint.port)
      env.QWEN_CODE_IDE_WORKSPACE_PATH = workspace.workspace_path(endpoint.roots)
    end
    return { command = { 'qwen' }, env = env, args = has_only_our_server() and { '--experimental-lsp' } or nil }
  end,
})

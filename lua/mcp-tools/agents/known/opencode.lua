-- opencode. It finds the editor by the discovery file of Claude Code, and connects to that endpoint.

local json = require('mcp-tools.util.json')
local project = require('mcp-tools.instances.project')
local shapes = require('mcp-tools.agents.known._shapes')

local CONFIG_FILES = { 'opencode.json', 'opencode.jsonc', '.opencode/opencode.json', '.opencode/opencode.jsonc' }

---@type mcp-tools.Agent
return {
  name = 'opencode',
  label = 'opencode',
  uses = 'claude',

  environment = function(endpoint)
    local server = endpoint.server
    local entry = {
      type = 'remote',
      url = server.url,
      enabled = true,
      oauth = false,
      headers = { Authorization = 'Bearer ' .. server.token },
    }
    local relay = server.relay
    if relay then
      local command = vim.list_extend({ relay.command }, relay.args)
      entry = { type = 'local', command = command, environment = relay.env, enabled = true }
    end
    local config = { mcp = { [server.name] = entry } }
    for _, rule in ipairs(shapes.rules(server, CONFIG_FILES, 'nvim-tools_%s')) do
      config.permission = config.permission or {}
      config.permission[rule] = 'allow'
    end
    local env = { OPENCODE_CONFIG_CONTENT = (assert(json.encode(config))) }
    local user = (vim.env.XDG_CONFIG_HOME or vim.uv.os_homedir() .. '/.config') .. '/opencode'
    for _, directory in ipairs({ user, project.root() }) do
      if shapes.config_text(directory .. '/opencode.json'):find('"lsp"', 1, true) then
        env.OPENCODE_EXPERIMENTAL_LSP_TOOL = 'true' -- otherwise its model has no tool for language servers
      end
    end
    return { command = { 'opencode' }, env = env }
  end,
}

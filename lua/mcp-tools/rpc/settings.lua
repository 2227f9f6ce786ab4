--- The options that the bridge needs, and the instructions that clients get when they connect.

local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local log = require('mcp-tools.log')
local project = require('mcp-tools.instances.project')
local selection = require('mcp-tools.loading.selection')

local M = {}

--- Time limits of the bridge in ms that are not options; tests shorten them. `orphan_grace`: how long a call continues
--- after its client has disconnected and is silent. `answer`: how long a client may take to list its roots, or to list
--- or read its files. `parked`: how long a call waits for answers of a client without a session.
M.limits = { orphan_grace = 60000, answer = 60000, parked = 600000 }

current.on_announce(function()
  return selection.is_unset('tools') and 'no bundled tools: setup({ tools = "recommended" })' or nil
end)

--- Returns the instructions for clients: the editor, the project, and the user's own text.
---@return string
local function instructions()
  local version = vim.version()
  local lines = {
    ('Tools of a running Neovim %d.%d.%d (process %d).'):format(
      version.major,
      version.minor,
      version.patch,
      vim.fn.getpid()
    ),
    ('Project: %s.'):format(project.root()),
    'They also see what is not on disk: unsaved buffers and the state of the editor.',
    'Lines and columns are 1-based. A call may wait for the approval of the user.',
  }
  if selection.is_unset('tools') then
    table.insert(
      lines,
      'Only tools registered by plugins are available; setup({ tools = "recommended" }) adds the bundled ones.'
    )
  end
  local own = config.get().instructions
  if vim.is_callable(own) then
    local ok, text = log.guard('the option instructions', own)
    own = ok and text or nil
  end
  if type(own) == 'string' and own ~= '' then
    table.insert(lines, own)
  end
  return table.concat(lines, '\n')
end

--- Returns the options that the bridge needs.
---@return table
function M.get()
  local options, launch = config.get(), current.launch
  return {
    tool_prefix = options.tool_prefix,
    tool_timeout = options.bridge.tool_timeout,
    instructions = instructions(),
    root = project.root(),
    cwd = vim.uv.cwd(),
    state_dir = project.state_dir(),
    log_level = options.bridge.log_level,
    preload = options.bridge.preload or (launch ~= nil and launch.identity.had_client == true),
    allowed_hosts = options.bridge.allowed_hosts,
    allowed_origins = options.bridge.allowed_origins,
    limits = vim.tbl_extend('error', M.limits, options.limits),
  }
end

return M

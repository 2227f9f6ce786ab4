--- Settings of the bridge: what it reads of the options, and the instructions that clients get when they connect.

local config = require('mcp-tools.config')
local current = require('mcp-tools.bridge.current')
local log = require('mcp-tools.log')
local project = require('mcp-tools.instances.project')
local selection = require('mcp-tools.loading.selection')

local M = {}

--- Limits of the bridge that are not options, in ms; tests shorten them. `orphan_grace`: a call continues for a client
--- that has no open connection and is silent. `answer`: a client has to name its roots, or to read or list its files.
--- `parked`: a call waits for the answers of a client without a session.
M.limits = { orphan_grace = 60000, answer = 60000, parked = 600000 }

current.on_announce(function()
  return selection.is_unset('tools') and 'no bundled tools: setup({ tools = "recommended" })' or nil
end)

--- What a client is told about this server: which editor, which project, and the person's own text.
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
    'They see what files on disk do not show: unsaved buffers and the state of the editor.',
    'Lines and columns count from 1. A call may wait for the approval of the person at the editor.',
  }
  if selection.is_unset('tools') then
    table.insert(
      lines,
      'Only tools registered by plugins are offered; setup({ tools = "recommended" }) would add the bundled ones.'
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

--- Everything that the bridge reads of the options.
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

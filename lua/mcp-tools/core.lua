--- The one registry and executor of this editor, put together; and what both sides read of the options.
---
--- Receives: options (config.lua), changes of the registry.
--- Sends: the parts to whoever asks for them.
--- Does not know about: how a part works.

local config = require('mcp-tools.config')

local M = {}

M.VERSION = '0.1.0'

---@class mcp-tools.Core
---@field registry mcp-tools.Registry
---@field executor mcp-tools.Executor
---@field gateway mcp-tools.Gateway

---@type mcp-tools.Core?
local core

local function settings()
  local options = config.get()
  return {
    tool_timeout = options.bridge.tool_timeout,
    max_calls = options.limits.calls,
    max_result = options.limits.tool_result,
    max_resource = options.limits.resource,
    result_ttl = options.limits.result_ttl,
  }
end

local function root()
  return require('mcp-tools.bridge').root()
end

---@return mcp-tools.Core
local function build()
  local registry = require('mcp-tools.registry.store').new({
    prefix = function()
      return config.get().tool_prefix
    end,
    is_off = function(kind, entry)
      kind = kind == 'templates' and 'resources' or kind
      local group = kind == 'tools' and require('mcp-tools.registry.source').group(entry) or nil
      return require('mcp-tools.discovery.selection').verdict(kind, entry.name, group) == false
    end,
  })
  local gateway = require('mcp-tools.trust.gateway').new({
    ask = require('mcp-tools.ui.approval').ask,
    root = root,
    ledger = require('mcp-tools.trust.ledger').new({ dir = require('mcp-tools.bridge.identity').state_dir }),
  })
  local executor = require('mcp-tools.call.executor').new({
    registry = registry,
    gateway = gateway,
    settings = settings,
    audit = require('mcp-tools.trust.audit').record,
  })
  registry:on_change(function(kind)
    M.texts = {}
    local channels = package.loaded['mcp-tools.wire.channels'] -- nobody is attached before it is loaded
    if channels then
      channels.changed(kind)
    end
  end)
  return { registry = registry, executor = executor, gateway = gateway }
end

--- The parts as they are, for who adds to them: nothing bundled is loaded, so that start-up does not pay.
---@return mcp-tools.Core
function M.parts()
  core = core or build()
  return core
end

--- The parts. What `setup` named of the bundled things and what other plugins bring along is loaded with the first use,
--- not at start-up.
---@return mcp-tools.Core
function M.get()
  core = core or build()
  if require('mcp-tools.discovery.bundled').sync(core.registry) then
    core.registry:sift()
  end
  require('mcp-tools.discovery').use(core.registry)
  require('mcp-tools.files.redact').watch()
  return core
end

---@return table limits as in the options
function M.limits()
  return config.get().limits
end

---@type table<string, string> JSON text of each kind's list, until something changes
M.texts = {}

--- Definitions of a kind as clients get them: JSON text of a sorted list.
---@param kind mcp-tools.Kind
---@return string
function M.published(kind)
  local prefix = config.get().tool_prefix
  local key = kind .. ' ' .. prefix
  if not M.texts[key] then
    M.texts[key] = require('mcp-tools.registry.listing').json(M.get().registry, kind, prefix)
  end
  return M.texts[key]
end

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
    ('Project: %s.'):format(root()),
    'They see what files on disk do not show: unsaved buffers and the state of the editor.',
    'Lines and columns count from 1. A call may wait for the approval of the person at the editor.',
  }
  if require('mcp-tools.discovery.selection').is_unset('tools') then
    table.insert(
      lines,
      'Only tools registered by plugins are offered; setup({ tools = "recommended" }) would add the bundled ones.'
    )
  end
  local own = config.get().instructions
  if type(own) == 'function' then
    local ok, text = xpcall(own, debug.traceback)
    if not ok then
      require('mcp-tools.log').error('the option instructions failed: %s', text)
    end
    own = ok and text or nil
  end
  if type(own) == 'string' and own ~= '' then
    table.insert(lines, own)
  end
  return table.concat(lines, '\n')
end

--- Everything that the bridge reads of the options.
---@return table
function M.bridge_settings()
  local options = config.get()
  return {
    tool_prefix = options.tool_prefix,
    tool_timeout = options.bridge.tool_timeout,
    instructions = instructions(),
    root = root(),
    cwd = vim.uv.cwd(),
    state_dir = vim.fn.stdpath('state') .. '/mcp-tools',
    log_level = options.debug and 'debug' or options.bridge.log_level,
    preload = options.bridge.preload,
    allowed_hosts = options.bridge.allowed_hosts,
    allowed_origins = options.bridge.allowed_origins,
    limits = options.limits,
  }
end

--- Definitions that could not be loaded or were refused, for health.
---@return mcp-tools.Failure[]
function M.loader_failures()
  local registry = M.get().registry
  local list = require('mcp-tools.discovery.bundled').failures(function(kind, name)
    return #require('mcp-tools.groups').members(kind, name) > 0
  end)
  vim.list_extend(list, require('mcp-tools.discovery').failures())
  for name, fault in vim.spairs(registry.refused) do
    table.insert(list, { source = name, error = fault })
  end
  return list
end

return M

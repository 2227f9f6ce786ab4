--- The parts of this editor, put together: its registry, and once something is called its executor and gateway.
---
--- Receives: the options (config.lua).
--- Sends: the parts to whoever asks for them.
--- Does not know about: how a part works.
---
--- Requires inside functions are start-up cost: who registers a tool while the editor starts needs the registry alone.

local config = require('mcp-tools.config')
local kinds = require('mcp-tools.registry.kinds')
local new_registry = require('mcp-tools.registry.store').new

local M = {}

---@class mcp-tools.Core
---@field registry mcp-tools.Registry
---@field executor mcp-tools.Executor
---@field gateway mcp-tools.Gateway

---@type mcp-tools.Registry?
local registry
---@type mcp-tools.Core?
local core
---@type fun() makes the registry hold what the options name now
local sync

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

local function prefix()
  return config.get().tool_prefix
end

---@param kind mcp-tools.Kind
---@param entry table
---@return boolean
local function is_off(kind, entry)
  local option = kinds.row(kind).option
  return config.get()[option] ~= nil and require('mcp-tools.discovery.selection').is_off(option, entry)
end

--- The registry as it is, for who adds to it: nothing bundled is loaded.
---@return mcp-tools.Registry
function M.registry()
  registry = registry or new_registry({ prefix = prefix, is_off = is_off })
  return registry
end

---@return mcp-tools.Core
local function build()
  local project = require('mcp-tools.files.project')
  local gateway = require('mcp-tools.trust.gateway').new({
    ask = require('mcp-tools.ui.approval').ask,
    root = project.root,
    ledger = require('mcp-tools.trust.ledger').new({ dir = project.state_dir }),
  })
  local executor = require('mcp-tools.call.executor').new({
    registry = M.registry(),
    gateway = gateway,
    settings = settings,
    audit = require('mcp-tools.trust.audit').record,
  })
  local bundled, discovery = require('mcp-tools.discovery.bundled'), require('mcp-tools.discovery')
  require('mcp-tools.files.redact').watch()
  sync = function()
    if bundled.sync(registry) then
      registry:sift()
    end
    discovery.use(registry)
  end
  return { registry = registry, executor = executor, gateway = gateway }
end

--- The parts. What `setup` named of the bundled things and what other plugins bring along is loaded with the first use,
--- not at start-up.
---@return mcp-tools.Core
function M.get()
  core = core or build()
  sync()
  return core
end

--- Whether anybody has asked for the parts yet; before that nothing has to follow a change of the options.
---@return boolean
function M.in_use()
  return core ~= nil
end

return M

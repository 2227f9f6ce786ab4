--- Creates the parts of this editor: the registry, and with the first use the executor and the gateway.
---
--- Modules are required inside functions to keep start-up fast: registering a tool needs only the registry.

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
---@type fun() applies changed options to the registry
local sync

--- ns; how long bundled definitions are loaded before the event loop gets control.
local PIECE = 4e6

---@type mcp-tools.Settings
local current = { result_ttl = 300000 } ---@diagnostic disable-line: missing-fields

--- Returns the same table each time, because every call needs it.
local function settings()
  local options = config.get()
  local limits = options.limits
  current.tool_timeout = options.bridge.tool_timeout
  current.max_calls = limits.calls
  current.max_result = limits.tool_result
  current.max_resource = limits.resource
  return current
end

local function prefix()
  return config.get().tool_prefix
end

---@param kind mcp-tools.Kind
---@param entry table
---@return boolean
local function is_off(kind, entry)
  local option = kinds.row(kind).option
  local value = config.get()[option]
  -- Only a table with items can disable something. Start-up cost: `selection` is loaded only for one.
  return type(value) == 'table' and next(value) ~= nil and require('mcp-tools.loading.selection').is_off(option, entry)
end

---@param kind mcp-tools.Kind
---@return boolean
local function is_pending(kind)
  return core ~= nil and require('mcp-tools.loading.bundled').is_pending(kinds.row(kind).option)
end

---@param name string
---@return string?
local function absence(name)
  local mounts = package.loaded['mcp-tools.mounts']
  return mounts and mounts.absence(name)
end

--- Returns the registry without loading definitions, for callers that add to it.
---@return mcp-tools.Registry
function M.registry()
  registry = registry or new_registry({ prefix = prefix, is_off = is_off, is_pending = is_pending, absence = absence })
  return registry
end

--- `is_complete`: all definitions that the options request are loaded.
local is_loading, is_complete = false, false

local clients, catalogue, published_prefix

--- Reports a change of the tools if changed options affect which tools clients see, or their names.
local function report_scope_changes()
  local options = config.get()
  local same = catalogue == options.catalogue and published_prefix == options.tool_prefix
  if clients == options.clients and same then
    return
  end
  local differ = clients and not (same and vim.deep_equal(clients, options.clients))
  clients, catalogue, published_prefix = options.clients, options.catalogue, options.tool_prefix
  if differ then
    registry:changed('tools')
  end
end

---@return mcp-tools.Core
local function build()
  local project = require('mcp-tools.instances.project')
  local gateway = require('mcp-tools.approval.gateway').new({
    ask = require('mcp-tools.ui.approval').ask,
    root = project.root,
    ledger = require('mcp-tools.approval.ledger').new({ dir = project.state_dir }),
  })
  local executor = require('mcp-tools.calls.executor').new({
    registry = M.registry(),
    gateway = gateway,
    settings = settings,
    audit = require('mcp-tools.approval.audit').record,
  })
  require('mcp-tools.ui.activity').follow(executor)
  require('mcp-tools.ui.edits').follow()
  local bundled, loading = require('mcp-tools.loading.bundled'), require('mcp-tools.loading')
  require('mcp-tools.privacy.redact').watch()
  -- Start-up cost: loaded with the first review.
  require('mcp-tools.editor.review').set_presenter(setmetatable({}, {
    __index = function(_, key)
      return require('mcp-tools.ui.review')[key]
    end,
  }))
  local applied ---@type table? the options that were applied; a change creates a new table
  sync = function()
    local options = config.get()
    if options ~= applied then
      if bundled.sync() then
        is_complete = false
        registry:apply_options()
      end
      report_scope_changes()
      applied = options
    end
    loading.use(registry)
  end
  return { registry = registry, executor = executor, gateway = gateway }
end

local function load_next_piece()
  is_loading = require('mcp-tools.loading.bundled').load(registry, nil, PIECE)
  if is_loading then
    vim.defer_fn(load_next_piece, 0)
  end
end

--- Returns the parts without loading definitions.
---@return mcp-tools.Core
function M.parts()
  core = core or build()
  sync()
  return core
end

--- Returns the parts and loads all definitions that the options request.
---@return mcp-tools.Core
function M.get()
  local parts = M.parts()
  require('mcp-tools.loading.bundled').load(parts.registry)
  return parts
end

--- Returns the parts and starts to load the requested definitions, piece by piece.
---@return mcp-tools.Core parts
---@return fun(kind: mcp-tools.Kind): boolean is_pending whether definitions of a kind are not yet loaded
function M.begin()
  local parts = M.parts()
  is_complete = is_complete or not require('mcp-tools.loading.bundled').is_pending()
  if not (is_loading or is_complete) then
    is_loading = true
    vim.defer_fn(load_next_piece, 0)
  end
  return parts, is_pending
end

--- Returns the parts for one call, and loads only the bundled definitions that it needs.
---@param kind string? of the call (default: tool)
---@param name string as the client sent it
---@return mcp-tools.Core
function M.for_call(kind, name)
  local parts, bundled = M.begin(), require('mcp-tools.loading.bundled')
  if is_complete then
    return parts
  elseif kind and kind ~= 'tool' then
    bundled.load(parts.registry, 'resources')
    bundled.load(parts.registry, 'prompts')
  elseif bundled.is_pending('tools') then
    bundled.load_one(parts.registry, 'tools', parts.registry:bare(name))
    if not parts.registry:find_tool(name) then
      bundled.load(parts.registry, 'tools') -- it may be another name of one of them
    end
  end
  return parts
end

--- Returns whether the parts exist. If not, changed options need no action.
---@return boolean
function M.in_use()
  return core ~= nil
end

return M

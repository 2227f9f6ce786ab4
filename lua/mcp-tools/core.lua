--- The parts of this editor, put together: its registry, and once something is called its executor and gateway.
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
---@field history mcp-tools.History

---@type mcp-tools.Registry?
local registry
---@type mcp-tools.Core?
local core
---@type fun() begins to make the registry hold what the options name now
local sync

--- What is bundled is loaded in pieces of so many ns, so that the editor gets a turn between them.
local PIECE = 4e6

---@type mcp-tools.Settings
local current = { result_ttl = 300000 } ---@diagnostic disable-line: missing-fields

--- The same table each time, up to date: every call asks.
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
  return config.get()[option] ~= nil and require('mcp-tools.loading.selection').is_off(option, entry)
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

--- The registry as it is, for who adds to it: nothing bundled is loaded.
---@return mcp-tools.Registry
function M.registry()
  registry = registry or new_registry({ prefix = prefix, is_off = is_off, is_pending = is_pending, absence = absence })
  return registry
end

local clients, catalogue, published_prefix

--- Tells clients to list tools again when options change which tools they see, or under which names.
local function follow_scopes()
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
  require('mcp-tools.ui.change_marks').follow()
  require('mcp-tools.ui.unsaved_edits').follow()
  local history = require('mcp-tools.calls.history').new()
  executor:watch(history.note)
  local bundled, discovery = require('mcp-tools.loading.bundled'), require('mcp-tools.loading')
  require('mcp-tools.privacy.redact').watch()
  -- Start-up cost: it is loaded when there is something to review.
  require('mcp-tools.editor.review').set_presenter(setmetatable({}, {
    __index = function(_, key)
      return require('mcp-tools.ui.review')[key]
    end,
  }))
  local followed ---@type table? the options; a change of them is another table
  sync = function()
    local options = config.get()
    if options ~= followed then
      if bundled.sync() then
        registry:sift()
      end
      follow_scopes()
      followed = options
    end
    discovery.use(registry)
  end
  return { registry = registry, executor = executor, gateway = gateway, history = history }
end

local loading = false

local function load_on()
  loading = require('mcp-tools.loading.bundled').load_some(registry, PIECE)
  if loading then
    vim.defer_fn(load_on, 0)
  end
end

---@return mcp-tools.Core
local function parts()
  core = core or build()
  sync()
  return core
end

--- The parts, with all that `setup` named of the bundled things and what other plugins bring along: it is loaded with
--- the first use, not at start-up.
---@return mcp-tools.Core
function M.get()
  local all = parts()
  require('mcp-tools.loading.bundled').load_all(all.registry)
  return all
end

--- The parts as they are; what is not loaded yet is from now on, piece by piece.
---@return mcp-tools.Core parts
---@return fun(kind: mcp-tools.Kind): boolean is_pending is something of a kind not in the registry yet?
function M.begin()
  local now, bundled = parts(), require('mcp-tools.loading.bundled')
  if not loading and bundled.is_pending() then
    loading = true
    vim.defer_fn(load_on, 0)
  end
  return now, is_pending
end

--- The parts for one call: of what is bundled, only what it needs is loaded.
---@param kind string? of the call; a tool's when left out
---@param name string as the client gave it
---@return mcp-tools.Core
function M.for_call(kind, name)
  local now, bundled = M.begin(), require('mcp-tools.loading.bundled')
  if kind and kind ~= 'tool' then
    bundled.load_all(now.registry, 'resources')
    bundled.load_all(now.registry, 'prompts')
  elseif bundled.is_pending('tools') then
    bundled.load_one(now.registry, 'tools', name)
    if vim.startswith(name, prefix()) then
      bundled.load_one(now.registry, 'tools', name:sub(#prefix() + 1))
    end
  end
  return now
end

--- Whether anybody has asked for the parts yet; before that nothing has to follow a change of the options.
---@return boolean
function M.in_use()
  return core ~= nil
end

return M

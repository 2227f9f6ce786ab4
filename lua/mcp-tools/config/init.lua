--- Configuration: the current values of all options.
---
--- Modules for `setup()` and for mistakes are required inside functions, to keep start-up fast.

local log = require('mcp-tools.log')
local options = require('mcp-tools.config.options')

local M = {}

---@type mcp-tools.Option[]
M.schema = options

---@class mcp-tools.OptionNode
---@field option? mcp-tools.Option nil: a table of options
---@field children table<string, mcp-tools.OptionNode>

---@type mcp-tools.OptionNode
local tree = { children = {} }

for _, option in ipairs(options) do
  local node = tree
  for key in option.path:gmatch('[^.]+') do
    node.children[key] = node.children[key] or { children = {} }
    node = node.children[key]
  end
  node.option = option
end

---@param node mcp-tools.OptionNode
---@return any
local function defaults(node)
  if node.option then
    return vim.deepcopy(node.option.default)
  end
  return vim.tbl_map(defaults, node.children)
end

--- Replaces lists and single values. Merges maps by key, so a later `setup{tools = {dap = true}}` adds a group. In a
--- table with both, list items replace the earlier list items; if the option is a map, they are added.
---@param option mcp-tools.Option
---@param old any
---@param new any
---@return any
local function merged_value(option, old, new)
  if type(new) ~= 'table' or vim.is_callable(new) then
    return new
  elseif option.type ~= 'map' and vim.islist(new) then
    return vim.list_extend({}, new)
  end
  local out = {}
  local replaces = option.type ~= 'map' and new[1] ~= nil
  for key, value in pairs(type(old) == 'table' and old or { old }) do
    if not (replaces and type(key) == 'number') then
      out[key] = value
    end
  end
  for key, value in pairs(new) do
    if type(key) ~= 'number' then
      out[key] = value
    end
  end
  for _, value in ipairs(new) do
    local exists = vim.iter(ipairs(out)):any(function(_, other)
      return vim.deep_equal(other, value)
    end)
    if not exists then
      table.insert(out, value)
    end
  end
  return out
end

---@param node mcp-tools.OptionNode
---@param old table
---@param given table
---@return table
local function merge(node, old, given)
  local out = vim.tbl_extend('force', {}, old)
  for key, value in pairs(given) do
    local child = node.children[key]
    if child and child.option then
      out[key] = merged_value(child.option, old[key], value)
    elseif child then
      out[key] = merge(child, old[key], value)
    end
  end
  return out
end

local values ---@type table
local was_setup = false
local refusal ---@type string?

---@param new table
local function use(new)
  values = new
  log.level = log.levels[new.bridge.log_level] or log.levels.info
end

use(defaults(tree))

--- Warns once of integrations of guill/mcp-tools.nvim that do not exist here. They have no effect.
---@param integrations? table<string, boolean|table>
local function warn_of_integrations(integrations)
  local on = {}
  for name, enabled in pairs(integrations or {}) do
    if enabled and name ~= 'ampcode' and name ~= 'opencode' then
      table.insert(on, tostring(name))
    end
  end
  if #on > 0 then
    table.sort(on)
    local text = 'integrations (%s): unknown integration'
    local remedy = 'Use `:McpTools connect`'
    require('mcp-tools.notify').once('integrations', 'warn', text:format(table.concat(on, ', ')), remedy)
  end
end

--- Checks `opts` and merges them into the current options. Throws one error with all faults; then nothing has changed.
--- Warns of unknown keys and ignores them.
---@param opts? table
function M.change(opts)
  opts = opts == nil and {} or opts
  if not jit then
    error('mcp-tools: mcp-tools.nvim requires a Neovim with LuaJIT', 0)
  end
  if type(opts) ~= 'table' then
    error(('mcp-tools: setup() requires a table, got %s'):format(type(opts)), 0)
  end
  local faults, unknown = require('mcp-tools.config.check')(opts, tree)
  if #faults > 0 then
    error('mcp-tools: setup() failed; none of its options were applied:\n  ' .. table.concat(faults, '\n  '), 0)
  end
  use(merge(tree, values, opts))
  if #unknown > 0 then
    local text = ('unknown option%s %s; ignored by setup()'):format(
      #unknown > 1 and 's' or '',
      table.concat(unknown, ', ')
    )
    require('mcp-tools.notify').warn(text)
  end
  warn_of_integrations(opts.integrations)
end

--- Applies the user's options, and allows the bridge to start automatically.
---@param opts? table
function M.setup(opts)
  local ok, err = pcall(M.change, opts)
  refusal = not ok and tostring(err) or nil
  if not ok then
    error(err, 0)
  end
  was_setup = true
end

--- Returns the value at a dotted path (`config.get('bridge.port')`); without a path, all options. Tables are not
--- copied and must not be changed.
---@param path? string
---@return any
function M.get(path)
  local node = values
  if not path then
    return node
  end
  for key in path:gmatch('[^.]+') do
    if type(node) ~= 'table' then
      return nil
    end
    node = node[key]
  end
  return node
end

--- Returns whether `setup()` was called with valid options.
---@return boolean
function M.is_setup()
  return was_setup
end

--- Returns the error of the last call of `setup()`; nil if it succeeded.
---@return string?
function M.refusal()
  return refusal
end

--- Restores the defaults, as if `setup()` had never been called. For tests.
function M.reset()
  use(defaults(tree))
  was_setup, refusal = false, nil
end

return M

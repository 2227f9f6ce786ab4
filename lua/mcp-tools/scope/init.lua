--- Scopes: which tools a client sees and may call, and how they are published to it.

local config = require('mcp-tools.config')
local log = require('mcp-tools.log')
local source = require('mcp-tools.registry.source')

local M = {}

---@class mcp-tools.Scope what a client requested, as the bridge sends it
---@field tools string[]? names of groups and tools, with or without the prefix; nil = all
---@field read_only boolean?
---@field catalogue ('direct'|'search')?
---@field agent string? name of the terminal agent; it sees only its own tools

---@class mcp-tools.ScopeRule
---@field on table<string, true>? nil = all
---@field off table<string, true>
---@field read_only boolean

---@class mcp-tools.View what one client sees
---@field client string? its name
---@field scope mcp-tools.Scope?
---@field catalogue 'direct'|'search'
---@field agent string? name of a terminal agent, whose tools are the only ones
---@field private rules mcp-tools.ScopeRule[] a tool must pass all of them
local View = {}
View.__index = View

---@param tools string|table|nil a name, a list of names, or a map of names to true or false
---@param read_only boolean?
---@return mcp-tools.ScopeRule
local function rule_of(tools, read_only)
  local rule = { off = {}, read_only = read_only == true }
  if type(tools) == 'string' then
    tools = { tools }
  end
  local is_list = type(tools) == 'table' and vim.islist(tools)
  for key, value in pairs(tools or {}) do
    local name = type(key) == 'string' and key or value
    if value == false then
      rule.off[name] = true
    elseif value then
      rule.on = rule.on or {}
      rule.on[name] = true
    end
  end
  if is_list and not rule.on then
    rule.on = {} -- an empty list means no tools; a map with only `false` values leaves the others
  end
  return rule
end

--- Returns whether a tool passes a rule. Its name takes precedence over its group, and its group over "all" and
--- "recommended".
---@param rule mcp-tools.ScopeRule
---@param definition mcp-tools.Definition
---@param prefix string
---@return boolean
local function passes(rule, definition, prefix)
  local on, off, name, group = rule.on, rule.off, definition.name, source.group(definition)
  local trusted = not source.is_mounted(definition) and definition.annotations
  if rule.read_only and not (trusted and trusted.read_only == true) then
    return false
  elseif off[name] or off[prefix .. name] then
    return false
  elseif not on then
    return not off[group]
  elseif on[name] or on[prefix .. name] then
    return true
  elseif off[group] then
    return false
  end
  return on.all or on[group] or on.recommended and definition.recommended or false
end

--- Tools of terminal agents, by agent and name. No other client sees them.
---@type table<string, table<string, mcp-tools.Definition>>
local agent_tools = {}

--- Sets the tools of an agent; nil removes the agent.
---@param agent string name of the agent
---@param definitions mcp-tools.Definition[]?
function M.set_agent_tools(agent, definitions)
  agent_tools[agent] = definitions and {}
  for _, definition in ipairs(definitions or {}) do
    agent_tools[agent][definition.name] = definition
  end
end

--- Returns a tool of the view's agent.
---@param name any
---@return mcp-tools.Definition?
function View:agent_tool(name)
  local tools = agent_tools[self.agent]
  return tools and type(name) == 'string' and tools[name] or nil
end

--- Returns all tools of the view's agent, sorted by name.
---@return mcp-tools.Definition[]
function View:agent_tools()
  local list = vim.tbl_values(agent_tools[self.agent] or {})
  table.sort(list, function(a, b)
    return a.name < b.name
  end)
  return list
end

--- Returns whether the client sees this tool.
---@param definition mcp-tools.Definition
---@return boolean
function View:allows(definition)
  if self.agent then
    return self:agent_tool(definition.name) == definition
  end
  local prefix = config.get().tool_prefix
  for _, rule in ipairs(self.rules) do
    if not passes(rule, definition, prefix) then
      return false
    end
  end
  return true
end

--- Returns the tools of a list that the client sees.
---@param list mcp-tools.Definition[]
---@return mcp-tools.Definition[]
function View:filter(list)
  local seen = vim.tbl_filter(function(definition)
    return self:allows(definition)
  end, list)
  if #seen == 0 and #list > 0 then
    log.warn('a client sees no tool: no enabled tool is in its scope: %s', vim.inspect(self.scope or self.client))
  end
  return seen
end

--- Returns the view of a client; nil if it sees all tools directly.
---@param scope mcp-tools.Scope?
---@param client string? name as the client reports it
---@return mcp-tools.View?
function M.view(scope, client)
  if scope and scope.agent then -- does not depend on options
    return setmetatable({ catalogue = 'direct', agent = scope.agent, rules = {} }, View)
  end
  local options = client and config.get().clients[client]
  if not scope and not options and config.get().catalogue == 'direct' then
    return nil
  end
  local rules, catalogue = {}, config.get().catalogue
  if options then
    table.insert(rules, rule_of(options.tools, options.readonly))
    catalogue = options.catalogue or catalogue
  end
  if scope and (scope.tools or scope.read_only) then
    table.insert(rules, rule_of(scope.tools, scope.read_only))
  end
  catalogue = scope and scope.catalogue or catalogue
  return setmetatable({ client = client, scope = scope, catalogue = catalogue, rules = rules }, View)
end

return M

--- The registry: everything that can be offered to a client, by kind and name.
---
--- Receives: definitions, from bundled files, other plugins and the person's configuration, all by `add`.
--- Sends: normalised definitions to the executor and the wire; "changed" to whoever listens.
--- Does not know about: calls, channels, policy.
---
--- `new()` makes one of its own, as specs do; core.lua owns that of this editor. Requires inside functions are start-up
--- cost: most plugins register tools alone.

local definition = require('mcp-tools.registry.definition.tool')
local note = require('mcp-tools.registry.note')

local M = {}

---@alias mcp-tools.Kind
---| 'tools'      # by name
---| 'resources'  # by URI
---| 'templates'  # resources with variables in their URI, by the template's text
---| 'prompts'    # by name

---@class mcp-tools.Source where a definition comes from
---@field group string? of bundled tools
---@field file string? the file that holds its handler
---@field origin 'bundled'|'registered'|'python'|'mounted' what a definition of another says of itself does not count
---@field name string? of the mounted server, the module, or the file that a plugin ships
---@field found_in string? the file that was found to hold the definition

---@class mcp-tools.Registry
---@field entries table<mcp-tools.Kind, table<string, table>>
---@field shelf table<mcp-tools.Kind, table<string, table>> registered, but switched off: nobody is offered it
---@field revisions table<mcp-tools.Kind, integer>
---@field refused table<string, string> name (of others than tools: kind and name) → the faults of its last definition
---  that was not taken in; only of those without a source: who loads files answers for what they hold
local Registry = {}
Registry.__index = Registry

--- Makes an empty registry.
---@param opts? { prefix?: (fun(): string), is_off?: fun(kind: mcp-tools.Kind, entry: table): boolean } the prefix of
---  published names; what is switched off
---@return mcp-tools.Registry
function M.new(opts)
  return setmetatable({
    prefix = opts and opts.prefix or function()
      return ''
    end,
    is_off = opts and opts.is_off or function()
      return false
    end,
    entries = { tools = {}, resources = {}, templates = {}, prompts = {} },
    shelf = { tools = {}, resources = {}, templates = {}, prompts = {} },
    revisions = { tools = 0, resources = 0, templates = 0, prompts = 0 },
    by_folded = {},
    listeners = {},
    refused = {},
  }, Registry)
end

--- Calls `fn(kind, revision)` after each change.
---@param fn fun(kind: mcp-tools.Kind, revision: integer)
---@return fun() stop
function Registry:on_change(fn)
  table.insert(self.listeners, fn)
  return function()
    self.listeners = vim.tbl_filter(function(listener)
      return listener ~= fn
    end, self.listeners)
  end
end

function Registry:changed(kind)
  self.revisions[kind] = self.revisions[kind] + 1
  for _, fn in ipairs(self.listeners) do
    fn(kind, self.revisions[kind])
  end
end

--- The form of a name in which clients can no longer tell two apart.
local function folded(name)
  return (name:gsub('[.%-/]', '_'))
end

---@return table? normalised
---@return string? fault
local function accepted(self, def)
  local normalised, fault = definition.normalise(def)
  if not normalised then
    return nil, fault
  end
  local twin = self.by_folded[folded(normalised.name)]
  if twin and twin ~= normalised.name then
    local text = "tool '%s': name: clients cannot tell it from '%s', which is registered already"
    return nil, text:format(normalised.name, twin)
  end
  return normalised
end

local WHAT = { tools = 'tool', resources = 'resource', templates = 'resource', prompts = 'prompt' }

--- The name under which a refusal is kept.
local function label(what, name)
  return what == 'tool' and name or ("%s '%s'"):format(what, name)
end

--- Notes why a definition is not offered, until one of that name is.
---@param what 'tool'|'resource'|'prompt'
---@param name string
---@param fault string
function Registry:refuse(what, name, fault)
  self.refused[label(what, name)] = fault
end

---@param what string
---@param name any
---@param fault string
---@param source mcp-tools.Source?
local function refuse(self, what, name, fault, source)
  if not source then
    self:refuse(what, type(name) == 'string' and name or '?', fault)
  end
  return nil, fault
end

--- Takes in a definition under its key, or replaces the one of that key.
---@param self mcp-tools.Registry
---@param kind mcp-tools.Kind
---@param what string
---@param key string
---@param normalised table
---@param source mcp-tools.Source?
local function put(self, kind, what, key, normalised, source)
  local offered = self.entries[kind][key]
  self.refused[label(what, key)] = nil
  note(("%s '%s'"):format(what, key), normalised, offered or self.shelf[kind][key], source)
  local off = self.is_off(kind, normalised)
  self.entries[kind][key] = not off and normalised or nil
  self.shelf[kind][key] = off and normalised or nil
  if offered or not off then
    self:changed(kind)
  end
  return normalised
end

--- Takes in a tool, or replaces the one of that name.
---@param def mcp-tools.Tool
---@param source? mcp-tools.Source
---@return table? normalised
---@return string? fault every fault of the definition, a line each; nothing has changed then
function Registry:add_tool(def, source)
  local normalised, fault = accepted(self, def)
  if not normalised then
    return refuse(self, 'tool', type(def) == 'table' and def.name, fault, source)
  end
  self.by_folded[folded(normalised.name)] = normalised.name
  return put(self, 'tools', 'tool', normalised.name, normalised, source)
end

--- Takes in a resource or a template of resources, or replaces the one of that URI.
---@param def mcp-tools.Resource
---@param source? mcp-tools.Source
---@return mcp-tools.ResourceDefinition? normalised
---@return string? fault every fault of the definition, a line each; nothing has changed then
function Registry:add_resource(def, source)
  local normalised, fault = require('mcp-tools.registry.definition.resource').normalise(def)
  if not normalised then
    return refuse(self, 'resource', type(def) == 'table' and (def.uri_template or def.uri), fault, source)
  end
  local kind = normalised.template and 'templates' or 'resources'
  return put(self, kind, 'resource', normalised.key, normalised, source)
end

--- Takes in a prompt, or replaces the one of that name.
---@param def mcp-tools.Prompt
---@param source? mcp-tools.Source
---@return mcp-tools.PromptDefinition? normalised
---@return string? fault every fault of the definition, a line each; nothing has changed then
function Registry:add_prompt(def, source)
  local normalised, fault = require('mcp-tools.registry.definition.prompt').normalise(def)
  if not normalised then
    return refuse(self, 'prompt', type(def) == 'table' and def.name, fault, source)
  end
  return put(self, 'prompts', 'prompt', normalised.key, normalised, source)
end

---@param self mcp-tools.Registry
---@param kind mcp-tools.Kind
---@param key string
---@return boolean removed
local function remove(self, kind, key)
  local offered = self.entries[kind][key]
  local there = offered or self.shelf[kind][key]
  self.entries[kind][key], self.shelf[kind][key] = nil, nil
  if there then
    self.refused[label(WHAT[kind], key)] = nil
  end
  if offered then
    self:changed(kind)
  end
  return there ~= nil
end

--- Takes a tool out. Calls of it that run go on.
---@param name string bare
---@return boolean removed
function Registry:remove_tool(name)
  if self:known('tools', name) then
    self.by_folded[folded(name)] = nil
  end
  return remove(self, 'tools', name)
end

--- Takes a resource or template out. Reads of it that run go on.
---@param key string its `uri` or `uri_template`
---@return boolean removed
function Registry:remove_resource(key)
  return remove(self, 'resources', key) or remove(self, 'templates', key)
end

--- Takes a prompt out.
---@param name string
---@return boolean removed
function Registry:remove_prompt(name)
  return remove(self, 'prompts', name)
end

---@param from table<string, table>
---@param to table<string, table>
---@param off boolean
---@return boolean moved
local function move(self, kind, from, to, off)
  local moved = false
  for key, entry in pairs(from) do
    if self.is_off(kind, entry) == off then
      to[key], from[key], moved = entry, nil, true
    end
  end
  return moved
end

--- Offers what is no longer switched off, and takes from the offer what now is. Calls that run go on.
function Registry:sift()
  for kind, entries in pairs(self.entries) do
    local away = move(self, kind, entries, self.shelf[kind], true)
    if move(self, kind, self.shelf[kind], entries, false) or away then
      self:changed(kind)
    end
  end
end

--- What is registered under a key, offered or switched off.
---@param kind mcp-tools.Kind
---@param key string
---@return table?
function Registry:known(kind, key)
  return self.entries[kind][key] or self.shelf[kind][key]
end

--- A tool that is offered, by its bare name.
---@param name string
---@return table?
function Registry:get(name)
  return self.entries.tools[name]
end

--- A tool by its published name, else by its bare one.
---@param name string
---@return table?
function Registry:find_tool(name)
  local prefix = self.prefix()
  if prefix ~= '' and name:sub(1, #prefix) == prefix then
    local found = self.entries.tools[name:sub(#prefix + 1)]
    if found then
      return found
    end
  end
  return self.entries.tools[name]
end

--- All of a kind, sorted by what they are called by: tools and prompts by name, resources by URI.
---@param kind mcp-tools.Kind
---@return table[]
function Registry:list(kind)
  local list = {}
  for _, entry in vim.spairs(self.entries[kind]) do
    list[#list + 1] = entry
  end
  return list
end

--- Takes out everything of a kind.
---@param kind mcp-tools.Kind
function Registry:clear(kind)
  local offered = next(self.entries[kind])
  self.entries[kind], self.shelf[kind] = {}, {}
  if kind == 'tools' then
    self.refused, self.by_folded = {}, {}
  end
  if offered then
    self:changed(kind)
  end
end

return M

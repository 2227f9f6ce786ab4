--- The registry: everything that can be offered to a client, by kind and name.
---
--- Receives: definitions, from bundled files, other plugins and the person's configuration, all by `add`.
--- Sends: normalised definitions to the executor and the wire; "changed" to whoever listens.
--- Does not know about: calls, channels, policy.
---
--- `Registry.new()` makes one of its own (specs do). The module's other functions are guill's API on the editor's one,
--- registry/guill.lua.

local definition = require('mcp-tools.definition')
local log = require('mcp-tools.log')

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
---@field name string? of the mounted server or the module
---@field found_in string? the file that was found to hold the definition

---@class mcp-tools.Registry
---@field entries table<mcp-tools.Kind, table<string, table>>
---@field revisions table<mcp-tools.Kind, integer>
---@field refused table<string, string> name (of others than tools: kind and name) → the faults of its last definition
---  that was not taken in
local Registry = {}
Registry.__index = Registry

--- Makes an empty registry.
---@param opts? { prefix?: fun(): string } the prefix of published names
---@return mcp-tools.Registry
function M.new(opts)
  return setmetatable({
    prefix = opts and opts.prefix or function()
      return ''
    end,
    entries = { tools = {}, resources = {}, templates = {}, prompts = {} },
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

local function file_of(handler)
  local source = debug.getinfo(handler, 'S').source
  return source:sub(1, 1) == '@' and source:sub(2) or nil
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

--- Says in the log what is to be said of a definition that is taken in, and notes where it comes from.
---@param what string
---@param normalised table
---@param old table? what it replaces
---@param source mcp-tools.Source?
local function take_note(what, normalised, old, source)
  if old then
    log.info('%s registered again; the new definition replaces the old one', what)
  end
  for _, note in ipairs(vim.list_extend(vim.list_slice(normalised.repairs), normalised.lint)) do
    log.info('%s: %s', what, note)
  end
  normalised.source = source or { origin = 'registered' }
  normalised.source.file = normalised.source.file or file_of(normalised.handler)
end

--- Takes in a tool, or replaces the one of that name.
---@param def mcp-tools.Tool
---@param source? mcp-tools.Source
---@return table? normalised
---@return string? fault every fault of the definition, a line each; nothing has changed then
function Registry:add_tool(def, source)
  local normalised, fault = accepted(self, def)
  if not normalised then
    self.refused[type(def) == 'table' and tostring(def.name) or '?'] = fault
    return nil, fault
  end
  local name = normalised.name
  self.refused[name] = nil
  take_note(("tool '%s'"):format(name), normalised, self.entries.tools[name], source)
  self.by_folded[folded(name)] = name
  self.entries.tools[name] = normalised
  self:changed('tools')
  return normalised
end

--- Takes a tool out. Calls of it that run go on.
---@param name string bare
---@return boolean removed
function Registry:remove_tool(name)
  if not self.entries.tools[name] then
    return false
  end
  self.entries.tools[name] = nil
  self.by_folded[folded(name)] = nil
  self:changed('tools')
  return true
end

--- Takes in a definition that has a `key`.
---@param self mcp-tools.Registry
---@param kind mcp-tools.Kind
---@param what string
---@param normalised table
---@param source mcp-tools.Source?
local function put(self, kind, what, normalised, source)
  local key = normalised.key
  what = ("%s '%s'"):format(what, key)
  self.refused[what] = nil
  take_note(what, normalised, self.entries[kind][key], source)
  self.entries[kind][key] = normalised
  self:changed(kind)
  return normalised
end

---@param what string
---@param name any
---@param fault string
local function refuse(self, what, name, fault)
  self.refused[("%s '%s'"):format(what, type(name) == 'string' and name or '?')] = fault
  return nil, fault
end

--- Takes in a resource or a template of resources, or replaces the one of that URI.
---@param def mcp-tools.Resource
---@param source? mcp-tools.Source
---@return mcp-tools.ResourceDefinition? normalised
---@return string? fault every fault of the definition, a line each; nothing has changed then
function Registry:add_resource(def, source)
  local normalised, fault = require('mcp-tools.definition.resource').normalise(def)
  if not normalised then
    return refuse(self, 'resource', type(def) == 'table' and (def.uri_template or def.uri), fault)
  end
  return put(self, normalised.template and 'templates' or 'resources', 'resource', normalised, source)
end

--- Takes in a prompt, or replaces the one of that name.
---@param def mcp-tools.Prompt
---@param source? mcp-tools.Source
---@return mcp-tools.PromptDefinition? normalised
---@return string? fault every fault of the definition, a line each; nothing has changed then
function Registry:add_prompt(def, source)
  local normalised, fault = require('mcp-tools.definition.prompt').normalise(def)
  if not normalised then
    return refuse(self, 'prompt', type(def) == 'table' and def.name, fault)
  end
  return put(self, 'prompts', 'prompt', normalised, source)
end

local function remove(self, kind, key)
  if self.entries[kind][key] == nil then
    return false
  end
  self.entries[kind][key] = nil
  self:changed(kind)
  return true
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

--- A tool by its bare name.
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
  if kind == 'tools' then
    self.refused = {}
  end
  if next(self.entries[kind]) then
    self.entries[kind] = {}
    if kind == 'tools' then
      self.by_folded = {}
    end
    self:changed(kind)
  end
end

for name, fn in pairs(require('mcp-tools.registry.guill')) do
  M[name] = fn
end

return M

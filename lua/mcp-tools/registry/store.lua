--- The registry: everything that can be offered to a client, by kind and name.
---
--- Receives: definitions, from bundled files, other plugins and the person's configuration, all by `add`.
--- Sends: normalised definitions to the executor and the wire; "changed" to whoever listens.
--- Does not know about: calls, channels, policy, what is particular to a kind (registry/kinds.lua).
---
--- `new()` makes one of its own, as specs do; core.lua owns that of this editor. Requires inside functions are start-up
--- cost: most plugins register tools alone.

local kinds = require('mcp-tools.registry.kinds')
local log = require('mcp-tools.log')

local M = {}

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
---@field private refused_kind table<string, mcp-tools.Kind> the same names
---@field prefix fun(): string of published names
---@field is_off fun(kind: mcp-tools.Kind, entry: table): boolean
---@field is_pending fun(kind: mcp-tools.Kind): boolean is something still to be added by who made it?
---@field absence fun(name: string): string? why there is no tool of that name, if anybody knows
---@field private listeners (fun(kind: mcp-tools.Kind, revision: integer))[]
---@field private alike table<mcp-tools.Kind, table<string, string>> a form of a key → the key that has it
local Registry = {}
Registry.__index = Registry

--- Makes an empty registry.
---@param opts? { prefix?: (fun(): string), is_off?: (fun(kind: mcp-tools.Kind, entry: table): boolean),
---  is_pending?: (fun(kind: mcp-tools.Kind): boolean), absence?: fun(name: string): string? } the prefix of published
---  names; what is switched off; of what there is more to come; why there is no such tool
---@return mcp-tools.Registry
function M.new(opts)
  local self = setmetatable({
    prefix = opts and opts.prefix or function()
      return ''
    end,
    is_off = opts and opts.is_off or function()
      return false
    end,
    is_pending = opts and opts.is_pending or function()
      return false
    end,
    absence = opts and opts.absence or function() end,
    entries = {},
    shelf = {},
    revisions = {},
    alike = {},
    listeners = {},
    refused = {},
    refused_kind = {},
  }, Registry)
  for _, row in ipairs(kinds.rows) do
    local kind = row.kind
    self.entries[kind], self.shelf[kind], self.alike[kind], self.revisions[kind] = {}, {}, {}, 0
  end
  return self
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

---@param handler function
---@return string?
local function file_of(handler)
  local source = debug.getinfo(handler, 'S').source
  return source:sub(1, 1) == '@' and source:sub(2) or nil
end

--- Says in the log what is to be said of a definition, and in the definition where it comes from.
---@param what string
---@param normalised table
---@param old table? what it replaces
---@param source mcp-tools.Source?
local function note(what, normalised, old, source)
  if old then
    log.info('%s registered again; the new definition replaces the old one', what)
  end
  for _, text in ipairs(vim.list_extend(vim.list_slice(normalised.repairs), normalised.lint)) do
    log.info('%s: %s', what, text)
  end
  if #normalised.typos > 0 then
    -- Start-up cost: of mistakes alone.
    local first, more = normalised.typos[1], vim.list_slice(normalised.typos, 2)
    -- The remedy before the place: a narrow screen cuts the end.
    local text = table.concat(vim.list_extend({ ('%s (%s)'):format(first, what) }, more), '; ')
    require('mcp-tools.notify').once(what, 'warn', text)
  end
  normalised.source = source or { origin = 'registered' }
  if normalised.source.origin ~= 'mounted' then -- its handler only passes calls on
    normalised.source.file = normalised.source.file or file_of(normalised.handler)
  end
end

--- Another key of the kind that clients cannot tell from this one.
---@param self mcp-tools.Registry
---@param row mcp-tools.KindRow
---@param key string
---@return string?
local function twin_of(self, row, key)
  local twin = row.alike and self.alike[row.kind][row.alike(key)]
  return twin ~= key and twin or nil
end

--- A key that is registered, and that clients cannot tell from this one.
---@param kind mcp-tools.Kind
---@param key string
---@return string?
function Registry:twin(kind, key)
  return twin_of(self, kinds.row(kind), key)
end

--- The name under which a refusal is kept.
---@param row mcp-tools.KindRow
---@param key any
---@return string
local function label(row, key)
  return row.label:format(type(key) == 'string' and key or '?')
end

--- Notes why a definition is not offered, until one of that name is, or it is taken out.
---@param kind mcp-tools.Kind
---@param key any
---@param fault string
function Registry:refuse(kind, key, fault)
  local name = label(kinds.row(kind), key)
  self.refused[name], self.refused_kind[name] = fault, kind
end

--- Takes in a definition, or replaces the one of its key.
---@param kind mcp-tools.Kind 'resources' also for templates
---@param def mcp-tools.Tool|mcp-tools.Resource|mcp-tools.Prompt
---@param source? mcp-tools.Source
---@return table? normalised
---@return string? fault every fault of the definition, a line each; nothing has changed then
function Registry:add(kind, def, source)
  local row, key = kinds.sort(kind, def)
  -- An argument of ours that is misspelt must not be as good as none: what it was to prevent would be done.
  local closed = source ~= nil and source.origin == 'bundled'
  local mounted = source ~= nil and source.origin == 'mounted'
  local normalised, fault = require(row.definition).normalise(def, closed, mounted)
  local twin = normalised and twin_of(self, row, key)
  if twin then
    local text = "%s '%s': name: clients cannot tell it from '%s', which is registered already"
    normalised, fault = nil, text:format(row.what, key, twin)
  end
  if not normalised then
    if not source then
      self:refuse(row.kind, key, fault)
    end
    return nil, fault
  end
  self.refused[label(row, key)] = nil
  if row.alike then
    self.alike[row.kind][row.alike(key)] = key
  end
  local entries, shelf = self.entries[row.kind], self.shelf[row.kind]
  local offered = entries[key]
  note(("%s '%s'"):format(row.what, key), normalised, offered or shelf[key], source)
  local off = self.is_off(row.kind, normalised)
  entries[key] = not off and normalised or nil
  shelf[key] = off and normalised or nil
  if offered or not off then
    self:changed(row.kind)
  end
  return normalised
end

--- `add` for the functions that people call: faults are raised at the caller of such a function.
---@param kind mcp-tools.Kind
---@param def table
function Registry:take(kind, def)
  local _, fault = self:add(kind, def)
  if fault then
    error(fault, 3)
  end
end

--- Takes a definition out. Calls of it that run go on.
---@param kind mcp-tools.Kind 'resources' also for templates
---@param key string the bare name, or the `uri` or `uri_template`
---@return boolean removed
function Registry:remove(kind, key)
  local option = kinds.row(kind).option
  for _, row in ipairs(kinds.rows) do
    if row.option == option then
      self.refused[label(row, key)] = nil
    end
    if row.option == option and self:known(row.kind, key) then
      local offered = self.entries[row.kind][key]
      self.entries[row.kind][key], self.shelf[row.kind][key] = nil, nil
      if row.alike then
        self.alike[row.kind][row.alike(key)] = nil
      end
      if offered then
        self:changed(row.kind)
      end
      return true
    end
  end
  return false
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

--- Takes out everything of a kind, and forgets what was refused of it.
---@param kind mcp-tools.Kind
function Registry:clear(kind)
  local offered = next(self.entries[kind])
  self.entries[kind], self.shelf[kind], self.alike[kind] = {}, {}, {}
  for name in pairs(self.refused) do
    if self.refused_kind[name] == kind then
      self.refused[name] = nil
    end
  end
  if offered then
    self:changed(kind)
  end
end

return M

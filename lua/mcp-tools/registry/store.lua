--- The registry: all definitions, by kind and name, and whether each is on.
---
--- core.lua owns the registry of this editor; specs create their own. Modules of a kind are required inside functions
--- to keep start-up fast: most plugins register only tools.

local kinds = require('mcp-tools.registry.kinds')
local log = require('mcp-tools.log')

local M = {}

---@class mcp-tools.Source where a definition comes from
---@field group string? of bundled tools
---@field file string? the file of its handler
---@field origin 'bundled'|'registered'|'python'|'mounted' annotations of `mounted` definitions are not trusted
---@field name string? of the mounted server, the module, or the file of a plugin
---@field found_in string? the file with the definition
---@field real string? resolved `file`; cached
---@field checked string? the root that `inside` is about
---@field inside boolean? whether it belongs to the project; cached

---@class mcp-tools.Registry
---@field entries table<mcp-tools.Kind, table<string, table>>
---@field disabled table<mcp-tools.Kind, table<string, table>> registered, but switched off
---@field revisions table<mcp-tools.Kind, integer>
---@field refused table<string, string> name (with kind, except tools) → faults of its last invalid definition;
---  only without a source, because loaders report the faults of their files
---@field private refused_kind table<string, mcp-tools.Kind> by the same names
---@field prefix fun(): string of published names
---@field is_off fun(kind: mcp-tools.Kind, entry: table): boolean
---@field is_pending fun(kind: mcp-tools.Kind): boolean whether definitions are still being loaded
---@field absence fun(name: string): string? why there is no tool of that name, if known
---@field private listeners (fun(kind: mcp-tools.Kind, revision: integer))[]
---@field private alike table<string, string> `folded` name of a tool → name
local Registry = {}
Registry.__index = Registry

--- Creates an empty registry.
---@param opts? { prefix?: (fun(): string), is_off?: (fun(kind: mcp-tools.Kind, entry: table): boolean),
---  is_pending?: (fun(kind: mcp-tools.Kind): boolean), absence?: fun(name: string): string? } as in mcp-tools.Registry
---@return mcp-tools.Registry
function M.new(opts)
  local function none()
    return nil
  end
  opts = opts or {}
  local self = setmetatable({
    prefix = opts.prefix or function()
      return ''
    end,
    is_off = opts.is_off or none,
    is_pending = opts.is_pending or none,
    absence = opts.absence or none,
    entries = {},
    disabled = {},
    revisions = {},
    alike = {},
    listeners = {},
    refused = {},
    refused_kind = {},
  }, Registry)
  for _, row in ipairs(kinds.rows) do
    local kind = row.kind
    self.entries[kind], self.disabled[kind], self.revisions[kind] = {}, {}, 0
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

--- Logs the findings of a definition and sets its source.
---@param what string
---@param normalized table
---@param old table? what it replaces
---@param source mcp-tools.Source?
local function note(what, normalized, old, source)
  if old then
    log.info('%s was replaced by a new definition', what)
  end
  for _, text in ipairs(normalized.lint) do
    log.info('%s: %s', what, text)
  end
  normalized.source = source or { origin = 'registered' }
  if normalized.source.origin ~= 'mounted' then -- a mounted tool's handler is ours
    local source_of_handler = debug.getinfo(normalized.handler, 'S').source
    normalized.source.file = normalized.source.file or source_of_handler:match('^@(.*)$')
  end
end

--- Replaces the characters that some clients replace in names.
---@param name string
---@return string
local function folded(name)
  return (name:gsub('[.%-/]', '_'))
end

--- Returns another registered key that clients cannot distinguish from this one.
---@param kind mcp-tools.Kind
---@param key string
---@return string?
function Registry:twin(kind, key)
  local twin = kinds.row(kind).grouped and self.alike[folded(key)]
  return twin ~= key and twin or nil
end

--- Returns the key of `refused`.
---@param row mcp-tools.KindRow
---@param key any
---@return string
local function label(row, key)
  key = type(key) == 'string' and key or '?'
  return row.grouped and key or ("%s '%s'"):format(row.what, key)
end

--- Adds a definition, or replaces the one with the same key.
---@param kind mcp-tools.Kind 'resources' also for templates
---@param def mcp-tools.Tool|mcp-tools.Resource|mcp-tools.Prompt
---@param source? mcp-tools.Source
---@return table? normalized
---@return string? fault all faults of the definition, one per line; then nothing has changed
function Registry:add(kind, def, source)
  local row, key = kinds.row_of(kind, def)
  -- Bundled tools refuse unknown arguments: a misspelled one must not be ignored.
  local closed = source ~= nil and source.origin == 'bundled'
  local mounted = source ~= nil and source.origin == 'mounted'
  local normalized, fault = require(row.definition).normalize(def, closed, mounted)
  local twin = normalized and self:twin(row.kind, key)
  if twin then
    local text = "%s '%s': name: clients cannot distinguish it from '%s', which is already registered"
    normalized, fault = nil, text:format(row.what, key, twin)
  end
  if not normalized then
    if not source then
      local name = label(row, key)
      self.refused[name], self.refused_kind[name] = fault, row.kind
    end
    return nil, fault
  end
  self.refused[label(row, key)] = nil
  if row.grouped then
    self.alike[folded(key)] = key
  end
  local entries, disabled = self.entries[row.kind], self.disabled[row.kind]
  local enabled = entries[key]
  note(("%s '%s'"):format(row.what, key), normalized, enabled or disabled[key], source)
  local off = self.is_off(row.kind, normalized)
  entries[key] = not off and normalized or nil
  disabled[key] = off and normalized or nil
  if enabled or not off then
    self:changed(row.kind)
  end
  return normalized
end

--- `add` for public functions: throws faults, with the position of the public function's caller.
---@param kind mcp-tools.Kind
---@param def table
function Registry:add_or_throw(kind, def)
  local _, fault = self:add(kind, def)
  if fault then
    error(fault, 3)
  end
end

--- Removes a definition. Its running calls continue.
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
      local enabled = self.entries[row.kind][key]
      self.entries[row.kind][key], self.disabled[row.kind][key] = nil, nil
      if row.grouped then
        self.alike[folded(key)] = nil
      end
      if enabled then
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
    if (self.is_off(kind, entry) or false) == off then
      to[key], from[key], moved = entry, nil, true
    end
  end
  return moved
end

--- Switches definitions on and off as `is_off` says. Running calls continue.
function Registry:apply_options()
  for kind, entries in pairs(self.entries) do
    local removed = move(self, kind, entries, self.disabled[kind], true)
    if move(self, kind, self.disabled[kind], entries, false) or removed then
      self:changed(kind)
    end
  end
end

--- Returns the definition with a key, whether it is on or off.
---@param kind mcp-tools.Kind
---@param key string
---@return table?
function Registry:known(kind, key)
  return self.entries[kind][key] or self.disabled[kind][key]
end

--- Returns a tool that is on, by its bare name.
---@param name string
---@return table?
function Registry:get(name)
  return self.entries.tools[name]
end

--- Returns a name without the prefix of published names.
---@param name string
---@return string
function Registry:bare(name)
  local prefix = self.prefix()
  return name:sub(1, #prefix) == prefix and name:sub(#prefix + 1) or name
end

--- Returns a tool that is on, by its published or bare name.
---@param name string
---@return table?
function Registry:find_tool(name)
  return self.entries.tools[self:bare(name)] or self.entries.tools[name]
end

--- Returns the tool that is on and accepts an older name.
---@param name string published or bare
---@return table? definition
---@return table|function|nil alias how the arguments are mapped; see `mcp-tools.Definition.aliases`
function Registry:find_alias(name)
  name = self:bare(name)
  for _, definition in pairs(self.entries.tools) do
    local alias = definition.aliases and definition.aliases[name]
    if alias then
      return definition, alias
    end
  end
end

--- Returns all definitions of a kind that are on: tools and prompts sorted by name, resources by URI.
---@param kind mcp-tools.Kind
---@return table[]
function Registry:list(kind)
  local list = {}
  for _, entry in vim.spairs(self.entries[kind]) do
    list[#list + 1] = entry
  end
  return list
end

--- Removes all definitions and faults of a kind.
---@param kind mcp-tools.Kind
function Registry:clear(kind)
  local had_enabled = next(self.entries[kind]) ~= nil
  self.entries[kind], self.disabled[kind] = {}, {}
  self.alike = kinds.row(kind).grouped and {} or self.alike
  for name in pairs(self.refused) do
    if self.refused_kind[name] == kind then
      self.refused[name] = nil
    end
  end
  if had_enabled then
    self:changed(kind)
  end
end

return M

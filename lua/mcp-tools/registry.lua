--- The registry: everything that can be offered to a client, by kind and name.
---
--- Receives: definitions, from bundled files, other plugins and the person's configuration, all by `add`.
--- Sends: normalised definitions to the executor and the wire; "changed" to whoever listens.
--- Does not know about: calls, channels, policy.
---
--- `Registry.new()` makes one of its own (specs do). The module's other functions are guill's API on the editor's one.

local definition = require('mcp-tools.definition')
local log = require('mcp-tools.log')

local M = {}

---@alias mcp-tools.Kind 'tools'|'resources'|'prompts'

---@class mcp-tools.Source where a definition comes from
---@field group string? of bundled tools
---@field file string? the file that holds its handler
---@field origin 'bundled'|'registered'

---@class mcp-tools.Registry
---@field entries table<mcp-tools.Kind, table<string, table>>
---@field revisions table<mcp-tools.Kind, integer>
---@field refused table<string, string> name → the faults of its last definition that was not taken in
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
    entries = { tools = {}, resources = {}, prompts = {} },
    revisions = { tools = 0, resources = 0, prompts = 0 },
    by_folded = {},
    listeners = {},
    refused = {},
  }, Registry)
end

--- Calls `fn(kind, revision)` after each change.
---@param fn fun(kind: mcp-tools.Kind, revision: integer)
function Registry:on_change(fn)
  table.insert(self.listeners, fn)
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
  if self.entries.tools[name] then
    log.info("tool '%s' registered again; the new definition replaces the old one", name)
  end
  for _, note in ipairs(vim.list_extend(vim.list_slice(normalised.repairs), normalised.lint)) do
    log.info("tool '%s': %s", name, note)
  end
  normalised.source = source or { origin = 'registered' }
  normalised.source.file = normalised.source.file or file_of(normalised.handler)
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

--- All of a kind, sorted by name.
---@param kind mcp-tools.Kind
---@return table[]
function Registry:list(kind)
  local list = vim.tbl_values(self.entries[kind])
  table.sort(list, function(a, b)
    return a.name < b.name
  end)
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

-- guill's module API, on the registry of this editor ---------------------------------------------------------------

local function core()
  return require('mcp-tools.core').get()
end

--- Registers a tool; see `require('mcp-tools').register`.
---@param def mcp-tools.Tool
function M.register(def)
  local _, fault = core().registry:add_tool(def)
  if fault then
    error(fault, 2)
  end
end

---@param name string
function M.unregister(name)
  core().registry:remove_tool(name)
end

--- Every tool: name → `{ name, description, args }`.
---@return table<string, { name: string, description: string, args: table? }>
function M.list()
  local list = {}
  for _, tool in ipairs(core().registry:list('tools')) do
    list[tool.name] = { name = tool.name, description = tool.description, args = tool.args }
  end
  return list
end

---@param name string
---@return table? definition
function M.get(name)
  return core().registry:get(name)
end

---@param name string
---@return boolean
function M.has(name)
  return core().registry:get(name) ~= nil
end

---@return integer
function M.count()
  return #core().registry:list('tools')
end

--- The reply shapes that guill's callers know.
---@param call mcp-tools.Call
local function reply(call)
  if not call:ended() then
    return { done = false }
  end
  local outcome = call.outcome
  if outcome.error then
    return { done = true, error = outcome.error.message }
  end
  return { done = true, result = outcome.value }
end

--- Runs a tool by hand. Poll with `get_result` when it is pending.
---@param name string
---@param args? table
---@return { done: true, result: any, error: string? }|{ pending: true, task_id: string, timeout: integer }
function M.execute(name, args)
  local executor = core().executor
  local call = executor:execute(name, vim.deepcopy(args), { host = 'nvim', keep = true })
  if call:ended() then
    executor:acknowledge({ call.id })
    return reply(call)
  end
  return { pending = true, task_id = call.id, timeout = call.timeout }
end

--- What a pending call has come to. The answer is repeated until it is forgotten, 5 minutes after the end.
---@param task_id string
---@return { done: boolean, result: any, error: string? }
function M.get_result(task_id)
  local call = core().executor:get(task_id)
  if not call then
    return { done = true, error = ('Unknown or expired task: %s'):format(tostring(task_id)) }
  end
  return reply(call)
end

--- Cancels a pending call; the tool is told.
---@param task_id string
---@return { cancelled: boolean } false when there was nothing to cancel
function M.cancel_task(task_id)
  return { cancelled = core().executor:cancel(task_id, 'user') }
end

---@return integer
function M.pending_count()
  return #core().executor:pending()
end

--- Takes out every tool.
function M.clear()
  core().registry:clear('tools')
end

--- Cancels every pending call.
function M.clear_pending()
  core().executor:cancel_where(function()
    return true
  end, 'user')
end

return M

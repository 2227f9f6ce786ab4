--- Exposes tools to AI assistants inside Neovim: lists them for their models, calls them, returns text.

local core = require('mcp-tools.core')
local errors = require('mcp-tools.errors')
local json = require('mcp-tools.util.json')
local log = require('mcp-tools.log')
local results = require('mcp-tools.calls.result')
local scope = require('mcp-tools.scope')
local tool = require('mcp-tools.registry.definition.tool')
local tool_search = require('mcp-tools.scope.tool_search')
local user = require('mcp-tools.callers.user')
local utf8 = require('mcp-tools.util.utf8')
local validate = require('mcp-tools.util.validate')

local M = {}

--- The number of tools that each assistant got last, for health.
---@type table<string, integer>
M.counts = {}

---@class mcp-tools.AssistantOpts
---@field tools? string|string[] names of groups and tools (default: all that are on)
---@field ['readonly']? boolean only tools that change nothing

--- A tool as an assistant passes it to its model.
---@class mcp-tools.ExposedTool
---@field name string published
---@field description string
---@field parameters table JSON Schema
---@field extras table the definition's `callers.<host>`

---@class mcp-tools.AssistantHooks
---@field session? string the conversation: approval "for this session" applies to it
---@field progress? fun(progress: mcp-tools.Progress)
---@field state? fun(state: any) an intermediate result
---@field log? fun(level: string, data: any)

---@class mcp-tools.AssistantHandle
---@field id string the call
---@field cancel fun(self, reason?: 'user'|'session_closed'): boolean

---@class mcp-tools.AssistantOutcome
---@field ok boolean
---@field text string for the model; an error's text as well
---@field content table[] the same as MCP content blocks
---@field value any the tool's result
---@field error mcp-tools.Error?

--- Maximum length of a tool's name in bytes.
local MAX_NAME = 64
local OPTIONS = { tools = true, readonly = true }

--- Raises an error for an invalid option: with a mistyped one, a model would get all tools.
---@param opts table
---@param more? table<string, type|'callable'> further valid options
function M.check(opts, more)
  validate('opts', opts, 'table')
  for key, value in pairs(opts) do
    if more and more[key] then
      validate('opts.' .. key, value, more[key])
    elseif not OPTIONS[key] then
      error(('opts.%s: unknown option'):format(key), 2)
    end
  end
  local tools = opts.tools
  validate('opts.readonly', opts.readonly, 'boolean', true)
  if type(tools) == 'string' then
    return
  end
  validate('opts.tools', tools, 'table', true)
  for i, name in pairs(tools or {}) do
    validate(('opts.tools[%s]'):format(i), name, 'string')
  end
  if tools and not vim.islist(tools) then
    error('opts.tools: must be a list of names of groups and tools', 2)
  end
end

--- Returns the scope of an assistant: its options and the option `clients` restrict the tools.
---@param host string
---@param opts mcp-tools.AssistantOpts
---@return mcp-tools.View?
local function view_of(host, opts)
  M.check(opts)
  local tools = opts.tools
  if type(tools) == 'string' then
    tools = { tools }
  end
  return scope.view((tools or opts.readonly) and { tools = tools, read_only = opts.readonly } or nil, host)
end

---@type table<string, true>
local warned = {}

--- Returns whether model services accept the name. One invalid name would make them refuse all tools.
---@param name string
---@return boolean
local function has_valid_name(name)
  local fits = #name <= MAX_NAME and name:find('^[%w_-]+$') ~= nil
  if not fits and not warned[name] then
    warned[name] = true
    log.warn("assistants do not get the tool '%s': model services allow only 64 characters of A-Z a-z 0-9 _ -", name)
  end
  return fits
end

--- Returns the tools for an assistant's model, by name. Loads all definitions first.
---@param host string
---@param opts? mcp-tools.AssistantOpts
---@return mcp-tools.ExposedTool[]
function M.offered(host, opts)
  local view = view_of(host, opts or {})
  local registry = core.get().registry
  local list = registry:list('tools')
  if view and view.catalogue == 'search' then
    list = tool_search.list()
  elseif view then
    list = view:filter(list)
  end
  local exposed = {}
  for _, definition in ipairs(list) do
    local name = tool.published_name(definition, registry.prefix())
    if has_valid_name(name) then
      table.insert(exposed, {
        name = name,
        description = definition.description,
        parameters = vim.deepcopy(definition.input_schema),
        extras = vim.deepcopy(definition.callers and definition.callers[host] or {}),
      })
    end
  end
  M.counts[host] = #exposed
  return exposed
end

--- Converts a content block to text.
---@param block table of MCP
---@return string
local function text_of_block(block)
  if block.type == 'text' then
    return block.text
  elseif block.type == 'resource' then
    return block.resource.text or ('[%s, %s]'):format(block.resource.uri, block.resource.mimeType or 'bytes')
  elseif block.type == 'resource_link' then
    return ('[%s](%s)'):format(block.name, block.uri)
  end
  return ('[%s, %s: not shown here]'):format(block.type, block.mimeType)
end

--- Returns the result as a client would get it.
---@param outcome mcp-tools.Outcome
---@return { content: table[], isError: boolean? }
local function result_of(outcome)
  local payload = assert(outcome.payload)
  if payload.kind ~= 'content' then
    return { content = payload.text and { { type = 'text', text = payload.text } } or {} }
  end
  local result = vim.json.decode(payload.text, { luanil = { object = true } })
  if #result.content == 0 and result.structuredContent then
    result.content[1] = { type = 'text', text = assert(json.encode(result.structuredContent)) }
  end
  return result
end

---@param err mcp-tools.Error
---@return string
local function text_of_error(err)
  local lines = { 'Error: ' .. err.message }
  for _, fault in ipairs(err.errors or {}) do
    if not err.message:find(fault.message, 1, true) then
      table.insert(lines, ('- %s: %s'):format(fault.field, fault.message))
    end
  end
  return table.concat(lines, '\n')
end

---@param err mcp-tools.Error
---@return mcp-tools.AssistantOutcome
local function failed(err)
  local text = text_of_error(err)
  return { ok = false, text = text, content = { { type = 'text', text = text } }, error = err }
end

---@param call mcp-tools.Call
---@return mcp-tools.AssistantOutcome
local function outcome_of(call)
  local outcome = call.outcome
  if outcome.error then
    return failed(outcome.error)
  end
  if outcome.payload.text and utf8.invalid_at(outcome.payload.text) then
    local path = results.bad_bytes(results.value_of(outcome)) or 'result'
    return failed(errors.new('not_serializable', path .. ': bytes that are not UTF-8'))
  end
  local result = result_of(outcome)
  local text = table.concat(vim.tbl_map(text_of_block, result.content), '\n')
  return { ok = not result.isError, text = text, content = result.content, value = results.value_of(outcome) }
end

--- Calls a tool for an assistant's model. `cb` runs once on the main loop, always after this function has returned.
---@param host string
---@param name string with or without the prefix of published names
---@param args table
---@param opts mcp-tools.AssistantOpts those of `offered`
---@param hooks mcp-tools.AssistantHooks
---@param cb fun(outcome: mcp-tools.AssistantOutcome)
---@return mcp-tools.AssistantHandle
function M.start(host, name, args, opts, hooks, cb)
  validate('host', host, 'string')
  validate('name', name, 'string')
  validate('hooks', hooks, 'table')
  validate('cb', cb, 'callable')
  local call = core.for_call('tool', name).executor:execute(name, vim.deepcopy(args), {
    host = host,
    client = { name = host },
    session = hooks.session,
    view = view_of(host, opts),
    capabilities = user.CAPABILITIES,
    listener = user.listener({
      progress = hooks.progress,
      state = hooks.state,
      log = hooks.log,
      done = function(ended)
        cb(outcome_of(ended))
      end,
    }),
  })
  return {
    id = call.id,
    cancel = function(_, reason)
      return call:cancel(reason or 'user')
    end,
  }
end

return M

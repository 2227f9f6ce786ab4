--- The host for assistants that live in this editor: their models see definitions, call tools, and read text.
---
--- Receives: who it is; which tools its person gave it; calls of its model.
--- Sends: calls to the executor, as a client's are, with approval; text for the model, once for each call.
--- Does not know about: any one assistant; each has a file beside this one.

local content = require('mcp-tools.content')
local core = require('mcp-tools.core')
local questions = require('mcp-tools.hosts.questions')
local results = require('mcp-tools.call.result')
local scope = require('mcp-tools.registry.scope')

local M = {}

---@class mcp-tools.AssistantOpts
---@field tools? string|table names of groups and tools, as in the option `tools`; all that are on when left out
---@field readonly? boolean only those that change nothing

--- A tool as a model is told of it.
---@class mcp-tools.Offered
---@field name string published
---@field description string
---@field parameters table JSON Schema
---@field extras table of the definition, `hosts.<host>`

---@class mcp-tools.AssistantHooks
---@field session? string names the conversation: what the person allows for a session is allowed there
---@field progress? fun(progress: mcp-tools.Progress)
---@field state? fun(state: any) an intermediate result
---@field log? fun(level: string, data: any)

---@class mcp-tools.AssistantOutcome
---@field ok boolean
---@field text string for the model
---@field value any as the tool gave it
---@field error mcp-tools.Error?

---@param host string
---@param opts mcp-tools.AssistantOpts
---@return mcp-tools.View?
local function view_of(host, opts)
  local tools = opts.tools
  if type(tools) == 'string' then
    tools = { tools }
  end
  return scope.view(next(opts) and { tools = tools, read_only = opts.readonly } or nil, host)
end

--- The tools that an assistant's model may call, by name.
---@param host string
---@param opts? mcp-tools.AssistantOpts
---@return mcp-tools.Offered[]
function M.offered(host, opts)
  local registry, view = core.get().registry, view_of(host, opts or {})
  local list = registry:list('tools')
  return vim.tbl_map(function(tool)
    return {
      name = registry.prefix() .. tool.name,
      description = tool.description,
      parameters = vim.deepcopy(tool.input_schema),
      extras = tool.hosts and tool.hosts[host] or {},
    }
  end, view and view:filter(list) or list)
end

---@param block table as MCP has it
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

--- What a model reads of a result: the text that a client gets; of blocks that are no text what they are.
---@param value any
---@param call mcp-tools.Call
---@return string? text
---@return mcp-tools.Error? err
local function text_of(value, call)
  local result = content.as_result(value)
  if result then
    local texts = {}
    for i, block in ipairs(result.content) do
      texts[i] = text_of_block((results.block(block)))
    end
    return table.concat(texts, '\n')
  end
  local payload, err = results.payload(value, call.definition, call.max_result)
  return payload and (payload.text or ''), err
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

---@param call mcp-tools.Call
---@return mcp-tools.AssistantOutcome
local function outcome_of(call)
  local value, err = call.outcome.value, call.outcome.error
  local text
  if not err then
    text, err = text_of(value, call)
  end
  local result = content.as_result(value)
  if err then
    return { ok = false, text = text_of_error(err), error = err }
  end
  return { ok = not (result and result.is_error), text = text, value = value }
end

--- Calls a tool for an assistant's model. `cb` runs once, on the main loop, never before this has returned.
---@param host string
---@param name string published or bare
---@param args table
---@param opts mcp-tools.AssistantOpts what `offered` was given
---@param hooks mcp-tools.AssistantHooks
---@param cb fun(outcome: mcp-tools.AssistantOutcome)
---@return mcp-tools.Handle
function M.start(host, name, args, opts, hooks, cb)
  local function later(hook)
    return hook and vim.schedule_wrap(hook) or nil
  end
  local progress, state, log = later(hooks.progress), later(hooks.state), later(hooks.log)
  local done = vim.schedule_wrap(function(call)
    cb(outcome_of(call))
  end)
  local told = false
  local function tell(call)
    if not told then
      told = true
      done(call)
    end
  end
  local call = core.for_call('tool', name).executor:execute(name, vim.deepcopy(args), {
    host = host,
    client = { name = host },
    session = hooks.session,
    view = view_of(host, opts),
    capabilities = questions.CAPABILITIES,
    listener = {
      progress = progress and function(_, call)
        progress(vim.deepcopy(call.latest))
      end,
      state = state and function(_, _, value)
        state(value)
      end,
      log = log and function(_, _, level, data)
        log(level, data)
      end,
      inputs = function(_, call)
        questions.ask(call)
      end,
      done = function(_, call)
        tell(call)
      end,
    },
  })
  if call:ended() then
    tell(call)
  end
  return {
    id = call.id,
    cancel = function()
      return call:cancel('user')
    end,
  }
end

return M

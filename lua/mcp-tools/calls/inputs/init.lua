--- Questions of a tool to its client: to the user (elicitation), to the model (sampling), for its roots or its files.
---
--- The timeout of the call is paused while a question is open. A call has one open question; others are queued.

local errors = require('mcp-tools.errors')
local host_resources = require('mcp-tools.calls.inputs.host_resources')
local json = require('mcp-tools.util.json')
local json_schema = require('mcp-tools.schema')
local log = require('mcp-tools.log')

local M = {}

---@class mcp-tools.Input one request to the client
---@field method 'elicitation/create'|'sampling/createMessage'|'roots/list'
---@field params table? as in MCP

---@class mcp-tools.Inputs the open question of a call
---@field seq integer 1-based number in its call
---@field json string `{"key": {"method": …, "params": …}, …}`

---@class mcp-tools.InputQuestion
---@field requests table<string, mcp-tools.Input>
---@field json string the requests
---@field answered fun(results: table<string, table>?, err: mcp-tools.Error?)

---@class mcp-tools.ElicitResult
---@field action 'accept'|'decline'|'cancel'
---@field content table? the form's values, if accepted

---@class mcp-tools.InputMethod
---@field answer table JSON Schema of an answer
---@field missing? fun(capabilities: table, params: table): table? returns the capabilities that the client lacks
---@field refuse? fun(params: table, call: mcp-tools.Call): mcp-tools.Error? returns why the client cannot be asked
---@field fault? fun(result: table, call: mcp-tools.Call): string?, mcp-tools.ErrorCode? further checks of an answer

local BLOCK = {
  type = 'object',
  properties = { type = { type = 'string' } },
  required = { 'type' },
  ['if'] = { properties = { type = { const = 'text' } } },
  ['then'] = { properties = { text = { type = 'string' } }, required = { 'text' } },
}
local ROOT = { type = 'object', properties = { uri = { type = 'string' } }, required = { 'uri' } }

---@param declared any
---@return table?
local function table_or_nil(declared)
  return type(declared) == 'table' and declared or nil
end

--- The methods of `ctx:request_inputs`.
---@type table<string, mcp-tools.InputMethod>
local methods = {
  ['elicitation/create'] = {
    answer = {
      type = 'object',
      properties = { action = { enum = { 'accept', 'decline', 'cancel' } } },
      required = { 'action' },
    },
    missing = function(capabilities, params)
      local has = table_or_nil(capabilities.elicitation)
      local mode = params.mode or 'form'
      -- Clients of older protocol versions declare no mode; they support forms.
      if has and (has[mode] or (mode == 'form' and not has.url)) then
        return nil
      end
      return { elicitation = mode == 'form' and vim.empty_dict() or { [mode] = vim.empty_dict() } }
    end,
  },
  ['sampling/createMessage'] = {
    answer = {
      type = 'object',
      properties = { content = { anyOf = { BLOCK, { type = 'array', items = BLOCK } } } },
      required = { 'content' },
    },
    missing = function(capabilities, params)
      local has = table_or_nil(capabilities.sampling)
      if not has then
        return { sampling = vim.empty_dict() }
      elseif params.tools and not has.tools then
        return { sampling = { tools = vim.empty_dict() } }
      end
    end,
  },
  ['roots/list'] = {
    answer = { type = 'object', properties = { roots = { type = 'array', items = ROOT } }, required = { 'roots' } },
    missing = function(capabilities)
      return not table_or_nil(capabilities.roots) and { roots = vim.empty_dict() } or nil
    end,
  },
}

---@param name string
---@return mcp-tools.InputMethod
local function method_of(name)
  return methods[name] or host_resources.METHODS[name]
end

---@type table<string, mcp-tools.Validator>
local validators = {}

--- Returns what is wrong with an answer.
---@param name string of the method
---@param result table
---@param call mcp-tools.Call
---@return string? fault
---@return mcp-tools.ErrorCode? code
local function fault_of(name, result, call)
  local method = method_of(name)
  validators[name] = validators[name] or assert(json_schema.compile(method.answer))
  local ok, faults = validators[name]:check(result)
  if not ok then
    return ('%s: %s'):format(faults[1].field, faults[1].message)
  elseif method.fault then
    return method.fault(result, call)
  end
end

--- JSON-RPC error codes of clients → our error codes; others become `tool_error`.
local ERROR_CODES = {
  [-32001] = 'timeout',
  [-32002] = 'not_found',
  [-32004] = 'rate_limited',
  [-32005] = 'too_large',
  [-32601] = 'capability_missing', -- the client declared the capability but does not know the method
  [-32602] = 'validation_error',
}

--- Returns why the client cannot answer the requests; nil if it can.
---@param call mcp-tools.Call
---@param requests table<string, mcp-tools.Input>
---@return mcp-tools.Error?
function M.missing(call, requests)
  if call.kind and call.kind.asks_nothing then
    return errors.new('capability_missing', 'a completion cannot ask the client for anything')
  end
  local needed = {}
  for _, request in pairs(requests) do
    local method, params = method_of(request.method), request.params or {}
    local refused = method.refuse and method.refuse(params, call)
    if refused then
      return refused
    end
    local missing = method.missing and method.missing(call.capabilities, params)
    needed = vim.tbl_deep_extend('force', needed, missing or {})
  end
  if next(needed) == nil then
    return nil
  end
  local names = vim.tbl_keys(needed)
  table.sort(names)
  local text = 'the client does not support what the tool needs: ' .. table.concat(names, ', ')
  local err = errors.new('capability_missing', text)
  err.required = needed
  return err
end

--- Throws if the requests of a tool are invalid.
---@param requests any
function M.check(requests)
  if type(requests) ~= 'table' or next(requests) == nil then
    error('requests must be a table: key → { method = …, params = … }', 3)
  end
  for key, request in pairs(requests) do
    if type(key) ~= 'string' then
      error('the keys of requests must be strings', 3)
    elseif type(request) ~= 'table' or not methods[request.method] then
      error(
        ("requests.%s.method must be one of 'elicitation/create', "):format(key)
          .. "'sampling/createMessage', 'roots/list'",
        3
      )
    elseif request.params ~= nil and type(request.params) ~= 'table' then
      error(('requests.%s.params must be a table'):format(key), 3)
    end
  end
end

--- Returns why the values of a form do not match the requested schema.
---@param request mcp-tools.Input
---@param result table
---@return string?
local function form_fault(request, result)
  local schema = request.params and request.params.requestedSchema
  if request.method ~= 'elicitation/create' or result.action ~= 'accept' or not schema then
    return nil
  end
  local validator, faults = json_schema.compile(schema)
  if not validator then
    return faults[1].message -- cannot happen: `ask` refuses such a schema
  end
  local ok, wrong = validator:check(result.content)
  return not ok and ('content: %s: %s'):format(wrong[1].field, wrong[1].message) or nil
end

---@return mcp-tools.Error
local function refusal(request, error)
  local text = ('the client refused %s: %s'):format(request.method, tostring(error.message))
  local err = errors.new(ERROR_CODES[error.code] or 'tool_error', text)
  local again = type(error.data) == 'table' and error.data.retryAfterMs
  err.retry_after_ms = type(again) == 'number' and again or nil
  return err
end

--- Checks one answer.
---@param call mcp-tools.Call
---@param request mcp-tools.Input
---@param answer any
---@return table? result, mcp-tools.Error? err
local function read(call, request, answer)
  local result = type(answer) == 'table' and answer.result
  if type(answer) == 'table' and type(answer.error) == 'table' then
    return nil, refusal(request, answer.error)
  elseif type(result) ~= 'table' then
    return nil, errors.new('validation_error', ('the answer to %s must be an object'):format(request.method))
  end
  local fault, code = fault_of(request.method, result, call)
  fault = fault or form_fault(request, result)
  if fault then
    local text = ("the client's answer to %s is invalid: %s"):format(request.method, fault)
    return nil, errors.new(code or 'validation_error', text)
  end
  return result
end

--- Checks all answers. If some are missing or invalid, returns the valid ones and an error.
---@param call mcp-tools.Call
---@param requests table<string, mcp-tools.Input>
---@param answers table
---@return table<string, table> results, mcp-tools.Error? err
local function read_all(call, requests, answers)
  local results, faults, first = {}, {}, nil
  for key, request in vim.spairs(requests) do
    local result, err = read(call, request, answers[key])
    results[key] = result
    if err then
      first = first or err
      table.insert(faults, { field = key, message = err.message })
    end
  end
  return results, first and vim.tbl_extend('force', first, { errors = faults })
end

--- Opens the next question, unless one is open.
---@param call mcp-tools.Call
local function advance(call)
  local question = call.questions and call.questions[1]
  if not question or call.inputs or not call:move('await_input') then
    return
  end
  call:stop_clock()
  call.asked = call.asked + 1
  call.inputs = { seq = call.asked, json = question.json }
  call:notify('inputs')
end

--- Asks the client. `answered(results, err)` is called once, unless the call ends first.
---@param call mcp-tools.Call
---@param requests table<string, mcp-tools.Input> checked with `check`
---@param answered fun(results: table<string, table>?, err: mcp-tools.Error?)
function M.ask(call, requests, answered)
  local text, err = json.encode(requests, 'requests')
  err = err or M.missing(call, requests)
  for key, request in pairs(requests) do
    local schema = not err and request.method == 'elicitation/create' and (request.params or {}).requestedSchema
    local _, faults
    if schema then
      _, faults = json_schema.compile(schema)
    end
    if faults then
      err = errors.new('validation_error', ('the schema of %s: %s: %s'):format(key, faults[1].field, faults[1].message))
    end
  end
  if err then
    return answered(nil, err)
  elseif call:ended() then
    return log.debug('call %s (%s): is already %s; its question was dropped', call.id, call.name, call.state)
  end
  call.questions = call.questions or {}
  table.insert(call.questions, { json = text, requests = requests, answered = answered })
  advance(call)
end

--- Withdraws a question. Does nothing if it was answered or the call has ended.
---@param call mcp-tools.Call
---@param requests table<string, mcp-tools.Input> the table passed to `ask`
function M.withdraw(call, requests)
  for i, question in ipairs(call.questions or {}) do
    if question.requests == requests then
      table.remove(call.questions, i)
      if i == 1 and call.inputs then
        call.withdrawn, call.inputs = call.inputs.seq, nil
        call:move('input')
        call:start_clock()
        call:notify('inputs') -- so that the bridge stops asking the client
        advance(call)
      end
      return
    end
  end
end

--- Passes answers to the tool. Ignores answers to a question that is not open.
---@param call mcp-tools.Call
---@param seq integer
---@param text string `{"key": {"result": …} | {"error": {"code": …, "message": …}}, …}`
---@return boolean taken false if the question is not open
function M.answer(call, seq, text)
  if not call.inputs or call.inputs.seq ~= seq then
    log.debug('call %s (%s): answer %s is not for the open question; dropped', call.id, call.name, tostring(seq))
    return false
  end
  local ok, answers = pcall(vim.json.decode, text)
  local question = table.remove(call.questions, 1)
  answers = ok and type(answers) == 'table' and answers or {}
  local ok_read, results, err = xpcall(read_all, debug.traceback, call, question.requests, answers)
  call.inputs = nil
  call:move('input')
  call:start_clock()
  local taken, thrown = ok_read, results
  if ok_read then
    taken, thrown = xpcall(question.answered, debug.traceback, results, err)
  end
  if not taken then -- otherwise the tool would wait forever
    log.error("call %s (%s): processing the client's answer failed: %s", call.id, call.name, thrown)
    call:fail('execution_error', "processing the client's answer failed; see the log")
  end
  advance(call)
  return true
end

return M

--- Error values and the one list of their codes.

local M = {}

---@alias mcp-tools.ErrorCode
---| 'validation_error'   # the arguments (or a definition) do not fit
---| 'unknown_tool'       # no tool of that name
---| 'not_found'          # a thing that the arguments name does not exist
---| 'tool_error'         # the tool reported its own failure
---| 'execution_error'    # the tool threw
---| 'invalid_output'     # the result does not fit the output schema
---| 'not_serializable'   # the result cannot be written as JSON
---| 'timeout'            # the deadline passed
---| 'cancelled'          # somebody cancelled the call
---| 'access_denied'      # the person or a rule said no
---| 'capability_missing' # the client cannot do what the tool asked for
---| 'stale'              # the buffer changed since it was read
---| 'editor_blocked'     # the editor did not get to the call in time; nothing ran
---| 'editor_gone'        # the editor ended
---| 'busy'               # too many of something at once
---| 'too_large'          # above a size limit
---| 'rate_limited'       # too many in too short a time

---@class mcp-tools.Fault
---@field field string dotted path such as `items[0].name`; `(root)` is the value itself
---@field message string

---@class mcp-tools.Error
---@field code mcp-tools.ErrorCode
---@field message string
---@field errors? mcp-tools.Fault[]
---@field required? table with `capability_missing`: the capabilities that the client would have to declare
---@field asked? true with `access_denied`: the user was asked
---@field retry_after_ms? number with `rate_limited`: when the client may be asked again

---@type table<mcp-tools.ErrorCode, mcp-tools.ErrorCode>
M.codes = {
  validation_error = 'validation_error',
  unknown_tool = 'unknown_tool',
  not_found = 'not_found',
  tool_error = 'tool_error',
  execution_error = 'execution_error',
  invalid_output = 'invalid_output',
  not_serializable = 'not_serializable',
  timeout = 'timeout',
  cancelled = 'cancelled',
  access_denied = 'access_denied',
  capability_missing = 'capability_missing',
  stale = 'stale',
  editor_blocked = 'editor_blocked',
  editor_gone = 'editor_gone',
  busy = 'busy',
  too_large = 'too_large',
  rate_limited = 'rate_limited',
}

--- Makes an error value. An unknown code is a mistake in the calling code and throws.
---@param code mcp-tools.ErrorCode
---@param message string
---@param errors? mcp-tools.Fault[]
---@return mcp-tools.Error
function M.new(code, message, errors)
  if not M.codes[code] then
    error(('unknown error code: %s'):format(tostring(code)), 2)
  end
  return { code = code, message = message, errors = errors }
end

--- Tells an error value from any other value: a table with one of the codes and a message.
---@param value any
---@return boolean
function M.is(value)
  return type(value) == 'table' and M.codes[value.code] ~= nil and type(value.message) == 'string'
end

--- The arguments, or the name, did not fit: nothing has run, and the caller can mend what it sent.
---@param err any
---@return boolean
function M.is_validation_failure(err)
  return M.is(err) and (err.code == 'validation_error' or err.code == 'unknown_tool')
end

--- What the tool itself says of its own matter: it has run, and whatever it is about did not come out well. A tool that
--- threw, a call that was cancelled, refused or timed out is none.
---@param err any
---@return boolean
function M.is_domain_failure(err)
  return M.is(err) and (err.code == 'tool_error' or err.code == 'not_found' or err.code == 'stale')
end

return M

--- Error values and their codes.

local M = {}

---@alias mcp-tools.ErrorCode
---| 'validation_error'   # the arguments (or a definition) are invalid
---| 'unknown_tool'       # no tool of that name
---| 'not_found'          # something that the arguments name does not exist
---| 'tool_error'         # the tool reported a failure
---| 'execution_error'    # the tool threw an error
---| 'invalid_output'     # the result does not match the output schema
---| 'not_serializable'   # the result cannot be encoded as JSON
---| 'timeout'            # the deadline passed
---| 'cancelled'          # the call was cancelled
---| 'access_denied'      # the user or a rule denied the call
---| 'capability_missing' # the client does not support what the tool needs
---| 'stale'              # the buffer has changed since it was read
---| 'editor_blocked'     # the editor did not start the call in time; nothing ran
---| 'editor_gone'        # the editor has exited
---| 'busy'               # too many at the same time
---| 'too_large'          # above a size limit
---| 'rate_limited'       # too many in a short time

--- One invalid field.
---@class mcp-tools.Fault
---@field field string path such as `items[0].name`; `(root)` is the value itself
---@field message string

--- An error value.
---@class mcp-tools.Error
---@field code mcp-tools.ErrorCode
---@field message string
---@field errors? mcp-tools.Fault[]
---@field required? table with `capability_missing`: the capabilities that the client lacks
---@field asked? true with `access_denied`: the user was asked
---@field retry_after_ms? number with `rate_limited`: how long to wait before the next request

---@type table<mcp-tools.ErrorCode, mcp-tools.ErrorCode>
M.codes = {}
for code in
  ([[
    validation_error unknown_tool not_found tool_error execution_error invalid_output not_serializable timeout cancelled
    access_denied capability_missing stale editor_blocked editor_gone busy too_large rate_limited
  ]]):gmatch('%S+')
do
  M.codes[code] = code
end

--- Returns the first line of an Ex command's error, without the source position.
---@param thrown any
---@return string
function M.plain(thrown)
  local text = tostring(thrown):match('[^\n]*')
  return text:match('Vim%([%w_]*%):(.*)$') or text:match('Vim:(.*)$') or (text:gsub('^.-:%d+: ', ''))
end

--- Creates an error value. Throws if the code is unknown.
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

--- Returns whether a value is an error value: a table with a known code and a message.
---@param value any
---@return boolean
function M.is(value)
  return type(value) == 'table' and M.codes[value.code] ~= nil and type(value.message) == 'string'
end

--- Returns the results of a function that returns a value, or nil and an error value, which is thrown. A call ends with
--- the error value that its tool throws.
---@generic T
---@param value T?
---@param err any
---@param ... any
---@return T value
---@return any ...
function M.unwrap(value, err, ...)
  if not value then
    error(err, 0)
  end
  return value, err, ...
end

--- Throws an error value, if there is one.
---@param err mcp-tools.Error|false|nil
function M.check(err)
  if err then
    error(err, 0)
  end
end

--- Calls a function that returns a value, or nil and an error value. An error value that it throws counts as returned.
---@param fn function
---@param ... any
---@return boolean ok
---@return any value of an error that is not an error value: its traceback
---@return any err
function M.try(fn, ...)
  local ok, value, err = xpcall(fn, debug.traceback, ...)
  local is_read, is_error = pcall(M.is, value)
  if not ok and is_read and is_error then
    return true, nil, value
  end
  return ok, value, err
end

--- Returns whether the name or the arguments were invalid: nothing ran, and the caller can correct the call.
---@param err any
---@return boolean
function M.is_validation_failure(err)
  return M.is(err) and (err.code == 'validation_error' or err.code == 'unknown_tool')
end

--- Returns whether the tool ran and reported a failure of its task. False if the tool threw an error, or the call was
--- cancelled, denied or timed out.
---@param err any
---@return boolean
function M.is_domain_failure(err)
  return M.is(err) and (err.code == 'tool_error' or err.code == 'not_found' or err.code == 'stale')
end

return M

-- Assertions and waits for Lua specs: `local t = require('helpers')`.
-- A failed one raises an error with both values and the position of the caller.

local t = {}

local here = vim.fs.dirname(vim.uv.fs_realpath(debug.getinfo(1, 'S').source:sub(2)))

---The directory of the checkout, and that of `fixtures`.
t.CHECKOUT = vim.fs.dirname(vim.fs.dirname(here))
t.FIXTURES = here .. '/fixtures'

local function fail(message, ...) error(message:format(...), 3) end

---Assert deep equality.
---@generic T
---@param expected T
---@param actual T
function t.eq(expected, actual)
  if not vim.deep_equal(expected, actual) then
    fail('expected %s\n     got %s', vim.inspect(expected), vim.inspect(actual))
  end
end

---Call a handler. An error value that it throws counts as returned.
---@return any value
---@return mcp-tools.Error? err
function t.try(fn, ...) return select(2, require('mcp-tools.errors').try(fn, ...)) end

---Assert that a table has these fields, among others.
---@param expected table
---@param actual table
function t.has(expected, actual)
  for field, value in pairs(expected) do
    if type(actual) ~= 'table' or not vim.deep_equal(value, actual[field]) then
      fail('expected %s\n     in %s', vim.inspect({ [field] = value }), vim.inspect(actual))
    end
  end
end

---Assert that a value is truthy, and return it.
---@generic T
---@param value T?
---@param message any? what to show, like the error that was returned with the value
---@return T
function t.ok(value, message)
  if not value then
    local got = 'expected a truthy value, got ' .. tostring(value)
    fail('%s', type(message) == 'string' and message or message and ('%s: %s'):format(got, vim.inspect(message)) or got)
  end
  return value
end

---Assert that a string contains a Lua pattern, or each of several ones.
---@param patterns string|string[]
---@param text string
function t.matches(patterns, text)
  for _, pattern in ipairs(type(patterns) == 'table' and patterns or { patterns }) do
    if type(text) ~= 'string' or not text:find(pattern) then
      fail('expected something like %q\n     got %s', pattern, vim.inspect(text))
    end
  end
end

---Assert that `fn` raises an error whose text (or `message`, when it is a table) contains a Lua pattern.
---@param pattern string
---@param fn fun()
---@return any err what was raised
function t.raises(pattern, fn)
  local ok, err = pcall(fn)
  if ok then
    fail('expected an error like %q, none was raised', pattern)
  end
  local text = type(err) == 'table' and err.message or err
  if type(text) ~= 'string' or not text:find(pattern) then
    fail('expected an error like %q\n     got %s', pattern, vim.inspect(err))
  end
  return err
end

---Assert that a call returned an error: `t.fails('stale', 'changed', edit.apply(…))`.
---@param code string? any by default
---@param pattern string? in the message
---@param value any must be nil
---@param err mcp-tools.Error
function t.fails(code, pattern, value, err)
  if value ~= nil or type(err) ~= 'table' or code and err.code ~= code or not err.message:find(pattern or '') then
    fail('expected an error %s %q\n     got %s', code or '', pattern or '', vim.inspect({ value, err }))
  end
end

---A handler that returns these values through `ctx`.
---@return fun(ctx: function)
function t.answers(...)
  local values = vim.F.pack_len(...)
  return function(ctx) ctx(vim.F.unpack_len(values)) end
end

---Call a function that must take less than 10 s of CPU time, which hardly depends on the load of the machine.
---@return any ... what it returns
function t.fast(fn, ...)
  local begun = os.clock()
  local results = vim.F.pack_len(fn(...))
  if os.clock() - begun >= 10 then
    fail('it took %.1f s', os.clock() - begun)
  end
  return vim.F.unpack_len(results)
end

---A function that returns a value.
---@generic T
---@param value T
---@return fun(): T
function t.returns(value)
  return function() return value end
end

---A list of computed values.
---@generic T
---@param count integer
---@param fn fun(i: integer): T
---@return T[]
function t.list(count, fn)
  local list = {}
  for i = 1, count do
    list[i] = fn(i)
  end
  return list
end

---Numbered lines.
---@param count integer
---@param format string receives the number of the line, up to three times
---@return string[]
function t.lines(count, format)
  return t.list(count, function(i) return format:format(i, i, i) end)
end

---The values of a field.
---@param field any
---@param list table[]
---@return any[]
function t.field(field, list)
  return vim.tbl_map(function(item) return item[field] end, list)
end

---Let the event loop run until `fn` returns something truthy, and return that.
---@generic T
---@param fn fun(): T?
---@param ms integer? maximum time, 5000 ms by default
---@param what string? what is awaited, for the error
---@return T
function t.wait(fn, ms, what)
  local value
  local done = vim.wait(ms or 5000, function()
    value = fn()
    return value
  end, 5)
  if not done then
    fail('%s did not happen within %d ms', what or 'the awaited condition', ms or 5000)
  end
  return value
end

---Let the event loop run until everything that has begun has ended.
function t.settle()
  local turns = 0
  t.wait(function()
    turns = turns + 1
    return turns > 20
  end)
end

---Let the event loop run until a call has ended.
---@param call mcp-tools.Call
---@param ms integer?
---@param what string?
---@return mcp-tools.Outcome
function t.ended(call, ms, what)
  t.wait(function() return call:ended() end, ms, what)
  return call.outcome
end

---Check that the following work does not block the event loop: no slice of it may take more than a quarter of a second
---and half of the whole, in CPU time of this process, which does not depend on the load of the machine.
---@return fun() done fails when a slice took longer
function t.watch_turns()
  local begun = os.clock()
  local longest, last = 0, begun
  local function turn()
    local now = os.clock()
    longest, last = math.max(longest, now - last), now
  end
  local timer = assert(vim.uv.new_timer())
  timer:start(0, 1, turn)
  return function()
    turn()
    timer:stop()
    timer:close()
    if longest > math.max(0.25, (last - begun) / 2) then
      fail('the main thread was blocked for %d of %d ms', longest * 1e3, (last - begun) * 1e3)
    end
  end
end

---Open a terminal in a new window, and wait until its command runs. Until then its process is a copy of this editor,
---whose signal handlers still report to it: closing the terminal would end the editor.
function t.terminal()
  vim.cmd('new | terminal echo running; exec cat')
  t.wait(
    function() return vim.api.nvim_buf_get_lines(0, 0, 1, false)[1] == 'running' end,
    20000,
    'the start of the terminal'
  )
end

--- Runs a function and counts its calls of another one, which are passed on.
---@param of table that has the function
---@param name string
---@param run fun()
---@param saw? fun(result: any, ...: any) called after each with its result and arguments
---@return integer
function t.calls(of, name, run, saw)
  local original, count = of[name], 0
  of[name] = function(...)
    count = count + 1
    local results = vim.F.pack_len(original(...))
    if saw then
      saw(results[1], ...)
    end
    return vim.F.unpack_len(results)
  end
  local ok, thrown = xpcall(run, debug.traceback)
  of[name] = original
  return ok and count or error(thrown, 0)
end

return t

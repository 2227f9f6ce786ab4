--- Executes Ex commands and Lua and captures their output.
---
--- Captured output never causes a "more" or hit-enter prompt. Code that asks the user (`:s///c`, `input()`) still does.

local errors = require('mcp-tools.errors')
local json = require('mcp-tools.util.json')
local redact = require('mcp-tools.privacy.redact')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Redacts and truncates text.
---@param text string
---@param max integer bytes
---@param pause fun()
---@return string text
---@return boolean cut
local function bounded(text, max, pause)
  -- Redact more than is returned, so that a secret at the cut is recognized.
  local clean = utf8.repair(redact.text(text:sub(1, 2 * max + 4096), pause))
  local cut = #clean > max
  return cut and utf8.cut(clean, max) or clean, cut
end

--- Calls a function in a later event-loop iteration, so that the bridge's request is answered before the function can
--- ask the user.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param fn fun(): any
---@return boolean ok
---@return any value
local function run_later(ctx, fn)
  return ctx:await(function(done)
    vim.schedule(function()
      if not ctx:cancelled() then
        done(pcall(fn))
      end
    end)
  end)
end

---@class mcp-tools.Executed
---@field output string? captured output
---@field truncated boolean? whether a text was truncated

--- Runs an Ex command.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param command string
---@param max_bytes integer maximum size of the output
---@param pause fun()
---@return mcp-tools.Executed?
---@return mcp-tools.Error? err
function M.command(ctx, command, max_bytes, pause)
  local ok, value = run_later(ctx, function()
    return vim.api.nvim_exec2(command, { output = true }).output
  end)
  if not ok then
    return nil, errors.new('tool_error', (bounded(errors.plain(value), max_bytes, pause)))
  end
  local output, cut = bounded(value, max_bytes, pause)
  return { output = output, truncated = cut or nil }
end

--- Function for `M.run_pending`, since `:lua` only takes text.
---@type (fun())?
local pending

--- Runs the pending function. Only for `M.lua`.
function M.run_pending()
  local fn = pending
  pending = nil
  if fn then
    fn()
  end
end

--- Converts a value to text: JSON if possible, otherwise as `vim.inspect` shows it.
---@param values table a list with `n`
---@return string? text nil: no value
---@return string? kind
local function text_of(values)
  local value = values[1]
  if values.n == 0 or value == nil then
    return nil
  elseif type(value) == 'string' then
    return value, 'string'
  end
  local text = json.encode(value)
  return text or vim.inspect(value, { depth = 6 }), type(value)
end

---@class mcp-tools.Evaluated: mcp-tools.Executed
---@field result string? first return value: a string, JSON, or as `vim.inspect` shows it
---@field type string? type of that value

--- Runs a Lua function.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param fn function
---@param args table a list with `n`
---@param max_bytes integer maximum size of each text
---@param pause fun()
---@return mcp-tools.Evaluated?
---@return mcp-tools.Error? err
function M.lua(ctx, fn, args, max_bytes, pause)
  local outcome
  local ok, output = run_later(ctx, function()
    pending = function()
      outcome = vim.F.pack_len(xpcall(function()
        return fn(unpack(args, 1, args.n))
      end, debug.traceback))
    end
    local call = "lua require('mcp-tools.editor.execute').run_pending()"
    return vim.api.nvim_exec2(call, { output = true }).output
  end)
  if not ok then
    return nil, errors.new('tool_error', (bounded(errors.plain(output), max_bytes, pause)))
  elseif not outcome[1] then
    return nil, errors.new('tool_error', (bounded(tostring(outcome[2]), max_bytes, pause)))
  end
  local values = { n = outcome.n - 1, unpack(outcome, 2, outcome.n) }
  local text, kind = text_of(values)
  local answer, cut = { type = kind }, false
  if text then
    answer.result, cut = bounded(text, max_bytes, pause)
  end
  local printed, cut_too = bounded(output, max_bytes, pause)
  answer.output = printed ~= '' and printed or nil
  answer.truncated = (cut or cut_too) or nil
  return answer
end

--- Returns the answer of `M.lua` as text.
---@param value { output: string?, result: string?, type: string? }
---@return string
function M.render(value)
  local parts = {}
  table.insert(parts, value.output ~= '' and value.output or nil)
  table.insert(parts, value.result and ('result (%s): %s'):format(value.type, value.result))
  return #parts > 0 and table.concat(parts, '\n') or 'It returned and printed nothing.'
end

return M

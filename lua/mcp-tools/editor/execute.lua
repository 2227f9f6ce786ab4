--- Executes commands and Lua in the editor; what they print is caught instead of shown.
---
--- What is caught never stops at a "more" or hit-enter prompt. What asks by itself (`:s///c`, `input()`) still asks.

local errors = require('mcp-tools.errors')
local json = require('mcp-tools.util.json')
local redact = require('mcp-tools.privacy.redact')
local save = require('mcp-tools.editor.buffer.save')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Text as it may be given.
---@param text string
---@param max integer bytes
---@param pause fun()
---@return string text
---@return boolean cut
local function bounded(text, max, pause)
  -- Some more than is given, so that a secret at the cut is known for one.
  local clean = utf8.repair(redact.text(text:sub(1, 2 * max + 4096), pause))
  local cut = #clean > max
  return cut and utf8.cut(clean, max) or clean, cut
end

--- Later, on the main loop: what it asks must not come before the request of the call is answered.
---@param ctx mcp-tools.Ctx in a coroutine
---@param fn fun(): any
---@return boolean ok
---@return any value
local function later(ctx, fn)
  return ctx:await(function(done)
    vim.schedule(function()
      if not ctx:cancelled() then
        done(pcall(fn))
      end
    end)
  end)
end

---@class mcp-tools.Executed
---@field output string? what it printed
---@field truncated boolean? of the texts, something is left out

--- Runs an Ex command.
---@param ctx mcp-tools.Ctx in a coroutine
---@param command string
---@param max_bytes integer of its output
---@param pause fun()
---@return mcp-tools.Executed?
---@return mcp-tools.Error? err
function M.command(ctx, command, max_bytes, pause)
  local ok, value = later(ctx, function()
    return vim.api.nvim_exec2(command, { output = true }).output
  end)
  if not ok then
    return nil, errors.new('tool_error', bounded(save.plain(value), max_bytes, pause))
  end
  local output, cut = bounded(value, max_bytes, pause)
  return { output = output, truncated = cut or nil }
end

--- What `M.run_pending` runs: `:lua` takes text only.
---@type (fun())?
local pending

--- Runs what is to be run now; for `M.lua` alone.
function M.run_pending()
  local fn = pending
  pending = nil
  if fn then
    fn()
  end
end

--- A value as text: JSON where it is data, else as Lua shows it.
---@param values any[] with `n`
---@return string? text nil for none
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
---@field result string? the first value that it gave: a text, JSON, or as `vim.inspect` shows it
---@field type string? of that value

--- Runs a function of Lua.
---@param ctx mcp-tools.Ctx in a coroutine
---@param fn function
---@param args any[] with `n`
---@param max_bytes integer of each text
---@param pause fun()
---@return mcp-tools.Evaluated?
---@return mcp-tools.Error? err
function M.lua(ctx, fn, args, max_bytes, pause)
  local outcome
  local ok, output = later(ctx, function()
    pending = function()
      outcome = vim.F.pack_len(xpcall(function()
        return fn(unpack(args, 1, args.n))
      end, debug.traceback))
    end
    local call = "lua require('mcp-tools.editor.execute').run_pending()"
    return vim.api.nvim_exec2(call, { output = true }).output
  end)
  if not ok then
    return nil, errors.new('tool_error', bounded(save.plain(output), max_bytes, pause))
  elseif not outcome[1] then
    return nil, errors.new('tool_error', bounded(tostring(outcome[2]), max_bytes, pause))
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

return M

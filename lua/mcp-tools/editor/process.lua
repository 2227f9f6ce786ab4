--- Programs run for a call: without holding up the editor, with a time and a size, ended with the call.
---
--- Receives: a command as a list of arguments (never a shell's), where and how long.
--- Sends: what it printed, to a callback on the main loop.
--- Does not know about: which program it is. It gets neither our token nor the address of this editor.

local M = {}

--- Output beyond this is not kept; the program is ended then.
local MAX_OUTPUT = 1024 * 1024
local TIMEOUT_MS = 10000

local HIDDEN = { 'NVIM', 'NVIM_LISTEN_ADDRESS', 'MCP_AUTH_TOKEN' }

---@class mcp-tools.ChildResult
---@field ok boolean it ended with 0, or was cut at the limit
---@field code integer? nil when it could not be run
---@field quiet boolean it ended by itself and said nothing, as searches do that find nothing
---@field stdout string
---@field stderr string
---@field cut boolean there was more output
---@field fault string? why it could not be run, or did not end well

--- Ours without what is hidden.
---@return table<string, string>
function M.environment()
  local env = vim.fn.environ()
  for _, name in ipairs(HIDDEN) do
    env[name] = nil
  end
  return env
end

--- The same for `vim.system`: Neovim 0.10 hands a whole environment on as it is, and libuv wants a list.
---@return table<string, string>|string[]
local function environment()
  local env = M.environment()
  if vim.fn.has('nvim-0.11') == 1 then
    return env
  end
  local list = {}
  for name, value in pairs(env) do
    list[#list + 1] = name .. '=' .. value
  end
  return list
end

---@param command string[]
---@param done vim.SystemCompleted
---@param cut boolean
---@param timeout integer
---@return string? fault
local function fault_of(command, done, cut, timeout)
  if cut or (done.code == 0 and done.signal == 0) then
    return nil
  elseif done.code == 124 then
    return ('%s did not end within %d s'):format(command[1], timeout / 1000)
  end
  if done.signal ~= 0 then
    return ('%s was ended by signal %d'):format(command[1], done.signal)
  end
  local said = vim.trim(done.stderr or ''):match('[^\n]*')
  return said ~= '' and said or ('%s ended with %d'):format(command[1], done.code)
end

--- Runs a program.
---@param ctx mcp-tools.Ctx ends it when the call ends
---@param command string[]
---@param opts { cwd: string, timeout: integer?, limit: integer? } ms, bytes
---@param cb fun(result: mcp-tools.ChildResult)
function M.run(ctx, command, opts, cb)
  local timeout, limit = opts.timeout or TIMEOUT_MS, opts.limit or MAX_OUTPUT
  local chunks, size, cut, job = {}, 0, false, nil
  local function keep(_, data)
    if not data or cut then
      return
    end
    chunks[#chunks + 1] = data:sub(1, limit - size)
    size = size + #chunks[#chunks]
    if size >= limit then
      cut = true
      job:kill('sigterm')
    end
  end
  local ok, started = pcall(vim.system, command, {
    cwd = opts.cwd,
    clear_env = true,
    env = environment(),
    stdin = false,
    stdout = keep,
    timeout = timeout,
  }, function(done)
    vim.schedule(function()
      local fault = fault_of(command, done, cut, timeout)
      cb({
        ok = fault == nil,
        code = done.code,
        quiet = done.code == 1 and size == 0 and (done.stderr or '') == '',
        stdout = table.concat(chunks),
        stderr = done.stderr or '',
        cut = cut,
        fault = fault,
      })
    end)
  end)
  if not ok then
    local text = ('%s cannot be run: %s'):format(command[1], tostring(started):match('[^\n]*'))
    return cb({ ok = false, quiet = false, stdout = '', stderr = '', cut = false, fault = text })
  end
  job = started
  ctx:on_cancel(function()
    job:kill('sigterm')
  end)
end

--- The same for coroutines of `run` handlers.
---@param ctx mcp-tools.Ctx
---@param command string[]
---@param opts { cwd: string, timeout: integer?, limit: integer? }
---@return mcp-tools.ChildResult
function M.await(ctx, command, opts)
  return ctx:await(function(done)
    M.run(ctx, command, opts, done)
  end)
end

return M

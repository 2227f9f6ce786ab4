--- Runs child processes with a timeout and output limits, and terminates them with all their descendants.
---
---   process.run({ 'make', 'test' }, { ctx = ctx, cwd = ctx.root, timeout = 60000, keep = 'tail' }, function(result)
---     ctx(result.stdout, result.fault)
---   end)

local log = require('mcp-tools.log')
local output = require('mcp-tools.editor.process.output')
local paths = require('mcp-tools.files.paths')
local process_group = require('mcp-tools.editor.process.group')
local project = require('mcp-tools.instances.project')
local timer = require('mcp-tools.util.timer')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

local TIMEOUT = 10000
local MAX_STDOUT = 1024 * 1024
--- The end of stderr is kept: it says what went wrong.
local MAX_STDERR = 64 * 1024

local HIDDEN = { 'NVIM', 'NVIM_LISTEN_ADDRESS', 'MCP_AUTH_TOKEN' }

---@class mcp-tools.process.Opts
---@field cwd string
---@field ctx? mcp-tools.Ctx the process is killed when this call ends
---@field timeout? integer ms until the process is killed
---@field limit? integer maximum number of bytes of stdout kept
---@field stderr_limit? integer maximum number of bytes of stderr kept, from its end
---@field keep? 'head'|'tail' part of stdout; 'head' (default) kills the process at the limit, 'tail' does not
---@field stdin? string default: none
---@field env? table<string, string|false> changes to our environment; false removes a variable
---@field on_output? fun(stream: 'stdout'|'stderr', text: string) called with new bytes; if the main loop is slow, only
---the last `limit`

---@class mcp-tools.process.Result
---@field ok boolean it exited with 0 or was killed because its output reached the limit
---@field code integer? nil: it could not be started
---@field signal integer?
---@field ended_by 'timeout'|'limit'|'kill'|nil nil: it exited
---@field quiet boolean it exited with 1 without output, like a search without matches
---@field stdout string bytes, not always UTF-8
---@field stderr string
---@field cut boolean whether stdout was truncated
---@field stderr_cut boolean whether stderr was truncated
---@field fault string? one line: why it could not be started or failed

--- Returns our environment without the hidden variables.
---@return table<string, string>
function M.environment()
  local env = vim.uv.os_environ()
  for _, name in ipairs(HIDDEN) do
    env[name] = nil
  end
  return env
end

--- Returns PATH without directories of the project and without relative directories.
---@return string
function M.search_path()
  local root = project.root()
  local directories = vim.tbl_filter(function(directory)
    return directory:sub(1, 1) == '/' and not paths.inside((paths.resolve(directory)), root)
  end, vim.split(vim.env.PATH or '', ':', { plain = true }))
  return #directories > 0 and table.concat(directories, ':') or '/usr/bin:/bin'
end

---@param extra table<string, string|false>?
---@return string[]
---@return string? path PATH of that environment
local function environment(extra)
  local env, list = M.environment(), {}
  for name, value in pairs(extra or {}) do
    env[name] = value or nil
  end
  for name, value in pairs(env) do
    table.insert(list, name .. '=' .. value)
  end
  return list, env.PATH
end

--- Returns whether an executable is missing. Trying to start it would copy the editor's page tables.
---@param program string
---@param path string? directories, as in PATH
---@return boolean
function M.is_missing(program, path)
  if not path or program:find('[/\\]') or vim.fn.has('win32') == 1 then
    return false
  end
  for directory in vim.gsplit(path, ':', { plain = true }) do
    -- Relative directories depend on the working directory.
    if directory:sub(1, 1) ~= '/' or vim.uv.fs_access(directory .. '/' .. program, 'X') then
      return false
    end
  end
  return true
end

--- Returns why a command cannot be started.
---@param command string[]
---@param cwd string
---@param path string?
---@return string?
local function refused(command, cwd, path)
  if table.concat(command):find('%z') then
    return 'an argument contains a NUL byte'
  end
  local stat = vim.uv.fs_stat(cwd)
  if not stat or stat.type ~= 'directory' then
    return ('there is no directory %s'):format(cwd)
  end
  return M.is_missing(command[1], path) and 'no such file or directory' or nil
end

--- Calls `fn` on the main loop; an error in it fails the call.
---@param program string
---@param ctx mcp-tools.Ctx?
---@param fn fun()
local function on_main_loop(program, ctx, fn)
  vim.schedule(function()
    local ok, thrown = xpcall(fn, function(value)
      return { value = value, trace = debug.traceback(tostring(value), 2) }
    end)
    if ok then
      return
    elseif ctx and ctx.threw then
      ctx.threw(ctx.call, thrown --[[@as any]])
    else
      log.error('the callback for the result of %s failed: %s', program, thrown.trace)
    end
  end)
end

---@param program string
---@param group mcp-tools.process.Group
---@param timeout integer
---@param stderr string
---@return string?
local function fault_of(program, group, timeout, stderr)
  local exit = group.exit
  if group.ended_by == 'timeout' then
    return ('%s did not exit within %g s'):format(program, timeout / 1000)
  elseif group.ended_by == 'kill' then
    return ('%s was killed'):format(program)
  elseif group.ended_by == 'limit' or (exit.code == 0 and exit.signal == 0) then
    return nil
  elseif exit.signal ~= 0 then
    return ('%s was killed by signal %d'):format(program, exit.signal)
  end
  local first_line = trim(stderr):match('[^\n]*')
  return first_line ~= '' and (utf8.repair(first_line)) or ('%s exited with %d'):format(program, exit.code)
end

---@param group mcp-tools.process.Group
---@param fault string?
---@param kept { stdout: mcp-tools.process.Output, stderr: mcp-tools.process.Output }
---@param stderr string
---@return mcp-tools.process.Result
local function result_of(group, fault, kept, stderr)
  local exit, text = group.exit or {}, kept.stdout:text()
  return {
    ok = fault == nil,
    code = exit.code,
    signal = exit.signal,
    ended_by = group.ended_by,
    quiet = exit.code == 1 and not group.ended_by and text == '' and stderr == '',
    stdout = text,
    stderr = stderr,
    cut = kept.stdout.cut,
    stderr_cut = kept.stderr.cut,
    fault = fault,
  }
end

--- Returns the result of a process that was not started.
---@param fault string
---@return mcp-tools.process.Result
function M.not_run(fault)
  return { ok = false, quiet = false, stdout = '', stderr = '', cut = false, stderr_cut = false, fault = fault }
end

--- Returns a function that passes new output to `on_output`.
---@param opts mcp-tools.process.Opts
---@param limit integer
---@param soon fun(fn: fun())
---@return fun(stream: 'stdout'|'stderr', data: string)
local function forwarder(opts, limit, soon)
  local pending = { stdout = output.new(limit, 'tail'), stderr = output.new(MAX_STDERR, 'tail') }
  local is_scheduled = false
  return function(stream, data)
    pending[stream]:add(data)
    if is_scheduled then
      return
    end
    is_scheduled = true
    soon(function()
      is_scheduled = false
      for name, new in pairs(pending) do
        local text = new:take()
        if text ~= '' then
          opts.on_output(name, text)
        end
      end
    end)
  end
end

--- Pending starts, the next one at index `next_start`. nil: none.
---@type (fun())[]?
local waiting
local next_start

--- Starts one process per event-loop iteration: each start copies the editor's page tables, which blocks the main
--- thread for tens of milliseconds.
local function start_next()
  local start = waiting[next_start]
  next_start = next_start + 1
  if waiting[next_start] then
    timer.after(0, start_next)
  else
    waiting = nil
  end
  start()
end

---@param start fun() must not throw
local function start_later(start)
  if waiting then
    return table.insert(waiting, start)
  end
  waiting, next_start = { start }, 1
  timer.after(0, start_next)
end

--- Runs a command. Must be called on the main loop, where `cb` is called once: never before this returns, and at most
--- about a second after the timeout. `handle:kill()` kills the process group; `cb` follows.
---@param command string[]
---@param opts mcp-tools.process.Opts
---@param cb fun(result: mcp-tools.process.Result)
---@return { kill: fun(self) } handle
function M.run(command, opts, cb)
  local timeout, limit = opts.timeout or TIMEOUT, opts.limit or MAX_STDOUT
  local kept = { stdout = output.new(limit, opts.keep), stderr = output.new(opts.stderr_limit or MAX_STDERR, 'tail') }
  local function soon(fn)
    on_main_loop(command[1], opts.ctx, fn)
  end
  local forward = opts.on_output and forwarder(opts, limit, soon)
  local group ---@type mcp-tools.process.Group?
  local killed
  local function start()
    if killed then
      return soon(function()
        local result = M.not_run(('%s was killed'):format(command[1]))
        result.ended_by = 'kill'
        cb(result)
      end)
    end
    local env, path = environment(opts.env)
    local fault = refused(command, opts.cwd, path)
    if not fault then
      group, fault = process_group.start({
        command = command,
        cwd = opts.cwd,
        env = env,
        timeout = timeout,
        stdin = opts.stdin,
        on_data = function(stream, data)
          kept[stream]:add(data)
          if forward then
            forward(stream, data)
          end
          if kept.stdout.cut and opts.keep ~= 'tail' then
            assert(group):stop('limit')
          end
        end,
        on_end = function()
          local ended = assert(group)
          group = nil -- the call must not remember it
          soon(function()
            local stderr = kept.stderr:text()
            cb(result_of(ended, fault_of(command[1], ended, timeout, stderr), kept, stderr))
          end)
        end,
      })
    end
    if not group then
      soon(function()
        cb(M.not_run(('cannot run %s: %s'):format(command[1], fault)))
      end)
    end
  end
  local function kill()
    killed = true
    if group then
      group:stop('kill')
    end
  end
  if opts.ctx then
    opts.ctx.call:on_end(kill)
  end
  start_later(function()
    soon(start)
  end)
  return { kill = kill }
end

--- The same for coroutines (`run` handlers).
---@param command string[]
---@param opts mcp-tools.process.Opts `ctx` is required
---@return mcp-tools.process.Result
function M.await(command, opts)
  return opts.ctx:await(function(done)
    M.run(command, opts, done)
  end)
end

return M

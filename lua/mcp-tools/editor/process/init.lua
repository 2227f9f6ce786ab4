--- Runs child processes with a timeout and output limits, and terminates them with all their descendants.
---
---   process.run({ 'make', 'test' }, { ctx = ctx, cwd = ctx.root, timeout = 60000, keep = 'tail' }, function(result)
---     ctx(result.stdout, result.fault)
---   end)

local log = require('mcp-tools.log')
local output = require('mcp-tools.editor.process.output')
local paths = require('mcp-tools.files.paths')
local project = require('mcp-tools.instances.project')
local timer = require('mcp-tools.util.timer')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local uv = vim.uv

local M = {}

local TIMEOUT = 10000
local MAX_STDOUT = 1024 * 1024
--- Only the end of stderr is kept, which usually has the error message.
local MAX_STDERR = 64 * 1024

--- Variables of our environment that commands do not inherit.
local HIDDEN = { 'NVIM', 'NVIM_LISTEN_ADDRESS', 'MCP_AUTH_TOKEN' }

-- Groups --------------------------------------------------------------------------------------------------------------

--- Time between SIGTERM and SIGKILL, in ms.
local GRACE = 1000
--- Time that descendants may still write after the process has exited, and maximum time that SIGKILL takes, in ms.
local DRAIN = 200

---@class mcp-tools.process.Spec
---@field command string[]
---@field cwd string
---@field env string[]
---@field timeout integer ms
---@field stdin string? default: none
---@field on_data fun(stream: 'stdout'|'stderr', data: string)
---@field on_end fun()

--- A process and its descendants, read and terminated as one: with SIGTERM, and SIGKILL after `GRACE`. When the process
--- exits, the rest of its group is terminated too. Only processes that leave the group survive.
---@class mcp-tools.process.Group
---@field pid integer
---@field exit { code: integer, signal: integer }? exit status; nil: it did not exit
---@field ended_by 'timeout'|'limit'|'kill'|nil nil: it exited
---@field private open integer number of open output pipes
---@field private spec mcp-tools.process.Spec
---@field private handle uv.uv_process_t
---@field private timer uv.uv_timer_t
---@field private stdin? uv.uv_pipe_t
---@field private stdout uv.uv_pipe_t
---@field private stderr uv.uv_pipe_t
local Group = {}
Group.__index = Group

--- Groups that have not ended.
---@type table<mcp-tools.process.Group, true>
local running = {}

---@param handle uv.uv_handle_t?
local function close(handle)
  if handle and not handle:is_closing() then
    handle:close()
  end
end

--- Kills all groups when Neovim exits, without waiting or calling back.
local function end_with_editor()
  for group in pairs(running) do
    group.spec.on_end = function() end
    group:finish()
  end
end

--- Starts a process in a new group. Must be called on the main loop.
---@param spec mcp-tools.process.Spec
---@return mcp-tools.process.Group? group
---@return string? fault
local function start_group(spec)
  local self = setmetatable({ spec = spec, open = 2 }, Group)
  self.stdout, self.stderr, self.timer = assert(uv.new_pipe()), assert(uv.new_pipe()), assert(uv.new_timer())
  self.stdin = spec.stdin and assert(uv.new_pipe()) or nil
  local handle, pid = uv.spawn(spec.command[1], {
    args = vim.list_slice(spec.command, 2),
    cwd = spec.cwd,
    env = spec.env,
    stdio = { self.stdin, self.stdout, self.stderr },
    detached = true, -- a new session: no terminal for prompts, and a group to signal
    hide = true,
  }, function(code, signal)
    self:exited(code, signal)
  end)
  if not handle then
    self:release()
    return nil, (tostring(pid):gsub('^%u+: ', ''))
  end
  self.handle, self.pid = handle, pid
  if next(running) == nil then
    vim.api.nvim_create_autocmd('VimLeavePre', {
      group = vim.api.nvim_create_augroup('mcp-tools.editor.process', {}),
      callback = end_with_editor,
    })
  end
  running[self] = true
  self:read('stdout')
  self:read('stderr')
  if self.stdin then
    self.stdin:write(spec.stdin, function() -- an error is ignored: the process need not read it
      close(self.stdin)
    end)
  end
  self:after(spec.timeout, function()
    self:stop('timeout')
  end)
  return self
end

---@param ms integer
---@param fn fun()
function Group:after(ms, fn)
  uv.update_time() -- otherwise the timer counts from the start of this loop iteration
  self.timer:start(ms, 0, fn)
end

---@param name 'stdout'|'stderr'
function Group:read(name)
  local pipe = self[name]
  pipe:read_start(function(_, data)
    if data then
      return self.spec.on_data(name, data)
    end
    close(pipe)
    self.open = self.open - 1
    self:settle()
  end)
end

---@param code integer
---@param signal integer
function Group:exited(code, signal)
  self.exit = { code = code, signal = signal }
  close(self.handle)
  if not self.ended_by then
    self:after(DRAIN, function()
      self:terminate()
    end)
  end
  self:settle()
end

---@param name string
function Group:signal(name)
  uv.kill(-self.pid, name)
end

function Group:terminate()
  self:signal('sigterm')
  self:after(GRACE, function()
    self:signal('sigkill')
    self:after(DRAIN, function()
      self:finish() -- even if it has not exited
    end)
  end)
end

--- Terminates the group. The first reason is kept.
---@param why 'timeout'|'limit'|'kill'
function Group:stop(why)
  if not self.ended_by and running[self] then
    self.ended_by = why
    self:terminate()
  end
end

function Group:settle()
  if self.exit and self.open == 0 then
    self:finish()
  end
end

function Group:release()
  for _, handle in pairs({ self.handle, self.stdout, self.stderr, self.stdin, self.timer }) do
    close(handle)
  end
end

function Group:finish()
  if running[self] then
    running[self] = nil
    self:signal('sigkill') -- remaining processes
    self:release()
    self.spec.on_end()
  end
end

-- Commands ------------------------------------------------------------------------------------------------------------

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
  local env = uv.os_environ()
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
---@param executable string
---@param path string? directories, as in PATH
---@return boolean
function M.is_missing(executable, path)
  if not path or executable:find('[/\\]') then
    return false
  end
  for directory in vim.gsplit(path, ':', { plain = true }) do
    -- Relative directories depend on the working directory.
    if directory:sub(1, 1) ~= '/' or uv.fs_access(directory .. '/' .. executable, 'X') then
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
  elseif vim.v.exiting ~= vim.NIL then
    return 'Neovim is exiting' -- VimLeavePre, which ends the processes, may be over
  end
  local stat = uv.fs_stat(cwd)
  if not stat or stat.type ~= 'directory' then
    return ('there is no directory %s'):format(cwd)
  end
  return M.is_missing(command[1], path) and 'no such file or directory' or nil
end

--- Calls `fn` on the main loop; an error in it fails the call.
---@param executable string
---@param ctx mcp-tools.Ctx?
---@param fn fun()
local function on_main_loop(executable, ctx, fn)
  vim.schedule(function()
    local ok, thrown = xpcall(fn, function(value)
      return { value = value, trace = debug.traceback(tostring(value), 2) }
    end)
    if ok then
      return
    elseif ctx and ctx.threw then
      ctx.threw(ctx.call, thrown --[[@as any]])
    else
      log.error('the callback for the result of %s failed: %s', executable, thrown.trace)
    end
  end)
end

---@param executable string
---@param group mcp-tools.process.Group
---@param timeout integer
---@param stderr string
---@return string?
local function fault_of(executable, group, timeout, stderr)
  local exit = group.exit
  if group.ended_by == 'timeout' then
    return ('%s did not exit within %g s'):format(executable, timeout / 1000)
  elseif group.ended_by == 'kill' then
    return ('%s was killed'):format(executable)
  elseif group.ended_by == 'limit' or (exit.code == 0 and exit.signal == 0) then
    return nil
  elseif exit.signal ~= 0 then
    return ('%s was killed by signal %d'):format(executable, exit.signal)
  end
  local first_line = trim(stderr):match('[^\n]*')
  return first_line ~= '' and (utf8.repair(first_line)) or ('%s exited with %d'):format(executable, exit.code)
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
      group, fault = start_group({
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
          group = nil -- so that `kill`, which the call keeps, does not keep it alive
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

--- Starts a command, for coroutines of `run` handlers.
---@param command string[]
---@param opts mcp-tools.process.Opts with `ctx`
---@return fun(): mcp-tools.process.Result wait
function M.begin(command, opts)
  local result, resume
  M.run(command, opts, function(done)
    result = done
    if resume then
      resume()
    end
  end)
  return function()
    if not result then
      opts.ctx:await(function(done)
        resume = done
      end)
    end
    return result
  end
end

--- Runs a command, for coroutines of `run` handlers.
---@param command string[]
---@param opts mcp-tools.process.Opts with `ctx`
---@return mcp-tools.process.Result
function M.await(command, opts)
  return M.begin(command, opts)()
end

return M

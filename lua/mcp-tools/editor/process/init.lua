--- Child processes: run for a call, with a deadline and bounds, and ended together with all that they started.
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
local validate = require('mcp-tools.util.validate')

local M = {}

local TIMEOUT = 10000
local MAX_STDOUT = 1024 * 1024
--- Of stderr the end is kept: there stands what went wrong.
local MAX_STDERR = 64 * 1024

local HIDDEN = { 'NVIM', 'NVIM_LISTEN_ADDRESS', 'MCP_AUTH_TOKEN' }

---@class mcp-tools.process.Opts
---@field cwd string
---@field ctx? mcp-tools.Ctx when its call ends, whatever the outcome, so does the program
---@field timeout? integer ms until it is ended
---@field limit? integer bytes of stdout that are kept
---@field stderr_limit? integer bytes of stderr that are kept, its last
---@field keep? 'head'|'tail' of stdout; 'head' (when left out) ends the program at the limit, 'tail' lets it go on
---@field stdin? string what it reads; nothing when left out
---@field env? table<string, string|false> on top of ours; false takes a variable out
---@field on_output? fun(stream: 'stdout'|'stderr', text: string) bytes as they come; where they come faster than the
---editor gets to them, the last `limit`

---@class mcp-tools.process.Result
---@field ok boolean it ended with 0, or was ended because its output had reached the limit
---@field code integer? nil when it could not be run
---@field signal integer?
---@field ended_by 'timeout'|'limit'|'kill'|nil nil: by itself
---@field quiet boolean it ended by itself with 1 and said nothing, as searches do that find nothing
---@field stdout string bytes, not always UTF-8
---@field stderr string
---@field cut boolean there was more of stdout
---@field stderr_cut boolean there was more of stderr
---@field fault string? one line: why it could not be run, or did not end well

--- Ours without what is hidden.
---@return table<string, string>
function M.environment()
  local env = vim.uv.os_environ()
  for _, name in ipairs(HIDDEN) do
    env[name] = nil
  end
  return env
end

--- PATH without the project's programs: without its folders, and without what depends on where one is.
---@return string
function M.search_path()
  local root = project.root()
  local folders = vim.tbl_filter(function(folder)
    return folder:sub(1, 1) == '/' and not paths.inside((paths.resolve(folder)), root)
  end, vim.split(vim.env.PATH or '', ':', { plain = true }))
  return #folders > 0 and table.concat(folders, ':') or '/usr/bin:/bin'
end

---@param extra table<string, string|false>?
---@return string[]
---@return string? path where programs are looked for
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

--- Is there no such program? To find that out by starting it costs a copy of the editor's page tables.
---@param program string
---@param path string? directories, as in PATH
---@return boolean
function M.is_missing(program, path)
  if not path or program:find('[/\\]') or vim.fn.has('win32') == 1 then
    return false
  end
  for folder in vim.gsplit(path, ':', { plain = true }) do
    -- Others count from the folder that it is started in.
    if folder:sub(1, 1) ~= '/' or vim.uv.fs_access(folder .. '/' .. program, 'X') then
      return false
    end
  end
  return true
end

--- Why a program need not be tried.
---@param command string[]
---@param cwd string
---@param path string?
---@return string?
local function refused(command, cwd, path)
  if table.concat(command):find('%z') then
    return 'an argument has a NUL byte'
  end
  local stat = vim.uv.fs_stat(cwd)
  if not stat or stat.type ~= 'directory' then
    return ('there is no folder %s'):format(cwd)
  end
  return M.is_missing(command[1], path) and 'no such file or directory' or nil
end

--- Runs `fn` on the main loop; what it throws fails its call.
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
      ctx.threw(ctx.call, thrown)
    else
      log.error('what came of %s could not be taken: %s', program, thrown.trace)
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
    return ('%s did not end within %g s'):format(program, timeout / 1000)
  elseif group.ended_by == 'kill' then
    return ('%s was ended'):format(program)
  elseif group.ended_by == 'limit' or (exit.code == 0 and exit.signal == 0) then
    return nil
  elseif exit.signal ~= 0 then
    return ('%s was ended by signal %d'):format(program, exit.signal)
  end
  local said = trim(stderr):match('[^\n]*')
  return said ~= '' and (utf8.repair(said)) or ('%s ended with %d'):format(program, exit.code)
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

--- What a program that was not run came to.
---@param fault string
---@return mcp-tools.process.Result
function M.not_run(fault)
  return { ok = false, quiet = false, stdout = '', stderr = '', cut = false, stderr_cut = false, fault = fault }
end

--- Hands output on as it comes.
---@param opts mcp-tools.process.Opts
---@param limit integer
---@param soon fun(fn: fun())
---@return fun(stream: 'stdout'|'stderr', data: string)
local function teller(opts, limit, soon)
  local news = { stdout = output.new(limit, 'tail'), stderr = output.new(MAX_STDERR, 'tail') }
  local telling = false
  return function(stream, data)
    news[stream]:add(data)
    if telling then
      return
    end
    telling = true
    soon(function()
      telling = false
      for name, new in pairs(news) do
        local text = new:take()
        if text ~= '' then
          opts.on_output(name, text)
        end
      end
    end)
  end
end

--- What runs for each call that has not ended.
---@type table<mcp-tools.Call, table<mcp-tools.process.Group, true>>
local running = {}

--- Has a call end a group with itself.
---@param call mcp-tools.Call
---@param group mcp-tools.process.Group
local function bind(call, group)
  if call:ended() then
    return group:stop('kill')
  elseif not running[call] then
    running[call] = {}
    call:on_end(function()
      local groups = running[call]
      running[call] = nil
      for each in pairs(groups) do
        each:stop('kill')
      end
    end)
  end
  running[call][group] = true
end

--- Starts that wait for their turn of the event loop, the first at `next_start`. nil: there are none.
---@type (fun())[]?
local waiting
local next_start

--- Starts one process in a turn of the event loop: each start copies the page tables of the editor, which blocks the
--- main thread for tens of milliseconds.
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

--- Runs a program. To be called on the main loop; there `cb` is called once, never before this returns, and not much
--- later than a second after the timeout. `handle:kill()` ends the program with all that it started; `cb` follows.
---@param command string[]
---@param opts mcp-tools.process.Opts
---@param cb fun(result: mcp-tools.process.Result)
---@return { kill: fun(self) } handle
function M.run(command, opts, cb)
  validate('command', command, 'table')
  validate('opts.cwd', opts.cwd, 'string')
  validate('cb', cb, 'callable')
  local timeout, limit = opts.timeout or TIMEOUT, opts.limit or MAX_STDOUT
  local kept = { stdout = output.new(limit, opts.keep), stderr = output.new(opts.stderr_limit or MAX_STDERR, 'tail') }
  local function soon(fn)
    on_main_loop(command[1], opts.ctx, fn)
  end
  local tell = opts.on_output and teller(opts, limit, soon)
  local group, killed
  local function start()
    if killed or opts.ctx and opts.ctx.call:ended() then
      return soon(function()
        local result = M.not_run(('%s was ended'):format(command[1]))
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
          if tell then
            tell(stream, data)
          end
          if kept.stdout.cut and opts.keep ~= 'tail' then
            group:stop('limit')
          end
        end,
        on_end = function()
          local groups = opts.ctx and running[opts.ctx.call]
          if groups then
            groups[group] = nil
          end
          soon(function()
            local stderr = kept.stderr:text()
            cb(result_of(group, fault_of(command[1], group, timeout, stderr), kept, stderr))
          end)
        end,
      })
    end
    if not group then
      soon(function()
        cb(M.not_run(('%s cannot be run: %s'):format(command[1], fault)))
      end)
    elseif opts.ctx then
      bind(opts.ctx.call, group)
    end
  end
  start_later(function()
    soon(start)
  end)
  return {
    kill = function()
      killed = true
      if group then
        group:stop('kill')
      end
    end,
  }
end

--- The same for coroutines of `run` handlers.
---@param command string[]
---@param opts mcp-tools.process.Opts with its ctx
---@return mcp-tools.process.Result
function M.await(command, opts)
  return opts.ctx:await(function(done)
    M.run(command, opts, done)
  end)
end

return M

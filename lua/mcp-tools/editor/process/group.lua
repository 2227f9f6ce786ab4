--- A process group: a process and its descendants, read and terminated as one.
---
--- It is terminated with SIGTERM, and SIGKILL after `GRACE`. When the process exits, the rest of its group is
--- terminated too. Only processes that leave the group survive.

local uv = vim.uv

local M = {}

--- ms between SIGTERM and SIGKILL.
local GRACE = 1000
--- ms that children may still write after the process has exited, and that SIGKILL may take.
local DRAIN = 200

local IS_WINDOWS = vim.fn.has('win32') == 1

---@class mcp-tools.process.Spec
---@field command string[]
---@field cwd string
---@field env string[]
---@field timeout integer ms
---@field stdin string? default: none
---@field on_data fun(stream: 'stdout'|'stderr', data: string)
---@field on_end fun()

---@class mcp-tools.process.Group
---@field pid integer
---@field exit { code: integer, signal: integer }? exit status; nil: it did not exit
---@field ended_by 'timeout'|'limit'|'kill'|nil nil: it exited
---@field private spec mcp-tools.process.Spec
---@field private handle uv.uv_process_t
---@field private timer uv.uv_timer_t
---@field private stdin? uv.uv_pipe_t
---@field private stdout uv.uv_pipe_t
---@field private stderr uv.uv_pipe_t
local Group = {}
Group.__index = Group

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

--- Starts a process. Must be called on the main loop.
---@param spec mcp-tools.process.Spec
---@return mcp-tools.process.Group? group
---@return string? fault
function M.start(spec)
  local self = setmetatable({ spec = spec, open = 2 }, Group)
  self.stdout, self.stderr, self.timer = assert(uv.new_pipe()), assert(uv.new_pipe()), assert(uv.new_timer())
  self.stdin = spec.stdin and assert(uv.new_pipe()) or nil
  local handle, pid = uv.spawn(spec.command[1], {
    args = vim.list_slice(spec.command, 2),
    cwd = spec.cwd,
    env = spec.env,
    stdio = { self.stdin, self.stdout, self.stderr },
    detached = not IS_WINDOWS, -- a new session: no terminal for prompts, and a group to signal
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
    self.stdin:write(spec.stdin, function() -- fails if the process does not read it; that is its choice
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
  if not IS_WINDOWS then
    uv.kill(-self.pid, name)
  elseif not self.exit then
    self.handle:kill(name)
  end
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

return M

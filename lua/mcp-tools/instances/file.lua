--- The instance file, by which other processes find this editor. It contains the token, so only this user can read it;
--- it exists while the bridge runs.

local private_files = require('mcp-tools.files.private_json')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.instances.project')

local uv = vim.uv

local M = {}

-- Window managers send focus events in bursts; the file's time is in seconds.
local FOCUS_THROTTLE = 1e9

---@class mcp-tools.Instance
---@field pid integer of the editor
---@field root string
---@field cwd string
---@field socket string
---@field url string ends in /mcp
---@field port integer
---@field token string
---@field focused_at integer unix seconds
---@field boot? string
---@field hook? string|vim.NIL token of agents' hooks

local current ---@type mcp-tools.Instance?
local last_focus = 0

--- Returns the directory of the instance files: in the session's runtime directory if this user owns it, otherwise in
--- the state directory.
---@return string
function M.dir()
  local runtime = vim.env.XDG_RUNTIME_DIR
  -- `sudo` and `su` may pass on the runtime directory of another user.
  if runtime and uv.fs_stat(runtime) and not private_files.fault(runtime, 'directory') then
    return vim.fs.joinpath(runtime, 'mcp-tools')
  end
  return vim.fs.joinpath(project.state_dir(), 'instances')
end

---@param pid integer
---@return string
local function path_of(pid)
  return vim.fs.joinpath(M.dir(), ('%d.json'):format(pid))
end

---@param pid integer
---@return boolean
local function is_alive(pid)
  local ok, _, code = uv.kill(pid, 0)
  return ok == 0 or code ~= 'ESRCH'
end

--- Removes files of editors that have ended.
function M.clean()
  local dir = M.dir()
  if private_files.fault(dir, 'directory') then
    return -- it belongs to another user; `save` reports it
  end
  for name in vim.fs.dir(dir) do
    local pid = tonumber(name:match('^(%d+)%.json$') or name:match('^%d+%.json%.(%d+)%-%d+%.tmp$'))
    if pid and not is_alive(pid) then
      uv.fs_unlink(vim.fs.joinpath(dir, name))
      log.debug('removed the file of an editor that has ended: %s', name)
    end
  end
end

---@return boolean ok, string? err
local function save()
  if not current then
    return true
  end
  local ok, err = private_files.ensure_dir(M.dir())
  if ok then
    ok, err = private_files.write(path_of(current.pid), current)
  end
  if not ok then
    notify.once('instances', 'warn', 'other processes cannot find this editor: ' .. err)
  end
  return ok, err
end

local function watch()
  local group = vim.api.nvim_create_augroup('mcp-tools.instances', {})
  vim.api.nvim_create_autocmd({ 'FocusGained', 'DirChanged' }, {
    group = group,
    callback = function(args)
      local focused, now = args.event == 'FocusGained', uv.hrtime()
      if not current or focused and now - last_focus < FOCUS_THROTTLE then
        return
      elseif focused then
        last_focus, current.focused_at = now, os.time()
      end
      current.cwd = uv.cwd() or current.cwd
      save()
    end,
  })
end

---@class mcp-tools.bridge.InstanceFacts
---@field root string
---@field socket string
---@field url string
---@field port integer
---@field token string
---@field boot? string
---@field hook? string|vim.NIL token of agents' hooks

--- Writes or updates this editor's file.
---@param facts mcp-tools.bridge.InstanceFacts
---@return boolean ok, string? err
function M.publish(facts)
  local first = current == nil
  current = vim.tbl_extend('force', { focused_at = os.time() }, current or {}, facts, {
    pid = uv.os_getpid(),
    cwd = uv.cwd() or '',
  })
  if first then
    watch()
  end
  return save()
end

--- Removes this editor's file.
function M.remove()
  if not current then
    return
  end
  uv.fs_unlink(path_of(current.pid))
  current = nil
  vim.api.nvim_create_augroup('mcp-tools.instances', { clear = true })
end

return M

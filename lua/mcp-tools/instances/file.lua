--- Instance file of this editor.
---
--- The file holds the token: it is for this user only and goes with the bridge.

local private_files = require('mcp-tools.files.private_json')
local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local project = require('mcp-tools.instances.project')

local uv = vim.uv

local M = {}

-- Window managers send focus events in bursts; a second is as exact as "last focused" has to be.
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

local current ---@type mcp-tools.Instance?
local last_focus = 0

--- Folder of the instance files: the session's runtime folder where there is one that is ours, else the state folder.
---@return string
function M.dir()
  local runtime = vim.env.XDG_RUNTIME_DIR
  -- `sudo` and `su` may hand down the runtime folder of another user.
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

--- Removes what editors that are gone have left.
function M.clean()
  local dir = M.dir()
  if private_files.fault(dir, 'directory') then
    return -- not ours to change; writing will say why
  end
  local scan = uv.fs_scandir(dir)
  while scan do
    local name = uv.fs_scandir_next(scan)
    if not name then
      break
    end
    local pid = tonumber(name:match('^(%d+)%.json$') or name:match('^%d+%.json%.(%d+)%-%d+%.tmp$'))
    if pid and not is_alive(pid) then
      uv.fs_unlink(vim.fs.joinpath(dir, name))
      log.debug('removed the file of an editor that is gone: %s', name)
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
    notify.once('instances', 'warn', 'other programs cannot find this editor: ' .. err)
  end
  return ok, err
end

local function watch()
  local group = vim.api.nvim_create_augroup('mcp-tools.instances', {})
  vim.api.nvim_create_autocmd('FocusGained', {
    group = group,
    callback = function()
      if current and uv.hrtime() - last_focus >= FOCUS_THROTTLE then
        last_focus = uv.hrtime()
        current.focused_at = os.time()
        save()
      end
    end,
  })
  vim.api.nvim_create_autocmd('DirChanged', {
    group = group,
    callback = function()
      if current then
        current.cwd = uv.cwd() or current.cwd
        save()
      end
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

--- Writes this editor's file, or brings it up to date.
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

--- Takes this editor's file away.
function M.remove()
  if not current then
    return
  end
  uv.fs_unlink(path_of(current.pid))
  current = nil
  vim.api.nvim_create_augroup('mcp-tools.instances', { clear = true }) -- its handlers go
end

---@return mcp-tools.Instance?
function M.current()
  return current
end

return M

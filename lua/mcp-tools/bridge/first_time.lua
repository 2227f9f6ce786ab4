--- The one-time hint for new users.

local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')

local M = {}

--- Returns whether this user has never run a bridge.
---@return boolean
function M.is_now()
  return not vim.uv.fs_stat(vim.fs.joinpath(project.state_dir(), 'projects'))
end

--- Shows the hint to a user who has never run a bridge, once.
function M.show_hint()
  local dir = project.state_dir()
  local file = vim.fs.joinpath(dir, 'welcomed.json')
  if not M.is_now() or vim.uv.fs_stat(file) or notify.has_warned() then
    return -- a warning must stay visible; the next start shows the hint
  end
  local ok, err = private_files.ensure_dir(dir)
  if ok then
    ok, err = private_files.write(file, { at = os.time() })
  end
  if ok then
    notify.info('new here? :McpTools welcome')
  else
    log.warn('%s', err) -- without the file the hint would appear at each start
  end
end

return M

--- First time: whether this person has never had a bridge, and the one line that they are told then.

local log = require('mcp-tools.log')
local notify = require('mcp-tools.notify')
local private_files = require('mcp-tools.files.private_json')
local project = require('mcp-tools.instances.project')

local M = {}

--- Has this person never had a bridge?
---@return boolean
function M.is_now()
  return not vim.uv.fs_stat(vim.fs.joinpath(project.state_dir(), 'projects'))
end

--- Says where the first steps are, to who has never had a bridge.
function M.tell()
  local dir = project.state_dir()
  local file = vim.fs.joinpath(dir, 'welcomed.json')
  if not M.is_now() or vim.uv.fs_stat(file) or notify.has_warned() then
    return -- a warning stays on the screen; the next start tells
  end
  local ok, err = private_files.ensure_dir(dir)
  if ok then
    ok, err = private_files.write(file, { at = os.time() })
  end
  if ok then
    notify.info('new here? :McpTools welcome')
  else
    log.warn('%s', err) -- not told, or it would be told each time
  end
end

return M

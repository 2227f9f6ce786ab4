--- The argument DIR of subcommands: a folder whose project the editor is to stand for.
---
--- Receives: what was typed, such as `../other` or `%:h`.
--- Sends: the folder; candidates for completion.
--- Does not know about: projects.

local notify = require('mcp-tools.notify')

local uv = vim.uv

local M = {}

--- The folder; nil when none was typed. One that does not exist is told to the person.
---@param text string
---@return boolean ok
---@return string? folder
function M.parse(text)
  if text == '' then
    return true
  end
  -- As it was typed first: a folder may have `$` or `*` in its name.
  local path = uv.fs_realpath(text) or uv.fs_realpath(vim.fn.expand(text))
  local stat = path and uv.fs_stat(path)
  if stat and stat.type == 'directory' then
    return true, path
  end
  notify.error(('%s is no folder'):format(text))
  return false
end

---@param lead string
---@return string[]
function M.complete(lead)
  return vim.fn.getcompletion(lead, 'dir')
end

return M

--- One line about a call, for lists: its tool, its client, its age and what it works on.

local Rows = require('mcp-tools.ui.window.rows')
local canonical_json = require('mcp-tools.util.canonical_json')
local paths = require('mcp-tools.files.paths')
local sanitize = require('mcp-tools.util.sanitize')

local M = {}

--- Formats an age in whole units, so that it rarely changes.
---@param ns integer
---@return string
function M.age(ns)
  local seconds = math.floor(ns / 1e9)
  if seconds < 60 then
    return ('%d s'):format(seconds)
  elseif seconds < 3600 then
    return ('%d min'):format(math.floor(seconds / 60))
  end
  return ('%d h'):format(math.floor(seconds / 3600))
end

--- Maximum cells of arguments and of commands.
local MAX_CELLS = 40

--- Returns the files of a call, those outside its project first, and its command; without both, its arguments.
---@param call mcp-tools.Call
---@return string
local function subject_of(call)
  local outside, inside = {}, {}
  for _, target in ipairs(call.targets or {}) do
    if target.path and call.project and paths.inside(target.path, call.project) then
      table.insert(inside, target.path:sub(#call.project + 2))
    else
      table.insert(outside, ('%s (OUTSIDE the project)'):format(target.path or target.given))
    end
  end
  local parts = vim.list_extend(outside, inside)
  local command = (call.args or {}).command
  if type(command) == 'table' then
    command = table.concat(vim.tbl_map(tostring, command), ' ')
  end
  table.insert(parts, type(command) == 'string' and ('"%s"'):format((Rows.clip(command, MAX_CELLS))) or nil)
  if #parts == 0 and call.snapshot then
    return (Rows.clip(canonical_json.head(call.snapshot, 4 * MAX_CELLS), MAX_CELLS))
  end
  return table.concat(parts, ', ')
end

--- Returns the line. The client's name is a claim of the client, so it is quoted.
---@param call mcp-tools.Call
---@return string
function M.of(call)
  local client = call.client.name and ('"%s"'):format(call.client.name) or call.host == 'command' and 'you' or call.host
  local since = M.age(vim.uv.hrtime() - call.created_at)
  return sanitize.line(('%s  %s, %s ago  %s'):format(call.name, client, since, subject_of(call)))
end

return M

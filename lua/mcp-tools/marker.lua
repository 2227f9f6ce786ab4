--- Notes for the bridge which call is about to run, while no message could tell: a tool may hold up the main thread.
---
--- Receives: the path of a file that the bridge has made for this.
--- Sends: notes of a fixed size, each over the last one. Costs a few microseconds and wakes nobody.
--- Does not know about: when the bridge looks.

local uv = vim.uv

local M = {}

--- `<call id> <deadline in ns, or ->`, filled up with blanks, so that a short note covers a long one.
local NOTE = '%-95s\n'

---@class mcp-tools.Marker
---@field file integer
local Marker = {}
Marker.__index = Marker

--- Opens the bridge's file.
---@param path any
---@return mcp-tools.Marker? marker nil when there is none here (the bridge runs on another machine, or has none)
function M.open(path)
  if type(path) ~= 'string' then
    return nil
  end
  local file = uv.fs_open(path, 'r+', 0)
  return file and setmetatable({ file = file }, Marker) or nil
end

--- Notes that a call begins.
---@param id string
---@param deadline integer? ns
---@return boolean noted
function Marker:note(id, deadline)
  local text = NOTE:format(id .. ' ' .. (deadline and ('%d'):format(deadline) or '-'))
  return uv.fs_write(self.file, text, 0) == #text
end

function Marker:close()
  uv.fs_close(self.file)
end

return M

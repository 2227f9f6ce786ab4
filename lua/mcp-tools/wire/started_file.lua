--- Notes for the bridge which call is about to run, while no message could tell: a tool may hold up the main thread.
---
--- Receives: the path of a file that the bridge has made for this.
--- Sends: notes of a fixed size, each over the last one. Costs a few microseconds and wakes nobody.
--- Does not know about: when the bridge looks.

local M = {}

--- `<call id> <deadline in ns, or ->`, filled up with blanks, so that a short note covers a long one.
local BLANKS = (' '):rep(95)

--- Programs that the editor starts do not get the file. (Windows knows no such letter.)
local MODE = vim.fn.has('win32') == 1 and 'r+b' or 'r+be'

---@class mcp-tools.StartedFile
---@field file file*
local StartedFile = {}
StartedFile.__index = StartedFile

--- Opens the bridge's file.
---@param path any
---@return mcp-tools.StartedFile? file nil when there is none here (the bridge runs on another machine, or has none)
function M.open(path)
  if type(path) ~= 'string' then
    return nil
  end
  -- Not by `vim.uv`, which takes three times as long for a note and leaves garbage.
  local file = io.open(path, MODE)
  if not file then
    return nil
  end
  file:setvbuf('full', 256) -- a note goes out whole
  return setmetatable({ file = file }, StartedFile)
end

--- Notes that a call begins.
---@param id string
---@param deadline integer? ns
---@return boolean noted
function StartedFile:note(id, deadline)
  local text = deadline and ('%s %d'):format(id, deadline) or id .. ' -'
  local file = self.file
  return file:seek('set') == 0 and file:write(text, BLANKS:sub(#text + 1), '\n') and file:flush() ~= nil or false
end

function StartedFile:close()
  self.file:close()
end

return M

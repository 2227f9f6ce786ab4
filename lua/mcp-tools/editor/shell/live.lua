--- Reports the output of a process as progress of its call.

local redact = require('mcp-tools.privacy.redact')
local terminal_text = require('mcp-tools.util.terminal_text')
local trim = require('mcp-tools.util.trim')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

local MAX_LINE = 200
--- Maximum number of bytes searched per piece of output, from its end.
local MAX_SEARCHED = 4096

--- Returns the last line that is not blank.
---@param text string
---@return string?
local function last_line(text)
  local plain = terminal_text.plain(text:sub(-MAX_SEARCHED))
  for line in vim.gsplit(plain:reverse(), '\n', { plain = true }) do
    if line:find('%S') then
      return utf8.cut(redact.line((utf8.repair(trim(line:reverse())))), MAX_LINE)
    end
  end
end

--- Returns an `on_output` function for `process.run`.
---@param ctx mcp-tools.Ctx
---@return fun(stream: string, text: string)
function M.teller(ctx)
  local bytes = 0
  return function(_, text)
    bytes = bytes + #text
    local line = last_line(text)
    if line then
      ctx:progress(bytes, nil, line)
    end
  end
end

return M

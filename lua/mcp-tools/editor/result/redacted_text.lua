--- Redacts text of files and command output in pieces: valid UTF-8 without secrets.

local redact = require('mcp-tools.privacy.redact')
local terminal_text = require('mcp-tools.util.terminal_text')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Number of bytes processed between two pauses, about a millisecond of work.
local PIECE = 16 * 1024

--- Returns an iterator over pieces of whole lines.
---@param text string
---@return fun(): string?
local function pieces(text)
  local at = 1
  return function()
    if at > #text then
      return nil
    end
    local stop = text:find('\n', at + PIECE, true) or #text
    local piece = text:sub(at, stop)
    at = stop + 1
    return piece
  end
end

--- Redacts the text of a readable file; assignments to secret-looking names are kept. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param text string
---@return string text
---@return boolean lossy
function M.file(ctx, text)
  local pause, parts, lossy = time_slice.of(ctx), {}, false
  redact.refresh(pause)
  for piece in pieces(text) do
    local whole, bad = utf8.repair(redact.quoted(piece, pause))
    lossy = lossy or bad
    parts[#parts + 1] = whole
    pause()
  end
  return table.concat(parts), lossy
end

--- Converts command output to plain text without redacting it. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param text string
---@return string
function M.plain(ctx, text)
  local pause, parts = time_slice.of(ctx), {}
  for piece in pieces(text) do
    parts[#parts + 1] = utf8.repair(terminal_text.plain(piece, pause))
    pause()
  end
  return table.concat(parts)
end

--- Converts command output to redacted plain text. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param text string
---@return string
function M.output(ctx, text)
  return redact.text(M.plain(ctx, text), time_slice.of(ctx))
end

return M

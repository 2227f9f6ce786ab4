--- The checksum of a file, made without holding up the editor.

local read = require('mcp-tools.privacy.read')
local sha256 = require('mcp-tools.util.sha256')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

--- Bytes; the sum of more takes seconds.
M.MAX_BYTES = 64 * 1024 * 1024
--- Bytes between two turns of the editor.
local CHUNK = 16 * 1024

--- The checksum of bytes. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param bytes string
---@return string
function M.of(ctx, bytes)
  local sum, pause = sha256.new(), time_slice.of(ctx)
  for at = 1, #bytes, CHUNK do
    sum:add(bytes:sub(at, at + CHUNK - 1))
    pause()
  end
  return sum:finish()
end

--- The checksum of a file. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@return string? sum
---@return mcp-tools.Error|integer size or why there is none
function M.file(ctx, path)
  local bytes, err = ctx:await(function(done)
    read.read(path, M.MAX_BYTES, done)
  end)
  if not bytes then
    return nil, err
  end
  return M.of(ctx, bytes), #bytes
end

return M

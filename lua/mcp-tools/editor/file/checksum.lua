--- Computes checksums in pieces, without blocking the main thread.

local read = require('mcp-tools.privacy.read')
local sha256 = require('mcp-tools.util.sha256')
local time_slice = require('mcp-tools.util.time_slice')

local M = {}

--- Maximum file size in bytes; larger files take seconds.
M.MAX_BYTES = 64 * 1024 * 1024
--- Number of bytes hashed between two pauses.
local CHUNK = 16 * 1024

--- Returns the SHA-256 of bytes. Runs in a coroutine.
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

--- Returns the SHA-256 of a file. Runs in a coroutine.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@return string? sum
---@return mcp-tools.Error|integer size or error
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

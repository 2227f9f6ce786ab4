--- Reads a project file only if the user has trusted its current text with `:trust`.

local read_sync = require('mcp-tools.util.read_sync')

local M = {}

--- Maximum file size in bytes; it is read on the main thread.
local MAX_BYTES = 4 * 1024 * 1024

--- Returns a file's entry in Neovim's trust database: a hash, or `!` if denied.
---@param real string resolved
---@return string?
local function trusted_hash(real)
  for line in vim.gsplit(read_sync(vim.fn.stdpath('state') .. '/trust') or '', '\n', { plain = true }) do
    local hash, path = line:match('^(%S+) (.+)$')
    if path == real then
      return hash
    end
  end
end

--- Returns the text of a file if the user trusts exactly this text.
---@param path string
---@return string? text
---@return string? why not
function M.read(path)
  local real = vim.uv.fs_realpath(path)
  local text = real and read_sync(real, MAX_BYTES + 1)
  if not text then
    return nil, 'the file cannot be read'
  elseif #text > MAX_BYTES then
    return nil, ('the file is larger than %d MiB'):format(MAX_BYTES / 1024 / 1024)
  elseif text:find('\0', 1, true) then
    return nil, 'the file contains a NUL byte and cannot be trusted' -- older sha256() throws
  elseif trusted_hash(real) == vim.fn.sha256(text) then
    return text
  end
  return nil, 'the file is not trusted: the user must open it in Neovim, read it, and run :trust'
end

return M

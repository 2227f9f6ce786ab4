--- Text of a file that a project brings along: only what the person has trusted with `:trust` is to be run.

local read_now = require('mcp-tools.files.read_sync')

local M = {}

--- Bytes; it is written by hand, and read while the editor waits.
local MAX_BYTES = 4 * 1024 * 1024

--- What Neovim's list of trusted files says of one: a hash, or `!` when it was denied.
---@param real string resolved
---@return string?
local function listed(real)
  for line in vim.gsplit(read_now(vim.fn.stdpath('state') .. '/trust') or '', '\n', { plain = true }) do
    local hash, path = line:match('^(%S+) (.+)$')
    if path == real then
      return hash
    end
  end
end

--- The text of a file, if the person trusts just this text.
---@param path string
---@return string? text
---@return string? why not
function M.read(path)
  local real = vim.uv.fs_realpath(path)
  local text = real and read_now(real, MAX_BYTES + 1)
  if not text then
    return nil, 'it cannot be read'
  elseif #text > MAX_BYTES then
    return nil, ('it is larger than %d MiB'):format(MAX_BYTES / 1024 / 1024)
  elseif text:find('\0', 1, true) then
    return nil, 'it holds a NUL byte, so it is no text that could be trusted' -- and older sha256() throws
  elseif listed(real) == vim.fn.sha256(text) then
    return text
  end
  return nil,
    'it lies in the project and is not trusted: a person has to open it in the editor, read it, and type :trust'
end

return M

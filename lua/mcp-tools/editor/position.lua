--- Positions as clients count them: 1-based lines and columns, columns in characters.

local M = {}

--- Returns the number of characters. NUL is replaced because Vim's functions do not accept it.
---@param text string
---@return integer
function M.characters(text)
  return vim.fn.strchars((text:gsub('%z', '\n')))
end

--- Truncates a text and appends `…`.
---@param text string
---@param max integer maximum number of characters
---@return string
function M.cut(text, max)
  local byte = #text > max and vim.fn.byteidx((text:gsub('%z', '\n')), max) or -1
  return byte >= 0 and byte < #text and text:sub(1, byte) .. '…' or text
end

--- Converts a byte to a column.
---@param bufnr integer
---@param row integer 0-based
---@param byte integer 0-based
---@return integer column 1-based; in bytes if the buffer is not loaded
function M.column(bufnr, row, byte)
  local line = vim.api.nvim_buf_is_loaded(bufnr) and vim.api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
  if not line then
    return byte + 1
  end
  return M.characters(line:sub(1, byte)) + 1
end

return M

--- Places in text as clients count them: lines and columns from 1, columns in characters.

local M = {}

--- How many characters a text has. Vim's own functions take no NUL, which a line may hold.
---@param text string
---@return integer
function M.characters(text)
  return vim.fn.strchars((text:gsub('%z', '\n')))
end

--- The beginning of a text, with `…` where something is left out.
---@param text string
---@param max integer characters
---@return string
function M.cut(text, max)
  local byte = #text > max and vim.fn.byteidx((text:gsub('%z', '\n')), max) or -1
  return byte >= 0 and byte < #text and text:sub(1, byte) .. '…' or text
end

--- The column of a byte.
---@param bufnr integer
---@param row integer from 0
---@param byte integer from 0
---@return integer column from 1; in bytes where the buffer is not loaded
function M.column(bufnr, row, byte)
  local line = vim.api.nvim_buf_is_loaded(bufnr) and vim.api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
  if not line then
    return byte + 1
  end
  return M.characters(line:sub(1, byte)) + 1
end

return M

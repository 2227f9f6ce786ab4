--- Places in text as clients count them: lines and columns from 1, columns in characters.
---
--- Receives: rows and bytes as Neovim counts them, from 0.
--- Sends: columns.
--- Does not know about: who asks.

local M = {}

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
  return vim.fn.strchars(line:sub(1, byte)) + 1
end

return M

--- The first text of a buffer in which the person may type: `u` does not take it away, as it does not that of a file.

local api = vim.api

--- The value of 'undolevels' that stands for the global one.
local AS_EVERYWHERE = -123456

---@param bufnr integer
---@param lines string[]
return function(bufnr, lines)
  vim.bo[bufnr].undolevels = -1
  api.nvim_buf_set_lines(bufnr, 0, -1, false, lines)
  vim.bo[bufnr].undolevels = AS_EVERYWHERE
end

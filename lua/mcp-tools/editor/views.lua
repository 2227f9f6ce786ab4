--- What the person sees of a buffer, kept while something is done to it.
---
--- Receives: a buffer, and what is to be done.
--- Sends: cursor and scroll position of every window that shows it, as they were.
--- Does not know about: what is done.

local api = vim.api

local M = {}

--- Does something, after which every window shows the lines by number that it showed before.
---@generic T
---@param bufnr integer
---@param fn fun(): T
---@return T
function M.keep(bufnr, fn)
  local saved = {}
  for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
    saved[win] = api.nvim_win_call(win, vim.fn.winsaveview)
  end
  local result = fn()
  for win, view in pairs(saved) do
    if api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == bufnr then
      api.nvim_win_call(win, function()
        vim.fn.winrestview(view)
      end)
    end
  end
  return result
end

return M

--- Keeps the views of windows while their buffer changes.

local api = vim.api

local M = {}

--- Calls a function; afterwards every window of the buffer shows the same line numbers as before.
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

--- Calls a function; afterwards every window of the buffer shows the same text as before, even if it has moved.
---@generic T
---@param bufnr integer
---@param fn fun(): T
---@return T
function M.follow(bufnr, fn)
  local space = api.nvim_create_namespace('mcp-tools.views')
  local function mark(lnum, col)
    local line = api.nvim_buf_get_lines(bufnr, lnum - 1, lnum, false)[1] or ''
    return api.nvim_buf_set_extmark(bufnr, space, lnum - 1, math.min(col, #line), {})
  end
  local saved = {}
  for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
    local view = api.nvim_win_call(win, vim.fn.winsaveview)
    saved[win] = { view = view, cursor = mark(view.lnum, view.col), top = mark(view.topline, 0) }
  end
  local result = fn()
  for win, entry in pairs(saved) do
    if api.nvim_win_is_valid(win) and api.nvim_win_get_buf(win) == bufnr then
      local cursor = api.nvim_buf_get_extmark_by_id(bufnr, space, entry.cursor, {})
      local top = api.nvim_buf_get_extmark_by_id(bufnr, space, entry.top, {})
      if cursor[1] and top[1] then
        entry.view.lnum, entry.view.col, entry.view.topline = cursor[1] + 1, cursor[2], top[1] + 1
      end
      api.nvim_win_call(win, function()
        vim.fn.winrestview(entry.view)
      end)
    end
  end
  api.nvim_buf_clear_namespace(bufnr, space, 0, -1)
  return result
end

return M

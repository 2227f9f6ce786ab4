-- Breakpoints with the functions of nvim-dap's module. They move with the text.

local namespace = vim.api.nvim_create_namespace('dap_client')
local M, by_buffer = {}, {} ---@type table<integer, table<integer, table>> buffer → id of a mark → breakpoint

function M.get(bufnr)
  local found = {}
  for number, points in pairs(by_buffer) do
    if (not bufnr or bufnr == number) and next(points) and vim.api.nvim_buf_is_valid(number) then
      found[number] = {}
      for id, point in pairs(points) do
        local line = vim.api.nvim_buf_get_extmark_by_id(number, namespace, id, {})[1] + 1
        table.insert(found[number], vim.tbl_extend('force', { line = line }, point))
      end
    end
  end
  return found
end

function M.set(opts, bufnr, line)
  M.remove(bufnr, line)
  local id = vim.api.nvim_buf_set_extmark(bufnr, namespace, line - 1, 0, {})
  by_buffer[bufnr] = by_buffer[bufnr] or {}
  by_buffer[bufnr][id] =
    { condition = opts.condition, hitCondition = opts.hit_condition, logMessage = opts.log_message }
end

function M.remove(bufnr, line)
  for id in pairs(by_buffer[bufnr] or {}) do
    if vim.api.nvim_buf_get_extmark_by_id(bufnr, namespace, id, {})[1] == line - 1 then
      vim.api.nvim_buf_del_extmark(bufnr, namespace, id)
      by_buffer[bufnr][id] = nil
    end
  end
end

function M.clear() by_buffer = {} end

return M

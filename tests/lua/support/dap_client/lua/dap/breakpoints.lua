-- Breakpoints with the face of nvim-dap's module.

local M, by_buffer = {}, {}

function M.get(bufnr)
  local found = {}
  for number, points in pairs(by_buffer) do
    if (not bufnr or bufnr == number) and next(points) and vim.api.nvim_buf_is_valid(number) then
      found[number] = vim.tbl_values(points)
    end
  end
  return found
end

function M.set(opts, bufnr, line)
  local point = { line = line, condition = opts.condition }
  point.hitCondition, point.logMessage = opts.hit_condition, opts.log_message
  by_buffer[bufnr] = by_buffer[bufnr] or {}
  by_buffer[bufnr][line] = point
end

function M.remove(bufnr, line)
  by_buffer[bufnr][line] = nil
end

function M.clear()
  by_buffer = {}
end

return M

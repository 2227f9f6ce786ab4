-- Breakpoints with the face of nvim-dap's module.

local M = {}

local by_buffer = {}

function M.get(bufnr)
  local found = {}
  for number, list in pairs(by_buffer) do
    if (not bufnr or bufnr == number) and next(list) and vim.api.nvim_buf_is_valid(number) then
      found[number] = vim.tbl_values(list)
    end
  end
  return found
end

function M.set(opts, bufnr, line)
  by_buffer[bufnr] = by_buffer[bufnr] or {}
  by_buffer[bufnr][line] = {
    buf = bufnr,
    line = line,
    condition = opts.condition,
    hitCondition = opts.hit_condition,
    logMessage = opts.log_message,
  }
end

function M.remove(bufnr, line)
  local was_there = by_buffer[bufnr] ~= nil and by_buffer[bufnr][line] ~= nil
  if was_there then
    by_buffer[bufnr][line] = nil
  end
  return was_there
end

function M.clear()
  by_buffer = {}
end

return M

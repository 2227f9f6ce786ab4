-- The reader of launch.json with the face of nvim-dap's module: it skips lines that are comments.

local M = {}

function M.getconfigs(path)
  local lines = {}
  for line in io.lines(path) do
    if not vim.startswith(vim.trim(line), '//') then
      table.insert(lines, line)
    end
  end
  local value = vim.json.decode(table.concat(lines, '\n'))
  return vim.tbl_map(function(config)
    return setmetatable(config, { __call = function() error('nvim-dap asks for inputs') end })
  end, value.configurations or {})
end

return M

-- What nvim-dap tells the person, with the face of its module.

local M = {}

function M.notify(message, level) vim.notify(message, level, { title = 'DAP' }) end

return M

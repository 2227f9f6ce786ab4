-- What nvim-dap tells the person, with the face of its module.
-- Receives: messages. Sends: them to `vim.notify`. Does not know about: sessions.

local M = {}

function M.notify(message, level)
  vim.notify(message, level, { title = 'DAP' })
end

return M

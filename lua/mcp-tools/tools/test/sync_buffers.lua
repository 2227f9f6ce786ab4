--- Lists loaded buffers synchronously; compatible with guill/mcp-tools.nvim.

local access = require('mcp-tools.privacy.access')
local utf8 = require('mcp-tools.util.utf8')

return {
  name = 'test_sync_buffers',
  title = 'Test: list buffers',
  description = 'Lists the loaded buffers. For testing a tool that answers synchronously; buffer_list returns more.',
  annotations = { read_only = true },
  execute = function(ctx)
    local buffers = {}
    for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
      if vim.api.nvim_buf_is_loaded(bufnr) then
        local options = vim.bo[bufnr]
        table.insert(buffers, {
          bufnr = bufnr,
          name = utf8.repair(access.name(vim.api.nvim_buf_get_name(bufnr))),
          buftype = options.buftype,
          filetype = options.filetype,
          modified = options.modified,
          readonly = options.readonly,
          line_count = vim.api.nvim_buf_line_count(bufnr),
          listed = options.buflisted,
        })
      end
    end
    ctx({ buffers = buffers, count = #buffers })
  end,
}

--- Notes the state of a file when Neovim reads or writes it, so that most checks need not read the file.
---
--- Neovim does not nest autocommands, so a file that another autocommand reads or writes is not noted.

local paths = require('mcp-tools.files.paths')

local api = vim.api

local M = {}

--- What is known of a buffer's file, in `b:mcp_tools_file`.
---@class mcp-tools.KnownFile
---@field read string? stamp of the file that was read or written last
---@field other string? stamp of the file when its text was found to differ from the one read last
---@field tick integer? changedtick at that time

---@param bufnr integer valid
---@return mcp-tools.KnownFile
function M.get(bufnr)
  return vim.b[bufnr].mcp_tools_file or {}
end

---@param bufnr integer
---@param known mcp-tools.KnownFile
function M.set(bufnr, known)
  if api.nvim_buf_is_valid(bufnr) then
    vim.b[bufnr].mcp_tools_file = known
  end
end

--- Notes the state of a file that was just read or written.
---@param args { buf: integer, event: string?, file: string? } of the autocommand
function M.note(args)
  local path = api.nvim_buf_get_name(args.buf)
  local is_copy = args.event == 'BufWritePost' and vim.fn.fnamemodify(args.file, ':p') ~= path -- `:write OTHER`
  if path ~= '' and vim.bo[args.buf].buftype == '' and not is_copy then
    M.set(args.buf, { read = paths.stamp(path) })
  end
end

--- Starts to note; replaces the autocommand of plugin/mcp-tools.lua.
function M.start()
  api.nvim_create_autocmd({ 'BufReadPost', 'BufWritePost' }, {
    group = api.nvim_create_augroup('mcp-tools.read_stamp', {}),
    desc = 'mcp-tools: note the state of a file that was read or written',
    callback = M.note,
  })
end

return M

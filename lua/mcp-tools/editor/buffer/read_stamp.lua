--- Notes the state of a file whenever Neovim reads or writes it. Neovim reports only once that a file has changed, so
--- this is how a change that the user was already told about is recognized.

local api, uv = vim.api, vim.uv

local M = {}

--- Returns what identifies a state of a file.
---@param stat table?
---@return string?
function M.of(stat)
  return stat and ('%d.%d %d %d'):format(stat.mtime.sec, stat.mtime.nsec, stat.size, stat.ino)
end

--- Notes the present state of the file of a buffer, whose text was just read or written.
---@param args { buf: integer, event: string?, file: string? } of the autocommand
function M.note(args)
  local path = api.nvim_buf_get_name(args.buf)
  local is_copy = args.event == 'BufWritePost' and vim.fn.fnamemodify(args.file, ':p') ~= path -- `:write OTHER`
  if path ~= '' and vim.bo[args.buf].buftype == '' and not is_copy then
    vim.b[args.buf].mcp_tools_read_stamp = M.of(uv.fs_stat(path))
  end
end

--- Returns the state that was read or written last; nil if it is unknown.
---@param bufnr integer
---@return string?
function M.get(bufnr)
  return vim.b[bufnr].mcp_tools_read_stamp
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

-- The :McpTools command and <Plug> mappings. Loads nothing else at start-up: modules load when the command, `setup()`
-- or another plugin needs them.

if vim.g.loaded_mcp_tools then
  return
end
vim.g.loaded_mcp_tools = true
vim.g.mcp_tools_status = '' -- a statusline with an undefined variable is empty

vim.api.nvim_create_user_command('McpTools', function(args)
  require('mcp-tools.command').run(args)
end, {
  nargs = '*',
  range = true,
  desc = 'MCP tools of this editor',
  complete = function(lead, line, position)
    return require('mcp-tools.command').complete(lead, line, position)
  end,
})

-- A client may connect long after files were opened.
vim.api.nvim_create_autocmd({ 'BufReadPre', 'BufReadPost', 'BufWritePre', 'BufWritePost', 'BufModifiedSet' }, {
  group = vim.api.nvim_create_augroup('mcp-tools.read_stamp', {}),
  desc = 'mcp-tools: note the state of a file that was read or written',
  callback = function(args)
    require('mcp-tools.editor.buffer.read_stamp').note(args)
  end,
})

if vim.v.vim_did_enter == 1 then -- a plugin manager has loaded this later
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    if vim.api.nvim_buf_is_loaded(bufnr) and vim.api.nvim_buf_get_name(bufnr) ~= '' then
      require('mcp-tools.editor.buffer.read_stamp').note({ buf = bufnr, event = 'BufModifiedSet' })
    end
  end
end

-- Mappings that answer a request for approval, decide on a review, or open an interview, in any mode and window.
local function map(name, command)
  local rhs = '<Cmd>McpTools ' .. command .. '<CR>'
  for _, mode in ipairs({ '', 'i', 't' }) do
    vim.api.nvim_set_keymap(mode, '<Plug>(mcp-tools-' .. name .. ')', rhs, {})
  end
end
map('approve', 'approve once')
map('approve-review', 'approve review')
map('approve-session', 'approve session')
map('approve-always', 'approve always')
map('deny', 'deny')
map('deny-always', 'deny always')
map('deny-session', 'deny session')
map('approval-focus', 'approve look')
map('answer', 'answer')
map('send', 'send')
map('review', 'review')
for _, name in ipairs({ 'accept', 'reject', 'reason', 'edit', 'undo', 'all', 'none', 'next', 'previous', 'later' }) do
  map('review-' .. name, 'review ' .. name)
end

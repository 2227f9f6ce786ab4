--- Resource: state of the editor and the bridge.

local buffers = require('mcp-tools.editor.buffer')
local findings = require('mcp-tools.editor.diagnostics.findings')
local access = require('mcp-tools.privacy.access')
local mcp_tools = require('mcp-tools')
local watch = require('mcp-tools.editor.watch')

---@return { name: string, buffers: integer, root: string? }[]
local function language_servers()
  local list = {}
  for _, client in ipairs(vim.lsp.get_clients()) do
    table.insert(list, {
      name = client.name,
      root = client.config and client.config.root_dir or nil,
      buffers = vim.tbl_count(client.attached_buffers),
    })
  end
  return list
end

return {
  name = 'status',
  uri = 'nvim://status',
  title = 'State of the editor',
  description = 'Version, project, mode, current file, unsaved files, language servers, number of diagnostics, and'
    .. ' state of the bridge.',
  mime_type = 'application/json',
  tags = { 'editor' },
  read = function(ctx)
    local own = mcp_tools.status()
    local modified = {}
    for _, info in ipairs(vim.fn.getbufinfo({ bufmodified = 1 })) do
      if vim.bo[info.bufnr].buftype == '' then
        table.insert(modified, buffers.shown(info.bufnr, ctx.root))
      end
    end
    local current = buffers.current()
    ctx({
      neovim = tostring(vim.version()),
      plugin = own.version,
      root = ctx.root,
      cwd = vim.uv.cwd(),
      mode = vim.api.nvim_get_mode().mode,
      current = current and access.shown(vim.api.nvim_buf_get_name(current), ctx.root) or nil,
      modified = modified,
      language_servers = language_servers(),
      diagnostics = findings.counts_open(ctx.root),
      offered = own.offered,
      bridge = { state = own.state, port = own.port, sessions = own.sessions and own.sessions.count },
      calls = own.calls,
    })
  end,
  watch = function(changed)
    return watch.events(
      { 'ModeChanged', 'DirChanged', 'BufEnter', 'BufModifiedSet', 'LspAttach', 'LspDetach', 'DiagnosticChanged' },
      changed
    )
  end,
}

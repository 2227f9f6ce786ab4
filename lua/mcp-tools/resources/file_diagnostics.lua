--- Resource: diagnostics of one file.

local buffers = require('mcp-tools.editor.buffer')
local path_completion = require('mcp-tools.privacy.completion')
local findings = require('mcp-tools.editor.diagnostics.findings')
local access = require('mcp-tools.privacy.access')
local watch = require('mcp-tools.editor.watch')

return {
  name = 'file_diagnostics',
  uri_template = 'nvim://diagnostics/{+path}',
  title = 'Diagnostics of a file',
  description = 'Errors, warnings and hints of one file, the most severe first; an empty list if there are none or the'
    .. ' file is not open. The path is absolute or relative to the project root.',
  mime_type = 'application/json',
  tags = { 'editor', 'diagnostics' },
  paths = { 'path' },
  complete = { path = path_completion.buffers },
  run = function(ctx, params)
    local bufnr = buffers.of_path(params.path)
    local view = bufnr and findings.view(ctx, bufnr)
      or { diagnostics = {}, total = 0, counts = vim.empty_dict(), open = false } ---@type table
    view.path = access.shown(params.path, ctx.root)
    return view
  end,
  watch = function(changed, params)
    return watch.events('DiagnosticChanged', function(args)
      if watch.path_of(args.buf) == params.path then
        changed()
      end
    end)
  end,
}

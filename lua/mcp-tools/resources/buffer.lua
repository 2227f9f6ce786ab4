--- Resource: text of an open file, including unsaved changes.

local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local path_completion = require('mcp-tools.privacy.completion')
local watch = require('mcp-tools.editor.watch')

return {
  name = 'buffer',
  uri_template = 'nvim://buffer/{+path}',
  title = 'Text of an open file',
  description = 'Text of a file that is open in the editor, including unsaved changes. The path is absolute or relative'
    .. ' to the project root. Subscribers are notified of every edit.',
  tags = { 'editor', 'text' },
  paths = { 'path' },
  complete = { path = path_completion.buffers },
  read = function(ctx, params)
    local bufnr = buffers.of_path(params.path)
    if not bufnr then
      return ctx:miss('the file is not open')
    end
    -- Checked before the text is copied: copying a huge log would block the main thread.
    local bytes = buffers.size(bufnr)
    if bytes > ctx.max_result then
      local what = 'the buffer has %d bytes, the limit is %d'
      return ctx(nil, errors.new('too_large', what:format(bytes, ctx.max_result)))
    end
    local lines = vim.api.nvim_buf_get_lines(bufnr, 0, -1, false)
    local text = table.concat(lines, '\n')
    if vim.bo[bufnr].endofline then
      text = text .. '\n'
    end
    ctx({ text = text, mime_type = 'text/plain' })
  end,
  watch = function(changed, params)
    return watch.text(params.path, changed)
  end,
}

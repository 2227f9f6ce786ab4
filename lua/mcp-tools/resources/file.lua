--- Resource: files of the project on disk.

local path_completion = require('mcp-tools.privacy.completion')
local read_file = require('mcp-tools.privacy.read')
local mime = require('mcp-tools.files.mime')
local watch = require('mcp-tools.editor.watch')

return {
  name = 'file',
  uri_template = 'file:///{+path}',
  title = 'File of the project',
  description = 'A file inside the project, as it is on disk: text, or bytes if it is binary. `nvim://buffer/…` has'
    .. ' the unsaved text of files that are open.',
  tags = { 'files' },
  paths = { 'path' },
  complete = { path = path_completion.absolute },
  read = function(ctx, params)
    read_file.read(params.path, ctx.max_result, function(bytes, err)
      if ctx:cancelled() then
        return
      elseif err and err.code == 'too_large' then
        return ctx(nil, err)
      elseif err then
        return ctx:miss(err.message)
      end
      local kind = mime.of_file(params.path, bytes)
      ctx({ [mime.is_text_mime(kind) and 'text' or 'blob'] = bytes, mime_type = kind })
    end)
  end,
  watch = function(changed, params)
    return watch.file(params.path, changed)
  end,
}

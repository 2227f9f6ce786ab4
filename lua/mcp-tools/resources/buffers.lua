--- Resource: listed buffers.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local uri_template = require('mcp-tools.util.uri_template')
local watch = require('mcp-tools.editor.watch')

local TEXT = assert(uri_template.compile('nvim://buffer/{+path}'))

return {
  name = 'buffers',
  uri = 'nvim://buffers',
  title = 'Open buffers',
  description = 'Listed buffers: number, path, filetype, whether there are unsaved changes, and the URI of the text if'
    .. ' it may be read.',
  mime_type = 'application/json',
  tags = { 'editor' },
  read = function(ctx)
    local current, list = buffers.current(), {}
    for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
      if vim.bo[bufnr].buflisted then
        local _, _, resolved = access.buffer(bufnr, ctx.root)
        local facts, name = buffers.facts(bufnr, current), vim.api.nvim_buf_get_name(bufnr)
        facts.path = name ~= '' and access.name(name) or nil
        facts.uri = resolved and facts.loaded and TEXT:expand({ path = access.shown(resolved, ctx.root) }) or nil
        table.insert(list, facts)
      end
    end
    ctx({ buffers = list })
  end,
  watch = function(changed)
    return watch.events(
      { 'BufAdd', 'BufDelete', 'BufWipeout', 'BufFilePost', 'BufModifiedSet', 'BufWinEnter', 'BufEnter', 'FileType' },
      changed
    )
  end,
}

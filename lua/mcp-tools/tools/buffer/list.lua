--- Lists buffers.

local access = require('mcp-tools.privacy.access')
local arguments = require('mcp-tools.editor.arguments')
local buffers = require('mcp-tools.editor.buffer')
local result = require('mcp-tools.editor.result')

return {
  name = 'buffer_list',
  title = 'Open buffers',
  description = 'Lists the buffers of the editor with their numbers; editor_state has the open files.',
  args = {
    modified_only = { type = 'boolean', description = 'Only buffers with unsaved changes', default = false },
    include_unlisted = {
      type = 'boolean',
      description = 'Include unlisted buffers, such as help',
      default = false,
      hidden = true,
    },
    limit = arguments.hidden(arguments.limit('buffers', 100, 1000)),
    offset = { type = 'integer', description = 'Number of buffers to skip', default = 0, minimum = 0, hidden = true },
  },
  annotations = { read_only = true, idempotent = true },
  execute = function(ctx, args)
    local current = buffers.current()
    local matching = vim.tbl_filter(function(bufnr)
      -- There may be thousands of buffers: `vim.bo` is ten times slower, and `getbufinfo` collects all signs.
      local listed = args.include_unlisted or vim.fn.buflisted(bufnr) == 1
      return listed and (not args.modified_only or vim.fn.getbufvar(bufnr, '&modified') == 1)
    end, vim.api.nvim_list_bufs())
    local page, answer = result.page(matching, args)
    answer.buffers = vim.tbl_map(function(bufnr)
      local facts, path = buffers.facts(bufnr, current), access.shown(vim.api.nvim_buf_get_name(bufnr), ctx.root)
      facts.path = path ~= '' and path or nil
      return facts
    end, page)
    ctx(result.utf8(answer))
  end,
  render = function(value, args)
    local rows = { result.with_range(result.count(value.total, 'buffer'), args, value.total) }
    for _, each in ipairs(value.buffers) do
      local about = { each.buftype }
      for _, name in ipairs({ 'current', 'visible', 'modified' }) do
        table.insert(about, each[name] and name or nil)
      end
      local row = ('%d: %s'):format(each.bufnr, each.path or 'no name')
      table.insert(rows, #about > 0 and ('%s (%s)'):format(row, table.concat(about, ', ')) or row)
    end
    return table.concat(rows, '\n')
  end,
}

--- Lists buffers.

local access = require('mcp-tools.privacy.access')
local arguments = require('mcp-tools.editor.arguments')
local buffers = require('mcp-tools.editor.buffer')
local result = require('mcp-tools.editor.result')
local utf8 = require('mcp-tools.util.utf8')

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
    local list, total, lossy = {}, 0, false
    for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
      -- There may be thousands of buffers: `vim.bo` is ten times slower, and `getbufinfo` collects all signs.
      local listed = args.include_unlisted or vim.fn.buflisted(bufnr) == 1
      if listed and (not args.modified_only or vim.fn.getbufvar(bufnr, '&modified') == 1) then
        total = total + 1
        if total > args.offset and #list < args.limit then
          local path, repaired = utf8.repair(access.shown(vim.api.nvim_buf_get_name(bufnr), ctx.root))
          lossy = lossy or repaired
          local facts = buffers.facts(bufnr, current)
          facts.path = path ~= '' and path or nil
          table.insert(list, facts)
        end
      end
    end
    local rest = total - args.offset - #list
    ctx({
      buffers = list,
      total = total,
      next_offset = rest > 0 and args.offset + #list or nil,
      lossy = lossy or nil,
    })
  end,
  render = function(value, args)
    local head = ('%d %s'):format(value.total, value.total == 1 and 'buffer' or 'buffers')
    local rows = { result.with_range(head, args, value.total) }
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

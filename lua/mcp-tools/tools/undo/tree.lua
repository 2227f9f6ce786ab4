--- Returns the undo tree of a buffer.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local utf8 = require('mcp-tools.util.utf8')

--- Returns the newest entries, including branches.
---@param entries table[]
---@param left { count: integer } number of entries that may still be added
---@return table[]
local function newest(entries, left)
  local out = {}
  for i = #entries, 1, -1 do
    if left.count <= 0 then
      break
    end
    left.count = left.count - 1
    local entry = vim.tbl_extend('force', {}, entries[i])
    entry.alt = entry.alt and newest(entry.alt, left) or nil
    table.insert(out, 1, entry)
  end
  return out
end

--- Counts entries, including branches.
---@param entries table[]
---@return integer
local function count(entries)
  local sum = #entries
  for _, entry in ipairs(entries) do
    sum = sum + (entry.alt and count(entry.alt) or 0)
  end
  return sum
end

return {
  name = 'undo_tree',
  title = 'Undo tree',
  description = 'Returns the undo tree of a buffer, as undotree() does: seq_cur, seq_last, save_cur, save_last and'
    .. ' entries with seq, time and branches (alt). Default: the current file. To compare two states, use undo_diff.',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0 },
    limit = {
      type = 'integer',
      description = 'Maximum number of entries, newest first',
      default = 200,
      minimum = 1,
      maximum = 10000,
    },
  },
  annotations = { read_only = true, idempotent = true },
  execute = function(ctx, args)
    local found, err = buffers.find(args, { current = true })
    if not found then
      return ctx(nil, err)
    elseif not found.bufnr then
      return ctx(nil, errors.new('not_found', 'the file is not open, so it has no undo tree; buffer_list names those'))
    end
    local tree = vim.fn.undotree(found.bufnr)
    local total = count(tree.entries)
    local name = vim.api.nvim_buf_get_name(found.bufnr)
    ctx({
      bufnr = found.bufnr,
      path = name ~= '' and utf8.repair(access.shown(name, ctx.root)) or nil,
      changedtick = vim.api.nvim_buf_get_changedtick(found.bufnr),
      seq_cur = tree.seq_cur,
      seq_last = tree.seq_last,
      save_cur = tree.save_cur,
      save_last = tree.save_last,
      entries = newest(tree.entries, { count = args.limit }),
      total = total,
      truncated = total > args.limit or nil,
    })
  end,
}

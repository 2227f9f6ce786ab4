--- Resource: current quickfix list.

local quickfix = require('mcp-tools.editor.quickfix')
local redact = require('mcp-tools.privacy.redact')
local time_slice = require('mcp-tools.util.time_slice')
local watch = require('mcp-tools.editor.watch')

--- Maximum number of entries.
local MAX = 1000
--- `setqflist()` fires no event, so the list's `changedtick` is polled, ms.
local POLL_MS = 200

---@param pause fun()
---@return table list, table[] items the first entries
local function entries_of(pause)
  local list = quickfix.get({}, { id = 0, title = 0, idx = 0, size = 0 })
  if list.size <= MAX then
    return list, quickfix.get({}, { id = list.id, items = 0 }).items
  end
  return list, quickfix.items({}, list.id, 1, MAX, pause)
end

return {
  name = 'quickfix',
  uri = 'nvim://quickfix',
  title = 'Quickfix list',
  description = 'Entries of the current quickfix list (results of searches, compilers, tests), and the index of the'
    .. ' current one. Lines and columns count from 1.',
  mime_type = 'application/json',
  tags = { 'editor' },
  run = function(ctx)
    local pause = time_slice.of(ctx)
    local list, items = entries_of(pause)
    local entries = quickfix.entries(items, ctx.root, pause)
    return {
      title = list.title ~= '' and redact.line(list.title, pause) or nil,
      entries = entries,
      total = list.size,
      current = list.idx > 0 and list.idx or nil,
    }
  end,
  watch = function(changed)
    return watch.poll(POLL_MS, function()
      local list = vim.fn.getqflist({ id = 0, changedtick = 0, idx = 0 })
      return ('%d %d %d'):format(list.id, list.changedtick, list.idx)
    end, changed)
  end,
}

--- The quickfix list.

local access = require('mcp-tools.files.access')
local watch = require('mcp-tools.editor.watch')

--- More entries in one answer are no help.
local MAX = 1000
--- `setqflist()` has no event, so its counter is looked at.
local POLL_MS = 200

local KINDS = { E = 'error', W = 'warning', I = 'info', N = 'note' }

return {
  name = 'quickfix',
  uri = 'nvim://quickfix',
  title = 'Quickfix list',
  description = 'The entries of the current quickfix list (results of searches, compilers, tests) and which of them is'
    .. ' the current one. Lines and columns count from 1.',
  mime_type = 'application/json',
  tags = { 'editor' },
  read = function(ctx)
    local list = vim.fn.getqflist({ items = 0, title = 0, idx = 0, size = 0 })
    local entries, verdicts = {}, {}
    for i = 1, math.min(list.size, MAX) do
      local item = list.items[i]
      local bufnr = item.bufnr > 0 and item.bufnr or nil
      local verdict = bufnr and verdicts[bufnr]
      if bufnr and not verdict then
        local ok, why = access.buffer(bufnr, ctx.root)
        verdict = { ok = ok, why = why, path = access.shown(vim.api.nvim_buf_get_name(bufnr), ctx.root) }
        verdicts[bufnr] = verdict
      end
      entries[i] = {
        path = verdict and verdict.path,
        line = item.lnum > 0 and item.lnum or nil,
        column = item.col > 0 and item.col or nil,
        kind = KINDS[item.type:upper()],
        text = (not verdict or verdict.ok) and item.text or nil,
        withheld = verdict and verdict.why,
      }
    end
    ctx({
      title = list.title ~= '' and list.title or nil,
      entries = entries,
      total = list.size,
      current = list.idx > 0 and list.idx or nil,
    })
  end,
  watch = function(changed)
    return watch.poll(POLL_MS, function()
      local list = vim.fn.getqflist({ id = 0, changedtick = 0, idx = 0 })
      return ('%d %d %d'):format(list.id, list.changedtick, list.idx)
    end, changed)
  end,
}

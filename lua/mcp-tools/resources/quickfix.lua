--- The quickfix list.

local access = require('mcp-tools.files.access')
local redact = require('mcp-tools.files.redact')
local turns = require('mcp-tools.util.turns')
local watch = require('mcp-tools.editor.watch')

--- More entries in one answer are no help.
local MAX = 1000
--- `setqflist()` has no event, so its counter is looked at.
local POLL_MS = 200

local KINDS = { E = 'error', W = 'warning', I = 'info', N = 'note' }

--- The first entries; a long list is not taken whole.
---@return table list, table[] items
local function entries_of()
  local list = vim.fn.getqflist({ id = 0, title = 0, idx = 0, size = 0 })
  if list.size <= MAX then
    return list, vim.fn.getqflist({ id = list.id, items = 0 }).items
  end
  local items = {}
  for i = 1, MAX do
    items[i] = vim.fn.getqflist({ id = list.id, idx = i, items = 0 }).items[1]
  end
  return list, items
end

--- What may be said of the file of an entry. One without a file is a note; one whose buffer is gone had a file of which
--- nothing is known any more.
---@param item table
---@param root string
---@return { ok: boolean, why: string?, path: string? }
local function verdict_of(item, root)
  if item.bufnr == 0 then
    local is_note = item.lnum == 0 and item.valid == 0
    return { ok = is_note, why = not is_note and 'not a plain file' or nil }
  end
  if not vim.api.nvim_buf_is_valid(item.bufnr) then -- it went during a pause
    return { ok = false, why = 'not a plain file' }
  end
  local ok, why = access.buffer(item.bufnr, root)
  return { ok = ok, why = why, path = access.shown(vim.api.nvim_buf_get_name(item.bufnr), root) }
end

return {
  name = 'quickfix',
  uri = 'nvim://quickfix',
  title = 'Quickfix list',
  description = 'The entries of the current quickfix list (results of searches, compilers, tests) and which of them is'
    .. ' the current one. Lines and columns count from 1.',
  mime_type = 'application/json',
  tags = { 'editor' },
  run = function(ctx)
    local list, items = entries_of()
    local pause, entries, verdicts = turns.of(ctx), {}, {}
    redact.refresh(pause)
    for i, item in ipairs(items) do
      local verdict = verdicts[item.bufnr]
      if not verdict then
        verdict = verdict_of(item, ctx.root)
        verdicts[item.bufnr] = item.bufnr > 0 and verdict or nil
      end
      entries[i] = {
        path = verdict.path,
        line = item.lnum > 0 and item.lnum or nil,
        column = item.col > 0 and item.col or nil,
        kind = KINDS[item.type:upper()],
        text = verdict.ok and (verdict.path and redact.quoted or redact.line)(item.text, pause) or nil,
        withheld = verdict.why,
      }
      pause()
    end
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

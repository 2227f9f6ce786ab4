--- Diff as tools answer with it; one that is too large becomes less instead of failing.
---
--- Receives: two texts, what they are called, how much may be said.
--- Sends: a unified diff and its counts; else without context; else the changed places; else counts alone.
--- Does not know about: where the texts come from.
---
--- Long texts are compared in a thread of its own.

local errors = require('mcp-tools.errors')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Bytes of a diff in an answer.
M.MAX_BYTES = 64 * 1024
local MAX_HUNKS = 500

--- Runs in the thread: it knows nothing of this file.
local function work(old, new, context, max, max_hunks)
  local diff = vim.diff or vim.text.diff
  local text = diff(old, new, { ctxlen = context })
  local found = { added = 0, removed = 0 }
  for sign in ('\n' .. text):gmatch('\n([+-])') do
    local kind = sign == '+' and 'added' or 'removed'
    found[kind] = found[kind] + 1
  end
  if #text > max and context > 0 then
    found.bare = true
    text = diff(old, new, { ctxlen = 0 })
  end
  if #text <= max then
    found.text = text
  else
    local hunks = diff(old, new, { result_type = 'indices' })
    found.hunks = #hunks <= max_hunks and hunks or nil
  end
  return vim.mpack.encode(found)
end

--- A text as it is compared.
---@param lines string[]
---@return string
function M.text(lines)
  return #lines > 0 and table.concat(lines, '\n') .. '\n' or ''
end

--- The fields of an answer. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param old string
---@param new string
---@param opts { old: string, new: string, context: integer }
---@param about table what else is said; it is added to
---@return table?
---@return mcp-tools.Error? err
function M.await(ctx, old, new, opts, about)
  if old == new then
    about.diff, about.added, about.removed = '', 0, 0
    return about
  end
  local packed = ctx:await(function(done)
    local thread = vim.uv.new_work(work, vim.schedule_wrap(done))
    thread:queue(old, new, opts.context, M.MAX_BYTES, MAX_HUNKS)
  end)
  if not packed then
    return nil, errors.new('tool_error', 'the texts could not be compared')
  end
  local found = vim.mpack.decode(packed)
  about.added, about.removed = found.added, found.removed
  if found.text then
    local text, lossy = utf8.repair(found.text)
    about.diff = ('--- %s\n+++ %s\n%s'):format(opts.old, opts.new, text)
    about.lossy = lossy or nil
    about.narrowed = found.bare and 'the difference is large, so it comes without context' or nil
    return about
  end
  about.narrowed = 'the difference is too large; read the changed lines with buffer_read'
  if found.hunks then
    about.hunks = {}
    for i, hunk in ipairs(found.hunks) do
      about.hunks[i] = { line = hunk[3], removed = hunk[2], added = hunk[4] }
    end
  end
  return about
end

return M

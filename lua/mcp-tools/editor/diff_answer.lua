--- A difference as tools answer with it; one that is too large becomes less instead of failing.
---
--- Receives: two texts, what they are called, how much may be said.
--- Sends: a unified diff and its counts; else without context; else the changed places; else counts alone.
--- Does not know about: where the texts come from.

local text_edits = require('mcp-tools.editor.text_edits')
local unified = require('mcp-tools.editor.unified')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Bytes of a diff in an answer.
M.MAX_BYTES = 64 * 1024
local MAX_HUNKS = 500

---@param lines string[]
local function whole(lines)
  return #lines > 0 and table.concat(lines, '\n') .. '\n' or ''
end

--- The fields of an answer.
---@param old string[]
---@param new string[]
---@param opts { old: string, new: string, context: integer? }
---@param about table what else is said; it is added to
---@return table
function M.of(old, new, opts, about)
  local before, after = whole(old), whole(new)
  local text, count = unified.of(before, after, opts)
  about.added, about.removed = count.added, count.removed
  if #text > M.MAX_BYTES and (opts.context or 3) > 0 then
    text = unified.of(before, after, { old = opts.old, new = opts.new, context = 0 })
    about.narrowed = 'the difference is large, so it comes without context'
  end
  if #text <= M.MAX_BYTES then
    local lossy
    about.diff, lossy = utf8.repair(text)
    about.lossy = lossy or nil
    return about
  end
  about.narrowed = 'the difference is too large; read the changed lines with buffer_read'
  local hunks = text_edits.diff(before, after, { result_type = 'indices' }) --[[@as integer[][] ]]
  if #hunks <= MAX_HUNKS then
    about.hunks = {}
    for i, hunk in ipairs(hunks) do
      about.hunks[i] = { line = hunk[3], removed = hunk[2], added = hunk[4] }
    end
  end
  return about
end

return M

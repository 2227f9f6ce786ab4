--- Unified diff of two texts, as `diff -u` writes it.
---
--- Receives: lines, and what the two are called.
--- Sends: a unified diff; nothing where they are the same.
--- Does not know about: buffers, files, who reads it.

local line_diff = require('mcp-tools.editor.edit.line_diff')

local M = {}

---@class mcp-tools.UnifiedOpts
---@field old string? its name, `a/…`; `/dev/null` for a text that is new
---@field new string?
---@field context integer? lines around each change, 3 when left out

--- The difference.
---@param old string[]
---@param new string[]
---@param opts? mcp-tools.UnifiedOpts
---@return string diff
---@return { added: integer, removed: integer } count of lines
function M.of(old, new, opts)
  opts = opts or {}
  local count = { added = 0, removed = 0 }
  local body = line_diff.unified(old, new, opts.context or 3)
  if body == '' then
    return '', count
  end
  for sign in ('\n' .. body):gmatch('\n([+-])') do
    local kind = sign == '+' and 'added' or 'removed'
    count[kind] = count[kind] + 1
  end
  return ('--- %s\n+++ %s\n%s'):format(opts.old or 'a', opts.new or 'b', body), count
end

return M

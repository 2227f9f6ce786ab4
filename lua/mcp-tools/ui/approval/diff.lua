--- The part of a question for approval that shows what would change: its heading, and the diff in colours.

local arguments = require('mcp-tools.ui.approval.arguments')
local view = require('mcp-tools.ui.window.diff')

local M = {}

--- A heading, with what is cut marked in it.
---@param page mcp-tools.Rows
---@param text string
---@param hunk string? where the difference is, as the text says it
function M.heading(page, text, hunk)
  local cut = text:find('CUT', 1, true)
  local at = hunk and text:find(hunk, 1, true)
  page:line(text, {
    { 1, (at or cut or #text + 1) - 1, 'Heading' },
    { at or 1, at and at + #hunk - 1 or 0, 'Changed' },
    { cut or 1, cut and #text or 0, 'Warn' },
  })
end

local BAR = #'  │ '

local HUNK = '^(@@ %-[%d,]+ %+[%d,]+ @@)\n(.*)$'

--- A diff of the one file that the head names needs neither its name again nor a row for where it begins.
---@param text string
---@param file string? as a diff calls it
---@return string heading, string text, string? hunk the head that now stands in the heading
local function headed(text, file)
  if not file then
    return text:find('%f[^\n%z]%$ ') and not text:find('^%-%-%- ') and 'command' or 'changes', text
  end
  for before, heading in pairs({ ['a/' .. file] = 'changes', ['/dev/null'] = 'changes, a new file' }) do
    local lead = ('--- %s\n+++ b/%s\n'):format(before, file)
    local hunk, rest = nil, nil
    if vim.startswith(text, lead) then
      hunk, rest = text:sub(#lead + 1):match(HUNK)
    end
    if hunk then
      return heading .. '  ' .. hunk, rest, hunk
    end
  end
  return 'changes', text
end

--- Is a text a difference that is shown to its end?
---@param text string?
---@return boolean
function M.is_whole(text)
  if not text or not text:find('^%-%-%- [^\n]*\n%+%+%+ [^\n]*\n@@ ') or text:find('\n[^ +%-@\\\n]') then
    return false -- or it says something else besides
  end
  local _, cut = arguments.block(text, arguments.MAX_BYTES)
  return not cut
end

--- Adds what would change.
---@param page mcp-tools.Rows
---@param text string? what would change
---@param fault string?
---@param file string? the only one, as a diff calls it
function M.add(page, text, fault, file)
  if fault then
    return page:line(fault, { { 1, #fault, 'Warn' } })
  end
  local heading, body, hunk = headed(text or '', file)
  local lines, cut = arguments.block(body, arguments.MAX_BYTES)
  M.heading(page, cut and heading .. ', CUT' or heading, hunk)
  local texts = vim.tbl_map(function(line)
    return line:sub(BAR + 1)
  end, lines)
  local spans = view.spans(texts, { offset = BAR, hunk = hunk, path = hunk and file })
  for i, line in ipairs(lines) do
    page:line(line, spans[i])
  end
end

return M

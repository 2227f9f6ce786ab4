--- What a program printed for a terminal, as plain text.
---
--- Receives: text with colours, titles and lines that were written over.
--- Sends: what would be left to read.
--- Does not know about: programs, secrets.

local M = {}

--- What begins with ESC, and its 8-bit forms in UTF-8 are left alone: they may be text.
local SEQUENCES = {
  '\27%[[0-?]*[ -/]*[@-~]', -- colours, movements
  '\27%][^\7\27]*\7', -- titles, links
  '\27%][^\7\27]*\27\\',
  '\27[PX^_][^\27]*\27\\',
  '\27[ -/]+[0-~]',
  '\27[0-~]',
}

--- A line as it stands in the end: the last that was written over it.
---@param line string
---@return string
local function final(line)
  line = line:gsub('\r+$', '')
  if line:find('\r', 1, true) then
    line = line:match('([^\r]*)$')
  end
  while line:find('[^\8]\8') do
    line = line:gsub('[^\8]\8', '')
  end
  return (line:gsub('[%z\1-\8\11-\31\127]', ''))
end

--- The text without what is meant for a terminal.
---@param text string
---@return string
function M.plain(text)
  if not text:find('[%z\1-\8\11-\31\127]') then
    return text
  end
  for _, sequence in ipairs(SEQUENCES) do
    text = text:gsub(sequence, '')
  end
  local lines = vim.split(text, '\n', { plain = true })
  for i, line in ipairs(lines) do
    lines[i] = final(line)
  end
  return table.concat(lines, '\n')
end

return M

--- Converts terminal output to plain text.

local M = {}

--- Sequences that start with ESC. Their 8-bit forms are kept, since they may be UTF-8 text.
local SEQUENCES = {
  '\27%[[0-?]*[ -/]*[@-~]', -- colors, cursor movements
  '\27%][^\7\27]*\7', -- titles, links
  '\27%][^\7\27]*\27\\',
  '\27[PX^_][^\27]*\27\\',
  '\27[ -/]+[0-~]',
  '\27[0-~]',
}

--- Number of characters processed between two pauses.
local STEP = 4096

--- Applies backspaces: each removes the character before it.
---@param line string
---@param pause fun()
---@return string
local function without_backspaces(line, pause)
  local kept, count, steps = {}, 0, 0
  for character in line:gmatch('.[\128-\191]*') do
    if character == '\8' then
      kept[count] = nil
      count = math.max(count - 1, 0)
    else
      count = count + 1
      kept[count] = character
    end
    steps = steps + 1
    if steps % STEP == 0 then
      pause()
    end
  end
  return table.concat(kept, '', 1, count)
end

--- Returns a line as a terminal shows it: the text after the last carriage return.
---@param line string
---@param pause fun()
---@return string
local function final(line, pause)
  if line:find('\r', 1, true) then
    line = line:match('^.*[^\r]') or ''
    line = line:match('^.*\r(.*)$') or line
  end
  if line:find('\8', 1, true) then
    line = without_backspaces(line, pause)
  end
  return (line:gsub('[%z\1-\8\11-\31\127]', ''))
end

--- Returns the text without control sequences.
---@param text string
---@param pause? fun() called between pieces of work
---@return string
function M.plain(text, pause)
  pause = pause or function() end
  if not text:find('[%z\1-\8\11-\31\127]') then
    return text
  end
  for _, sequence in ipairs(SEQUENCES) do
    text = text:gsub(sequence, '')
  end
  local lines = vim.split(text, '\n', { plain = true })
  for i, line in ipairs(lines) do
    lines[i] = final(line, pause)
  end
  return table.concat(lines, '\n')
end

return M

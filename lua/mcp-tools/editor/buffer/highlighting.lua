--- Turns highlighting off for text that would freeze or abort Neovim when it is drawn.

local api = vim.api

local M = {}

--- Maximum length of a highlighted line, bytes, if it is the only long one on the screen. Neovim highlights a line in
--- one step that takes quadratic time: 3 s for 85 KB.
local MAX_LINE = 6 * 1024
--- Number of lines that a screen shows.
local SCREEN = 50
--- Maximum number of nested blocks in one line. At about 250 an assertion in the Markdown parser aborts Neovim.
M.MAX_BLOCKS = 200
--- Number of lines that are read at once.
local LINES = 1000

--- Number of blocks of Markdown that each byte may begin; bytes that are missing here end the run of markers.
local BLOCKS = { [(' '):byte()] = 0.5, [('\t'):byte()] = 2, [('>'):byte()] = 1 }
for char in ('\v\f\r-+*.)0123456789'):gmatch('.') do
  BLOCKS[char:byte()] = 0
end
--- Bytes that begin a list item before a space.
local ITEMS = {}
for char in ('-+*.)'):gmatch('.') do
  ITEMS[char:byte()] = true
end
local BLANK = { [(' '):byte()] = true, [('\t'):byte()] = true }

--- Returns the possible number of nested blocks in a run of markers.
---@param line string
---@param at integer first byte of the run
---@return number blocks
---@return integer after byte after the run
local function blocks_of(line, at)
  local blocks = 0
  local code = line:byte(at)
  while BLOCKS[code] do
    at = at + 1
    local next_code = line:byte(at)
    blocks = blocks + BLOCKS[code] + (ITEMS[code] and BLANK[next_code] and 1 or 0)
    code = next_code
  end
  return blocks, at
end

--- Returns whether a line may have too many nested blocks for the Markdown parser.
---@param line string
---@param anywhere? boolean Markdown may begin inside the line, such as in a comment
---@return boolean
function M.is_nested(line, anywhere)
  local step = M.MAX_BLOCKS / 2 -- no shorter run has as many: a tab is two blocks
  local at, blocks = 1, 0
  if #line > step then
    blocks, at = blocks_of(line, 1)
  end
  while anywhere and blocks <= M.MAX_BLOCKS and at + step <= #line do
    at = at + step
    if BLOCKS[line:byte(at)] then
      local first = at
      while BLOCKS[line:byte(first - 1)] do
        first = first - 1
      end
      blocks, at = blocks_of(line, first)
    end
  end
  return blocks > M.MAX_BLOCKS
end

--- Returns what highlighting of lines would do, in any language: many inject Markdown.
---@param lines string[]
---@return 'freeze'|'abort'|nil
function M.danger_of(lines)
  local danger, cost = nil, 0 -- of the lines of one screen
  for i, line in ipairs(lines) do
    if M.is_nested(line, true) then
      return 'abort'
    end
    cost = cost + (#line) ^ 2 - (i > SCREEN and (#lines[i - SCREEN]) ^ 2 or 0)
    danger = danger or cost > MAX_LINE ^ 2 and 'freeze' or nil
  end
  return danger
end

--- Sets the filetype of a new buffer, unless its text is dangerous to highlight.
---@param bufnr integer
---@param filetype string
function M.set_filetype(bufnr, filetype)
  if filetype ~= '' and not M.danger_of(api.nvim_buf_get_lines(bufnr, 0, -1, false)) then
    vim.bo[bufnr].filetype = filetype
  end
end

--- Does nothing, in place of the function `parse` of a parser.
local function parse_nothing(_, _, on_parsed)
  if on_parsed then
    on_parsed(nil, {})
  end
  return {}
end

---@param bufnr integer
---@param danger 'freeze'|'abort'
local function turn_off(bufnr, danger)
  vim.treesitter.stop(bufnr)
  if danger == 'abort' then -- folds and plugins use the same parser
    local ok, parser = pcall(vim.treesitter.get_parser, bufnr, nil, { error = false })
    if ok and parser then
      parser.parse = parse_nothing
    end
  end
  vim.bo[bufnr].syntax = 'OFF'
end

--- Turns highlighting off if the text of a buffer is dangerous. Call this before Neovim draws the text.
---@param bufnr integer loaded
---@param first? integer first line that has changed, 0-based; default: 0
---@param last? integer line after the last one that has changed; default: the number of lines
function M.guard(bufnr, first, last)
  local danger
  first, last = first or 0, last or api.nvim_buf_line_count(bufnr)
  for from = first, last - 1, LINES do
    danger = M.danger_of(api.nvim_buf_get_lines(bufnr, from, math.min(from + LINES, last), false)) or danger
    if danger == 'abort' then
      break
    end
  end
  if danger then
    turn_off(bufnr, danger)
  end
end

return M

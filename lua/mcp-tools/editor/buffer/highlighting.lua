--- Turns highlighting off for text that would freeze or abort Neovim when it is drawn.

local buffers = require('mcp-tools.editor.buffer')
local notify = require('mcp-tools.notify')

local api = vim.api

local M = {}

--- Maximum length of a highlighted line, bytes, if it is the only long one on the screen. Neovim highlights a line in
--- one step that takes quadratic time: 3 s for 85 KB.
local MAX_LINE = 6 * 1024
--- Assumed number of lines on a screen.
local SCREEN = 50
--- Maximum number of nested blocks in one line. At about 250 an assertion in the Markdown parser aborts Neovim.
M.MAX_BLOCKS = 200
--- Number of lines that are read at once.
local LINES = 1000

--- Number of Markdown blocks that each byte may begin. A run of markers consists of these bytes and ends at any other.
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
  local step = M.MAX_BLOCKS / 2 -- a shorter run cannot have too many: a byte begins at most two blocks
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

--- Returns whether highlighting lines would freeze or abort Neovim. The language does not matter: many inject Markdown.
---@param lines string[]
---@param seen? table<string, integer> lines that Neovim has drawn without freezing, with their number; it is reduced
---@return 'freeze'|'abort'|nil
function M.danger_of(lines, seen)
  local danger, cost, costs = nil, 0, {} -- `cost`: of the last `SCREEN` lines
  for i, line in ipairs(lines) do
    if M.is_nested(line, true) then
      return 'abort'
    end
    local left = seen and seen[line] or 0
    costs[i] = left > 0 and 0 or (#line) ^ 2
    if seen and left > 0 then
      seen[line] = left - 1
    end
    cost = cost + costs[i] - (costs[i - SCREEN] or 0)
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
---@return boolean
local function is_on(bufnr)
  local syntax = vim.bo[bufnr].syntax
  return vim.treesitter.highlighter.active[bufnr] ~= nil or syntax ~= '' and syntax ~= 'OFF'
end

---@param bufnr integer
---@param danger 'freeze'|'abort'
---@param was_on boolean
local function turn_off(bufnr, danger, was_on)
  if was_on and vim.bo[bufnr].buftype == '' then
    local text = 'highlighting of %s is off: %s'
    local is_freeze = danger == 'freeze'
    local why = is_freeze and 'its long lines could block Neovim' or 'its nested blocks could crash Neovim'
    notify.warn(text:format(buffers.shown(bufnr), why), is_freeze and '`:edit` turns it on again' or nil)
  end
  vim.treesitter.stop(bufnr)
  if danger == 'abort' then -- folds and plugins use the same parser
    local ok, parser = pcall(vim.treesitter.get_parser, bufnr, nil, { error = false })
    if ok and parser then
      parser.parse = parse_nothing
    end
  end
  vim.bo[bufnr].syntax = 'OFF'
end

---@param bufnr integer
---@param first integer
---@param last integer
---@param seen? table<string, integer>
---@return 'freeze'|'abort'|nil
local function danger_in(bufnr, first, last, seen)
  local danger
  for from = first, last - 1, LINES do
    danger = M.danger_of(api.nvim_buf_get_lines(bufnr, from, math.min(from + LINES, last), false), seen) or danger
    if danger == 'abort' then
      break
    end
  end
  return danger
end

---@param bufnr integer loaded
---@param seen? string[] lines that Neovim has drawn without freezing
---@return 'freeze'|'abort'|nil
local function danger_beyond(bufnr, seen)
  local last = api.nvim_buf_line_count(bufnr)
  local danger = danger_in(bufnr, 0, last)
  if danger == 'freeze' and seen then
    local counts = {}
    for _, line in ipairs(seen) do
      counts[line] = (counts[line] or 0) + 1
    end
    danger = danger_in(bufnr, 0, last, counts)
  end
  return danger
end

--- Turns highlighting off if the text of a buffer is dangerous. Call this before Neovim draws the text.
---@param bufnr integer loaded
---@param first integer first line that has changed, 0-based
---@param last integer line after the last one that has changed
function M.guard(bufnr, first, last)
  local danger = danger_in(bufnr, first, last)
  if danger then
    turn_off(bufnr, danger, is_on(bufnr))
  end
end

--- Returns the lines of a buffer that windows show with highlighting.
---@param bufnr integer loaded
---@return string[]? lines nil: it is not highlighted
function M.seen(bufnr)
  local lines = {}
  if not is_on(bufnr) then
    return nil
  end
  for _, win in ipairs(vim.fn.win_findbuf(bufnr)) do
    local info = vim.fn.getwininfo(win)[1]
    local last = math.max(info.topline, info.botline) -- a line that does not fit is not counted by `botline`
    vim.list_extend(lines, api.nvim_buf_get_lines(bufnr, info.topline - 1, last, false))
  end
  return lines
end

--- Turns highlighting off if the text of a buffer is dangerous and the user has not seen it with highlighting. Call
--- this before a window shows the buffer.
---@param bufnr integer loaded
function M.guard_shown(bufnr)
  local danger = danger_beyond(bufnr, M.seen(bufnr))
  if danger then
    turn_off(bufnr, danger, is_on(bufnr))
  end
end

--- Runs the autocommands of `FileType` for a buffer that was read without them, and turns highlighting off if its text
--- is dangerous. In Neovim 0.10, they would parse text that aborts it.
---@param bufnr integer loaded
---@param seen string[]? from `M.seen` before it was read
function M.after_reading(bufnr, seen)
  local danger, filetype = danger_beyond(bufnr, seen), vim.bo[bufnr].filetype
  if danger == 'abort' then
    vim.bo[bufnr].filetype = ''
  elseif filetype ~= '' then
    pcall(api.nvim_buf_call, bufnr, function() -- reads modelines, too
      vim.cmd('silent doautocmd FileType ' .. vim.fn.fnameescape(filetype))
    end)
  end
  if danger and api.nvim_buf_is_loaded(bufnr) then
    turn_off(bufnr, danger, seen ~= nil)
  end
end

return M

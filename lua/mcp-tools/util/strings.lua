--- Operations on strings that take time proportional to their length.
---
--- An unanchored pattern such as `[^\n]*$` or `%s*\n` is tried from every byte, quadratic on a long run: a line
--- of 30 kB takes seconds. `^.*` is anchored and matches from the end.

local trim = require('mcp-tools.util.trim')

local M = {}

--- Returns the text after the last line break.
---@param text string
---@return string
function M.last_line(text)
  return text:match('^.*\n(.*)$') or text
end

--- Returns the text up to and including its last line break; '' when it has none.
---@param text string
---@return string
function M.whole_lines(text)
  return text:match('^.*\n') or ''
end

--- Iterates over the parts of a text that end with a character; what follows the last one is left out.
---@param text string
---@param ending string
---@return fun(): string?
function M.each_ended(text, ending)
  local at = 1
  return function()
    local stop = text:find(ending, at, true)
    if stop then
      local part = text:sub(at, stop - 1)
      at = stop + #ending
      return part
    end
  end
end

--- Returns the path of a directory with one slash at its end.
---@param path string
---@return string
function M.directory(path)
  return (path:match('^.*[^/]') or '') .. '/'
end

--- Removes white space at the end.
---@param text string
---@return string
function M.trim_end(text)
  return text:match('^.*%S') or ''
end

--- Returns the letters, digits, underscores and non-ASCII bytes at the end of a text.
---@param text string
---@return string
function M.last_word(text)
  return text:match('^.*[^%w_\128-\255](.*)$') or text
end

--- Joins the lines of a text, without the white space around them and without blank lines.
---@param text string
---@param separator string
---@return string
function M.join_lines(text, separator)
  if not text:find('\n', 1, true) then
    return text
  end
  local parts = {}
  for line in vim.gsplit(text, '\n', { plain = true }) do
    line = trim(line)
    if line ~= '' then
      table.insert(parts, line)
    end
  end
  return table.concat(parts, separator)
end

return M

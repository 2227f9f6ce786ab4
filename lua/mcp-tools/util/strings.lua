--- String operations in linear time.
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

--- Iterates over the parts of a text that end with a character; an unterminated rest is left out.
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

--- Returns a callback for the output of a job that calls `emit` for each line with text.
---@param max integer a longer line is truncated, so that the process cannot fill the memory
---@param emit fun(line: string)
---@return fun(job: integer, chunks: string[])
function M.job_lines(max, emit)
  local rest = ''
  return function(_, chunks)
    if #chunks == 1 and chunks[1] == '' then
      chunks = { '', '' } -- the end of the stream also ends its last line
    end
    for i, chunk in ipairs(chunks) do
      if i > 1 then
        local line = rest:gsub('\r$', '')
        rest = ''
        if line:find('%S') then
          emit(line)
        end
      end
      rest = (rest .. chunk):sub(1, max)
    end
  end
end

--- Number of bytes searched between two pauses.
local CHUNK = 32 * 1024

--- Counts the occurrences of a character.
---@param text string
---@param character string
---@param pause fun() called between pieces of work
---@return integer
function M.count(text, character, pause)
  local count = 0
  for at = 1, #text, CHUNK do
    count = count + select(2, text:sub(at, at + CHUNK - 1):gsub(vim.pesc(character), '%0'))
    pause()
  end
  return count
end

--- Replaces every occurrence of one or two plain characters.
---@param text string
---@param from string
---@param to string
---@param pause? fun() called between pieces of work
---@return string
function M.replace_all(text, from, to, pause)
  pause = pause or function() end
  if not text:find(from, 1, true) then
    return text
  end
  local parts, at = {}, 1
  local pattern, with, first = vim.pesc(from), to:gsub('%%', '%%%%'), from:byte(1)
  while at <= #text do
    local last = at + CHUNK - 1
    if text:byte(last) == first then
      last = last + #from - 1 -- it may be cut
    end
    parts[#parts + 1] = text:sub(at, last):gsub(pattern, with)
    at = last + 1
    pause()
  end
  return table.concat(parts)
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

--- Returns the pattern of a name that is a whole word.
---@param name string
---@return string pattern
function M.word_pattern(name)
  local first, last = name:find('^[%w_]') and '%f[%w_]' or '', name:find('[%w_]$') and '%f[^%w_]' or ''
  return first .. vim.pesc(name) .. last
end

return M

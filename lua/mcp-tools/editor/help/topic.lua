--- Topic of the help: the lines that explain a tag, without opening the help.
---
--- Receives: a tag and its file.
--- Sends: its lines, from the tag to the next one; and lines of any help file that hold some words.
--- Does not know about: which tag is meant, tools.

local read = require('mcp-tools.files.read')
local strings = require('mcp-tools.util.strings')
local tags = require('mcp-tools.editor.help.tags')
local trim = require('mcp-tools.util.trim')

local M = {}

local MAX_BYTES = 4 * 1024 * 1024

--- The text of a help file.
---@param ctx mcp-tools.Ctx in a coroutine
---@param path string
---@return string? text
---@return mcp-tools.Error? err
function M.text(ctx, path)
  local text, err = ctx:await(function(done)
    read.read(path, MAX_BYTES, done, tags.judge(path, ctx.root))
  end)
  return text and (text:gsub('\r\n', '\n')), err
end

---@param text string
---@param from integer
---@param to integer
---@return integer
local function breaks(text, from, to)
  return select(2, text:sub(from, to):gsub('\n', ''))
end

--- Some lines of a text, from the one that begins at a byte.
---@param text string
---@param from integer
---@param count integer
---@return string[] lines
---@return boolean more
local function lines_from(text, from, count)
  local lines = {}
  while #lines < count and from <= #text do
    local at = text:find('\n', from, true) or #text + 1
    table.insert(lines, text:sub(from, at - 1))
    from = at + 1
  end
  return lines, from <= #text
end

---@param line string
---@return boolean
local function is_rule(line)
  return line:find('^[=-][=-][=-][=-]+%s*$') ~= nil
end

--- Does a line begin a topic?
---@param line string
---@return boolean
local function has_tag(line)
  return line:find('%*[^%s*|]+%*%s') ~= nil or line:find('%*[^%s*|]+%*$') ~= nil
end

--- How many of the lines are of the topic that begins with them. One that begins with several tags ends before the next
--- that comes behind some text.
---@param lines string[]
---@return integer count
---@return boolean ended
local function extent(lines)
  local text_seen, last = false, #lines
  for i = 2, #lines do
    local line = lines[i]
    if text_seen and (is_rule(line) or has_tag(line)) then
      last = i - 1
      break
    end
    text_seen = text_seen or line:find('%S') ~= nil and not has_tag(line) and not is_rule(line)
  end
  local ended = last < #lines
  while last > 1 and not lines[last]:find('%S') do
    last = last - 1
  end
  return last, ended
end

---@class mcp-tools.HelpTopic
---@field line integer of the first one
---@field lines string[]
---@field ended boolean they are the whole topic
---@field more boolean the file goes on

--- The lines of a topic; with an offset those that follow, whatever they belong to.
---@param text string of its file
---@param tag string
---@param offset integer
---@param limit integer
---@return mcp-tools.HelpTopic?
function M.read(text, tag, offset, limit)
  local at = text:find('*' .. tag .. '*', 1, true)
  if not at then
    return nil
  end
  while at > 1 and text:sub(at - 1, at - 1) ~= '\n' do
    at = at - 1
  end
  -- One more than is wanted tells whether the topic ends there.
  local lines, more = lines_from(text, at, offset + limit + 1)
  local count, ended = offset + limit, false
  if offset == 0 then
    local all
    count, all = extent(lines)
    ended = all or not more and #lines <= limit
    count = math.min(count, limit)
  end
  return {
    line = 1 + breaks(text, 1, at - 1) + offset,
    lines = vim.list_slice(lines, offset + 1, math.min(#lines, count)),
    ended = ended and offset == 0,
    more = more or #lines > count,
  }
end

--- Lines that hold all words, file by file, until there are enough.
---@param ctx mcp-tools.Ctx in a coroutine
---@param words string[] in small letters
---@param enough integer
---@param pause fun()
---@return { file: string, line: integer, text: string }[]
function M.search(ctx, words, enough, pause)
  local longest = words[1]
  for _, word in ipairs(words) do
    longest = #word > #longest and word or longest
  end
  local found = {}
  for _, path in ipairs(vim.api.nvim_get_runtime_file('doc/*.txt', true)) do
    local text = M.text(ctx, path) or ''
    pause()
    local small, line, counted, from = text:lower(), 1, 1, 1
    while #found < enough do
      local at = small:find(longest, from, true)
      if not at then
        break
      end
      line, counted = line + breaks(text, counted, at - 1), at
      local stop = (small:find('\n', at, true) or #small + 1) - 1
      local start = at - #strings.last_line(small:sub(math.max(1, at - 1000), at - 1))
      local whole = small:sub(start, stop)
      if vim.iter(words):all(function(word)
        return whole:find(word, 1, true) ~= nil
      end) then
        table.insert(found, { file = path, line = line, text = trim(text:sub(start, stop)) })
      end
      from = stop + 1
      pause()
    end
    pause()
    if #found >= enough then
      break
    end
  end
  return found
end

return M

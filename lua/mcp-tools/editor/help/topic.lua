--- Topic of the help: the lines that explain a tag, without opening the help.
---
--- Receives: a tag and its file.
--- Sends: its lines, from the tag to the next one; and lines of any help file that hold some words.
--- Does not know about: which tag is meant, tools.

local read = require('mcp-tools.files.read')
local tags = require('mcp-tools.editor.help.tags')

local M = {}

local MAX_BYTES = 4 * 1024 * 1024

---@param ctx mcp-tools.Ctx in a coroutine
---@param path string
---@return string[]? lines
---@return mcp-tools.Error? err
function M.lines(ctx, path)
  local text, err = ctx:await(function(done)
    read.read(path, MAX_BYTES, done, tags.may)
  end)
  if not text then
    return nil, err
  end
  return vim.split((text:gsub('\r\n', '\n')), '\n', { plain = true })
end

--- Does a line begin a topic?
---@param line string
---@return boolean
local function has_tag(line)
  return line:find('%*[^%s*|]+%*%s') ~= nil or line:find('%*[^%s*|]+%*$') ~= nil
end

--- Where a topic begins and ends. One that begins with several tags ends before the next that comes behind some text.
---@param lines string[]
---@param tag string
---@return integer? first
---@return integer? last
function M.range(lines, tag)
  local first
  for i, line in ipairs(lines) do
    if line:find('*' .. tag .. '*', 1, true) then
      first = i
      break
    end
  end
  if not first then
    return nil
  end
  -- The heading may stand above its tag.
  local text_seen, last = false, #lines
  for i = first, #lines do
    local line = lines[i]
    local rule = line:find('^[=-][=-][=-][=-]+%s*$') ~= nil
    if text_seen and (rule or has_tag(line)) then
      last = i - 1
      break
    end
    text_seen = text_seen or (i > first and line:find('%S') ~= nil and not has_tag(line) and not rule)
  end
  while last > first and not lines[last]:find('%S') do
    last = last - 1
  end
  return first, last
end

--- Lines that hold all words, file by file, until there are enough.
---@param ctx mcp-tools.Ctx in a coroutine
---@param words string[] in small letters
---@param enough integer
---@param pause fun()
---@return { file: string, line: integer, text: string }[]
function M.search(ctx, words, enough, pause)
  local found = {}
  for _, path in ipairs(vim.api.nvim_get_runtime_file('doc/*.txt', true)) do
    for i, line in ipairs(M.lines(ctx, path) or {}) do
      local small, all = line:lower(), true
      for _, word in ipairs(words) do
        all = all and small:find(word, 1, true) ~= nil
      end
      if all then
        table.insert(found, { file = path, line = i, text = vim.trim(line) })
        if #found >= enough then
          return found
        end
      end
      if i % 200 == 0 then
        pause()
      end
    end
    pause()
  end
  return found
end

return M

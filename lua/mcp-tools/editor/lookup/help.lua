--- Finds topics and lines in the help of Neovim and plugins, without opening it.

local plugins = require('mcp-tools.editor.plugins')
local trim = require('mcp-tools.util.trim')

--- Maximum number of related topics in an answer.
local SEE = 8
--- Maximum number of lines of a topic, and of lines that contain the words.
local MAX_LINES = 1000

---@param line string
---@return boolean
local function is_rule(line)
  return line:find('^[=-][=-][=-][=-]+%s*$') ~= nil
end

--- Returns whether a line has a tag.
---@param line string
---@return boolean
local function has_tag(line)
  return line:find('%*[^%s*|]+%*%s') ~= nil or line:find('%*[^%s*|]+%*$') ~= nil
end

--- Returns the topic at the beginning of some lines. It may begin with several tags, and ends before the first tag or
--- rule after its text.
---@param lines string[]
---@return string[]
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
  while last > 1 and not lines[last]:find('%S') do
    last = last - 1
  end
  return vim.list_slice(lines, 1, last)
end

--- Returns the lines of a topic.
---@param text string of its file
---@param tag string
---@return string[]? lines
---@return integer? line number of the first one
local function read_topic(text, tag)
  local lines = vim.split(text, '\n', { plain = true })
  for number, line in ipairs(lines) do
    if line:find('*' .. tag .. '*', 1, true) then
      return extent(vim.list_slice(lines, number, number + MAX_LINES - 1)), number
    end
  end
end

---@param text string
---@param words string[] lower case
---@return boolean
local function has_all(text, words)
  for _, word in ipairs(words) do
    if not text:lower():find(word, 1, true) then
      return false
    end
  end
  return true
end

--- Returns lines that contain all words, file by file.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param words string[] lower case
---@param pause fun()
---@return string[] rows
local function search_lines(ctx, words, pause)
  local found = {}
  for _, path in ipairs(vim.api.nvim_get_runtime_file('doc/*.txt', true)) do
    local number = 0
    for line in vim.gsplit(plugins.text(ctx, path) or '', '\n', { plain = true }) do
      number = number + 1
      if has_all(line, words) then
        table.insert(found, ('%s:%d: %s'):format(vim.fs.basename(path), number, trim(line)))
        if #found >= MAX_LINES then
          return found
        end
      end
      pause()
    end
  end
  return found
end

--- Calls a function with each tag of the tag files on the runtimepath and its file.
---@param ctx mcp-tools.Ctx
---@param pause fun()
---@param found fun(tag: string, path: string)
local function each_tag(ctx, pause, found)
  for _, path in ipairs(vim.api.nvim_get_runtime_file('doc/tags', true)) do
    for line in (plugins.text(ctx, path) or ''):gmatch('[^\n]+') do
      local tag, file = line:match('^([^\t]+)\t([^\t]+)\t')
      if file and not ('/' .. file .. '/'):find('/../', 1, true) then
        found(tag, vim.fs.dirname(path) .. '/' .. file)
      end
      pause()
    end
  end
end

--- Returns tags that contain a text, the shortest first.
---@param ctx mcp-tools.Ctx
---@param text string lower case
---@param pause fun()
---@return string[]
local function tags_with(ctx, text, pause)
  local tags = {}
  each_tag(ctx, pause, function(tag)
    if tag:lower():find(text, 1, true) then
      table.insert(tags, tag)
    end
  end)
  table.sort(tags, function(a, b)
    return #a < #b or #a == #b and a < b
  end)
  return tags
end

--- Returns matching tags, the best first, as `:help` finds them.
---@param ctx mcp-tools.Ctx
---@param words string[]
---@param pause fun()
---@return string[]
local function matching_tags(ctx, words, pause)
  local ok, found
  -- Neovim would match a pattern, which can block the main thread forever.
  if words[1]:find('[*?\\[]') then
    ok, found = true, tags_with(ctx, words[1]:lower(), pause)
  else
    ok, found = pcall(vim.fn.getcompletion, words[1], 'help')
  end
  return vim.tbl_filter(function(tag)
    return has_all(tag, vim.tbl_map(string.lower, words))
  end, ok and found or {})
end

--- Returns the text of the best matching topic; if no tag matches, lines that contain all words.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param words string[] at least one
---@param pause fun()
---@return string[] lines
---@return string? head
return function(ctx, words, pause)
  local tags, path = matching_tags(ctx, words, pause), nil
  each_tag(ctx, pause, function(tag, file)
    path = path or tag == tags[1] and file or nil
  end)
  local text = path and plugins.text(ctx, path) or ''
  local lines, line = read_topic(text, tags[1] or '')
  if not lines then
    return search_lines(ctx, vim.tbl_map(string.lower, words), pause)
  end
  local head = ('%s in %s, line %d'):format(tags[1], vim.fs.basename(path), line)
  local others = table.concat(vim.list_slice(tags, 2, SEE + 1), ', ')
  return lines, others ~= '' and ('%s; see also %s'):format(head, others) or head
end

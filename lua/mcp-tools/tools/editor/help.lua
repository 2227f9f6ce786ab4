--- Reads Neovim's help without opening it.

local errors = require('mcp-tools.errors')
local plugins = require('mcp-tools.editor.plugins')
local result = require('mcp-tools.editor.result')
local strings = require('mcp-tools.util.strings')
local time_slice = require('mcp-tools.util.time_slice')
local trim = require('mcp-tools.util.trim')

--- Maximum number of related topics in an answer.
local SEE = 8

---@param text string
---@param from integer
---@param to integer
---@return integer
local function count_breaks(text, from, to)
  return select(2, text:sub(from, to):gsub('\n', ''))
end

--- Returns lines of a text, from the one that begins at a byte.
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

--- Returns whether a line has a tag.
---@param line string
---@return boolean
local function has_tag(line)
  return line:find('%*[^%s*|]+%*%s') ~= nil or line:find('%*[^%s*|]+%*$') ~= nil
end

--- Returns the length of the topic at the beginning of some lines. It may begin with several tags, and ends before the
--- first tag or rule after its text.
---@param lines string[]
---@return integer count
---@return boolean ended its end is among the lines
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
---@field line integer of its first line in the file
---@field lines string[]
---@field ended boolean `lines` is the whole topic
---@field more boolean the file has more lines

--- Returns the lines of a topic; with an offset, the lines that follow it.
---@param text string of its file
---@param tag string
---@param offset integer
---@param limit integer
---@return mcp-tools.HelpTopic?
local function read_topic(text, tag, offset, limit)
  local at = text:find('*' .. tag .. '*', 1, true)
  if not at then
    return nil
  end
  while at > 1 and text:sub(at - 1, at - 1) ~= '\n' do
    at = at - 1
  end
  -- One more than needed, to find out whether the topic ends there.
  local lines, more = lines_from(text, at, offset + limit + 1)
  local count, ended = offset + limit, false
  if offset == 0 then
    local all
    count, all = extent(lines)
    ended = all or not more and #lines <= limit
    count = math.min(count, limit)
  end
  return {
    line = 1 + count_breaks(text, 1, at - 1) + offset,
    lines = vim.list_slice(lines, offset + 1, math.min(#lines, count)),
    ended = ended and offset == 0,
    more = more or #lines > count,
  }
end

--- Returns lines that contain all words, file by file, up to a number.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param words string[] lower case
---@param enough integer maximum number
---@param pause fun()
---@return { file: string, line: integer, text: string }[]
local function search_lines(ctx, words, enough, pause)
  local longest = words[1]
  for _, word in ipairs(words) do
    longest = #word > #longest and word or longest
  end
  local found = {}
  for _, path in ipairs(vim.api.nvim_get_runtime_file('doc/*.txt', true)) do
    local text = plugins.text(ctx, path) or ''
    pause()
    local small, line, counted, from = text:lower(), 1, 1, 1
    while #found < enough do
      local at = small:find(longest, from, true)
      if not at then
        break
      end
      line, counted = line + count_breaks(text, counted, at - 1), at
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
---@param wanted string
---@param pause fun()
---@return string[]
local function matching_tags(ctx, wanted, pause)
  local words = vim.split(trim(wanted:lower()), '%s+')
  local ok, found
  -- Neovim would match a pattern, which can block the main thread forever.
  if words[1]:find('[*?\\[]') then
    ok, found = true, tags_with(ctx, words[1], pause)
  else
    ok, found = pcall(vim.fn.getcompletion, words[1], 'help')
  end
  return vim.tbl_filter(function(tag)
    return vim.iter(words):all(function(word)
      return tag:lower():find(word, 1, true) ~= nil
    end)
  end, ok and found or {})
end

--- Returns the files of tags, by the tag files on the runtimepath.
---@param ctx mcp-tools.Ctx
---@param names string[]
---@param pause fun()
---@return table<string, string> paths
local function files_of(ctx, names, pause)
  local wanted, files = {}, {}
  for _, name in ipairs(names) do
    wanted[name] = true
  end
  if #names > 0 then
    each_tag(ctx, pause, function(tag, path)
      if wanted[tag] and not files[tag] then
        files[tag] = path
      end
    end)
  end
  return files
end

--- Returns the text of a topic.
---@param ctx mcp-tools.Ctx
---@param args table
---@param found string[] matching tags, at least one
---@param pause fun()
local function read(ctx, args, found, pause)
  local tag = found[1]
  local file = files_of(ctx, { tag }, pause)[tag]
  local text, err
  if file then
    text, err = plugins.text(ctx, file)
    if not text then
      return nil, err
    end
  end
  local part = text and read_topic(text, tag, args.offset, args.limit)
  if not part then
    local message = 'the tag %s is no longer in its file; :helptags updates the index'
    return nil, errors.new('not_found', message:format(tag))
  end
  local others = vim.list_slice(found, 2, SEE + 1)
  return result.utf8({
    tag = tag,
    file = vim.fs.basename(file),
    line = part.line,
    text = table.concat(part.lines, '\n'),
    next_offset = part.more and args.offset + #part.lines or nil,
    ends_here = part.ended or nil,
    see_also = #others > 0 and others or nil,
  })
end

return {
  name = 'editor_help',
  title = 'Help',
  description = "Reads Neovim's and plugins' help. topic: text of the best matching tag (nvim_buf_get_lines(),"
    .. " 'tabstop', :substitute, lsp-config); continue at next_offset. search: tags and lines that contain all words.",
  args = {
    topic = {
      type = 'string',
      description = 'Help tag, such as tabstop',
      minLength = 1,
      maxLength = 200,
    },
    search = { type = 'string', description = 'Words, case-insensitive', minLength = 2, maxLength = 200 },
    limit = {
      type = 'integer',
      description = 'Maximum number of lines or matches',
      default = 60,
      minimum = 1,
      maximum = 1000,
    },
    offset = { type = 'integer', description = 'Number of lines or matches to skip', default = 0, minimum = 0 },
  },
  annotations = { read_only = true, idempotent = true, open_world = false },
  run = function(ctx, args)
    if (args.topic == nil) == (args.search == nil) then
      return nil, errors.new('validation_error', 'give exactly one of topic and search')
    end
    local pause = time_slice.of(ctx)
    local found = matching_tags(ctx, args.topic or args.search, pause)
    if args.topic then
      if #found == 0 then
        local text = 'topic: there is no help tag like %s; search looks into the text'
        return nil, errors.new('not_found', text:format(args.topic))
      end
      return read(ctx, args, found, pause)
    end
    local items, about = result.page(found, args)
    local answer = { tags = {}, tags_total = about.total, next_offset = about.next_offset }
    local files = files_of(ctx, items, pause)
    for _, tag in ipairs(items) do
      table.insert(answer.tags, { tag = tag, file = vim.fs.basename(files[tag] or '') })
    end
    local words = vim.split(trim(args.search:lower()), '%s+')
    local lines = search_lines(ctx, words, args.offset + args.limit + 1, pause)
    answer.lines = vim.list_slice(lines, args.offset + 1, math.min(#lines, args.offset + args.limit))
    if #lines > args.offset + args.limit then
      answer.next_offset = args.offset + args.limit
    end
    for _, each in ipairs(answer.lines) do
      each.file = vim.fs.basename(each.file)
    end
    return result.utf8(answer)
  end,
}

--- Searches the text of the project as the editor has it, unsaved changes included.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local contents = require('mcp-tools.editor.buffer.contents')
local errors = require('mcp-tools.errors')
local engines = require('mcp-tools.editor.search.engine')
local files = require('mcp-tools.editor.search.files')
local paths = require('mcp-tools.files.paths')
local sort = require('mcp-tools.util.sort')
local strings = require('mcp-tools.util.strings')
local substring = require('mcp-tools.util.substring')
local time_slice = require('mcp-tools.util.time_slice')

local api = vim.api

local M = {}

--- Maximum number of matches in one search.
local MAX_MATCHES = 100000

--- Size of the texts that one process searches, in bytes.
local MAX_BATCH = 4 * 1024 * 1024

---@class mcp-tools.search.Query
---@field query string
---@field regex boolean?
---@field ignore_case boolean?
---@field word boolean? only whole words

---@class mcp-tools.search.Match
---@field row integer from 0
---@field col integer bytes from 0
---@field end_row integer
---@field end_col integer

---@class mcp-tools.search.Matcher
---@field query mcp-tools.search.Query
---@field needle string
---@field is_lower boolean? texts are converted to lower case first
---@field breaks integer number of line breaks in `needle`
---@field tail integer length of the last line of `needle`, in bytes
---@field find fun(text: string, from: integer, pause: fun()): integer?, integer?
local Matcher = {}
Matcher.__index = Matcher

---@param byte integer?
local function is_word(byte)
  return byte ~= nil and (byte >= 128 or string.char(byte):find('[%w_]') ~= nil)
end

--- Returns why a query is invalid.
---@param query mcp-tools.search.Query
---@return mcp-tools.Error?
local function refusal(query)
  if query.query == '' then
    return errors.new('validation_error', 'query: must not be empty')
  elseif query.query:find('%z') then
    return errors.new('validation_error', 'query: must not contain NUL')
  end
end

--- Number of bytes that Vim searches at once.
local WINDOW = 16384

--- Searches case-insensitively for text with non-ASCII characters. Vim folds case; a literal pattern takes linear time.
---@param needle string one line
---@return fun(text: string, from: integer, pause: fun()): integer?, integer?
local function folding_finder(needle)
  local regex = vim.regex('\\V\\c' .. needle:gsub('\\', '\\\\'))
  local overlap = 4 * #needle -- a character in another case may have more bytes
  return function(text, from, pause)
    local size = math.max(WINDOW, 2 * overlap)
    while from <= #text do
      local first, last = regex:match_str((text:sub(from, from + size - 1):gsub('%z', '\1')))
      if first then
        return from + first, from + last - 1
      elseif from + size > #text then
        return nil
      end
      from = from + size - overlap
      pause()
    end
  end
end

--- Returns a matcher for a query that is not a regular expression.
---@param query mcp-tools.search.Query
---@return mcp-tools.search.Matcher
function M.matcher(query)
  local made = setmetatable({ query = query, needle = query.query }, Matcher)
  if query.ignore_case and query.query:find('[\128-\255]') and not query.query:find('\n', 1, true) then
    made.find = folding_finder(query.query)
  else
    made.needle = query.ignore_case and query.query:lower() or query.query
    made.is_lower = query.ignore_case
    made.find = substring.finder(made.needle)
  end
  made.breaks = select(2, made.needle:gsub('\n', ''))
  made.tail = #made.needle - (made.needle:match('^.*()\n') or 0)
  return made
end

--- Calls `found` for each match, in order, until it returns true.
---@param text string lines end with "\n"
---@param found fun(match: mcp-tools.search.Match): boolean?
---@param pause? fun() called between pieces of work
function Matcher:each(text, found, pause)
  pause = pause or function() end
  local haystack = self.is_lower and text:lower() or text
  local needle = self.needle
  local row, line_at, at = 0, 1, 1
  local stop = text:find('\n', 1, true) -- end of the current line
  while true do
    local first, last = self.find(haystack, at, pause)
    if not first then
      return
    end
    local whole = not self.query.word
      or not (is_word(needle:byte(1)) and is_word(text:byte(first - 1)))
        and not (is_word(needle:byte(-1)) and is_word(text:byte(last + 1)))
    if whole then
      while stop and stop < first do
        row, line_at = row + 1, stop + 1
        stop = text:find('\n', line_at, true)
      end
      local col = first - line_at
      local enough = found({
        row = row,
        col = col,
        end_row = row + self.breaks,
        end_col = self.breaks == 0 and last + 1 - line_at or self.tail,
      })
      if enough then
        return
      end
    end
    at = whole and last + 1 or first + 1
    pause()
  end
end

---@class mcp-tools.search.File
---@field path string resolved
---@field shown string
---@field bufnr integer?
---@field changedtick integer?
---@field unsaved boolean
---@field text string lines end with "\n"
---@field matches mcp-tools.search.Match[]

---@class mcp-tools.search.Found
---@field files mcp-tools.search.File[] by path
---@field total integer places
---@field skipped integer number of files that are too large
---@field cut boolean there are more matches
---@field place mcp-tools.search.Place
---@field engine mcp-tools.search.Engine? of a regular expression
---@field max integer matches

--- Returns the longest line of a plain query, since ripgrep and git search by line.
---@param text string
---@return string
local function longest_line(text)
  local best = ''
  for line in vim.gsplit(text, '\n', { plain = true }) do
    best = #line > #best and line or best
  end
  return best
end

--- Finds files that may match. Access to them was not checked.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param place mcp-tools.search.Place
---@param query mcp-tools.search.Query
---@param globs string[]?
---@param matches fun(relative: string): boolean the compiled globs
---@param engine mcp-tools.search.Engine? of a regular expression
---@return string[]? paths absolute, in any order, with duplicates
---@return mcp-tools.Error|boolean? err_or_cut
local function find_candidates(ctx, place, query, globs, matches, engine)
  if not place.is_directory then
    return { place.path }
  end
  local pattern, flags = longest_line(query.query), query.ignore_case and { '-i' } or {}
  local found, cut
  if engine then
    pattern, flags = engine.pattern, engine.flags
  end
  if pattern ~= '' then
    found, cut = engines.files(ctx, place, {
      pattern = pattern,
      is_regex = engine ~= nil,
      flags = flags,
      engine = engine and engine.name,
    })
  end
  if not found then
    return files.list(ctx, place, globs)
  end
  local pause, kept = time_slice.of(ctx), {}
  for _, path in ipairs(found) do
    if vim.startswith(path, place.path .. '/') and matches(path:sub(#place.path + 2)) then
      table.insert(kept, path)
    end
    pause()
  end
  return kept, cut
end

--- Returns the paths of modified buffers below a place.
---@param place mcp-tools.search.Place
---@param matches fun(relative: string): boolean
---@return string[] resolved paths
local function unsaved(place, matches)
  local list = {}
  for _, bufnr in ipairs(api.nvim_list_bufs()) do
    if api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].modified and access.is_text(bufnr) then
      local name = api.nvim_buf_get_name(bufnr)
      local path = name ~= '' and paths.resolve(name)
      local below = path and vim.startswith(path, place.path .. '/') and matches(path:sub(#place.path + 2))
      if path and (below or path == place.path) then
        table.insert(list, path)
      end
    end
  end
  return list
end

--- Adds the matches of one file.
---@param found mcp-tools.search.Found
---@param file mcp-tools.search.File
---@param each fun(add: fun(match: mcp-tools.search.Match): boolean)
local function add(found, file, each)
  each(function(match)
    table.insert(file.matches, match)
    found.total = found.total + 1
    return found.total >= found.max
  end)
  if #file.matches > 0 then
    table.insert(found.files, file)
  end
end

--- Searches several texts with one process, since starting a process takes longer than searching a short text.
---@param ctx mcp-tools.Ctx
---@param found mcp-tools.search.Found
---@param batch mcp-tools.search.File[]
---@return mcp-tools.Error?
local function add_by_engine(ctx, found, batch)
  local texts, first_rows, row, pause = {}, {}, 0, time_slice.of(ctx)
  for i, file in ipairs(batch) do
    local text = file.text:sub(-1) == '\n' and file.text or file.text .. '\n'
    texts[i], first_rows[i] = text, row
    row = row + strings.count(text, '\n', pause)
  end
  local spots, err, cut = found.engine:matches(ctx, table.concat(texts), found.max - found.total)
  if not spots then
    return err
  end
  found.cut = found.cut or cut == true
  local at = 1
  for i, file in ipairs(batch) do
    local before, first_row = first_rows[i + 1] or row, first_rows[i]
    add(found, file, function(add_match)
      while spots[at] and spots[at].row < before and found.total < found.max do
        local spot = spots[at]
        local at_row = spot.row - first_row
        add_match({ row = at_row, col = spot.col, end_row = at_row, end_col = spot.end_col })
        at = at + 1
        pause()
      end
    end)
  end
end

--- Returns the candidates that clients may read. The others are not reported: being a candidate reveals something about
--- their contents.
---@param ctx mcp-tools.Ctx
---@param found mcp-tools.search.Found
---@param list string[]
---@param matches fun(relative: string): boolean
---@return string[] resolved
local function readable(ctx, found, list, matches)
  local filter = files.access_filter(ctx, found.place)
  local out, seen, pause = {}, {}, time_slice.of(ctx)
  for _, path in ipairs(vim.list_extend(list, unsaved(found.place, matches))) do
    local resolved = not seen[path] and filter(path) or nil
    seen[path] = true
    if resolved and (resolved == path or not seen[resolved]) then
      seen[resolved] = true
      table.insert(out, resolved)
    end
    pause()
  end
  return sort(out, function(a, b)
    return a < b
  end, pause)
end

--- Searches the project.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param query mcp-tools.search.Query
---@param opts { path: string?, globs: string[]?, max: integer? } `max`: matches, after which the search ends
---@return mcp-tools.search.Found?
---@return mcp-tools.Error? err
function M.find(ctx, query, opts)
  local err = refusal(query)
  local place, matches, engine, list
  if not err then
    place, err = files.place(ctx, opts.path)
  end
  if place then
    matches, err = files.matcher(opts.globs)
  end
  if matches and query.regex then
    engine, err = engines.open(ctx, query)
  end
  if matches and not err then
    list, err = find_candidates(ctx, place, query, opts.globs, matches, engine)
  end
  if not (place and matches and list) then
    return nil, err --[[@as mcp-tools.Error]]
  end
  local found = {
    files = {},
    total = 0,
    skipped = 0,
    cut = err == true,
    place = place,
    engine = engine,
    max = opts.max or MAX_MATCHES,
  }
  list = readable(ctx, found, list, matches)
  local plain = not engine and M.matcher(query)
  local pause, of_path = time_slice.of(ctx), buffers.of_paths()
  local batch, size = {}, 0
  for first = 1, #list, contents.AT_ONCE do
    local chunk = vim.list_slice(list, first, first + contents.AT_ONCE - 1)
    local read = contents.of(ctx, chunk, of_path)
    for _, path in ipairs(chunk) do
      local text = read[path]
      local file = text
        and {
          path = path,
          shown = access.shown(path, ctx.root),
          bufnr = text.bufnr,
          changedtick = text.changedtick,
          unsaved = text.unsaved,
          text = text.text,
          matches = {},
        }
      if file and plain and found.total < found.max then
        add(found, file, function(add_match)
          plain:each(file.text, add_match, pause)
        end)
      elseif file then
        table.insert(batch, file)
        size = size + #file.text
      elseif text == false then
        found.skipped = found.skipped + 1
      end
    end
    if engine and (size > MAX_BATCH or first + contents.AT_ONCE > #list) then
      local failed = add_by_engine(ctx, found, batch)
      if failed then
        return nil, failed
      end
      batch, size = {}, 0
    end
    if found.total >= found.max then
      found.cut = true
      break
    end
    ctx:progress(math.min(first + contents.AT_ONCE - 1, #list), #list)
  end
  return found
end

return M

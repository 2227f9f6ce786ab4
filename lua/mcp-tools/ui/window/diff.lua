--- Colors of diffs and of the lines in them: one group for removed lines, the syntax of the language for added ones.

local Rows = require('mcp-tools.ui.window.rows')
local render = require('mcp-tools.ui.window.render')
local sanitize = require('mcp-tools.util.sanitize')
local treesitter = require('mcp-tools.editor.treesitter')

local api = vim.api

local M = {}

--- Limits of the text that is parsed, because the user waits for it.
local MAX_PARSED_LINES, MAX_PARSED_BYTES = 400, 16 * 1024
--- Maximum time for syntax colors in one iteration of the event loop, seconds. Captures in deeply nested text take
--- quadratic time.
local MAX_SECONDS = 0.03
--- Maximum length of lines in which the changed words are found, in bytes.
local MAX_COMPARED = 2000
--- Maximum number of rows for one line.
local MAX_ROWS_PER_LINE = 50
--- Maximum number of rows of virtual lines; each costs time whenever the editor draws.
local MAX_ROWS = 1000

---@alias mcp-tools.Chunk { [1]: string, [2]: string|string[] }

---@type integer?, number iteration of the event loop, and the time that syntax colors have taken in it
local iteration, spent = nil, 0

--- Adds the highlight groups of a text until the time for colors is used up.
---@param rows table<integer, table<integer, string>>
---@param text string
---@param language string
---@param root TSNode
---@param query vim.treesitter.Query
local function add_groups(rows, text, language, root, query)
  local begun = os.clock() - spent
  local lines = vim.split(text, '\n', { plain = true })
  for id, node in query:iter_captures(root, text) do
    local name = query.captures[id]
    if not vim.startswith(name, '_') and name ~= 'spell' and name ~= 'nospell' and name ~= 'conceal' then
      local group = ('@%s.%s'):format(name, language)
      local row, col, end_row, end_col = node:range()
      for at = row, end_row do
        local first, last = at == row and col or 0, at == end_row and end_col or #(lines[at + 1] or '')
        rows[at] = rows[at] or {}
        for byte = first, last - 1 do
          rows[at][byte] = group
        end
      end
    end
    spent = os.clock() - begun
    if spent > MAX_SECONDS then
      return
    end
  end
end

---@param text string
---@param language string
---@return table<integer, table<integer, string>>?
local function groups_of(text, language)
  if iteration ~= vim.uv.now() then
    iteration, spent = vim.uv.now(), 0
  end
  local ok, query = pcall(vim.treesitter.query.get, language, 'highlights')
  if not ok or not query or spent > MAX_SECONDS then
    return nil
  end
  local begun = os.clock() - spent
  local root = treesitter.parse_now(text, language, MAX_SECONDS)
  local is_simple = root and not treesitter.is_complex(root)
  spent = os.clock() - begun
  if not root or not is_simple then
    return nil
  end
  local rows = {}
  add_groups(rows, text, language, root, query)
  return rows
end

--- Returns the highlight group of each byte; empty without a parser or if there is too much to parse.
---@param lines string[]
---@param filetype string
---@return table<integer, table<integer, string>> groups `groups[row][col]`, both 0-based
function M.groups(lines, filetype)
  local language = vim.treesitter.language.get_lang(filetype) or filetype -- 0.10 knows only loaded languages
  local joined = table.concat(lines, '\n')
  if
    language == ''
    or #lines > MAX_PARSED_LINES
    or #joined > MAX_PARSED_BYTES
    or treesitter.refusal(lines, language)
  then
    return {}
  end
  local ok, groups = pcall(groups_of, joined, language)
  return ok and groups or {}
end

--- Returns the runs of bytes with the same group.
---@param length integer bytes
---@param groups table<integer, string>? group of each byte, 0-based
---@return { [1]: integer, [2]: integer, [3]: string? }[] runs first and last byte (1-based), group
local function runs_of(length, groups)
  local runs, from = {}, 1
  for at = groups and 1 or length, length do
    if at == length or groups[at] ~= groups[at - 1] then
      table.insert(runs, at > 0 and { from, at, groups and groups[at - 1] } or nil)
      from = at + 1
    end
  end
  return runs
end

---@param text string
---@param at integer
---@return boolean whether this byte and the next one are in the same word
local function splits_word(text, at)
  return text:sub(at, at + 1):find('^[%w_\128-\255][%w_\128-\255]') ~= nil
end

--- Returns the part in which two lines differ, extended to whole words.
---@param old string
---@param new string
---@return { [1]: integer, [2]: integer, [3]: integer }? part first byte, last one of the old line, last one of the new
---  line; nil: they are equal or have only white space in common
function M.part(old, new)
  if #old > MAX_COMPARED or #new > MAX_COMPARED then
    return nil
  end
  local most, first, last = math.min(#old, #new), 0, 0
  while first < most and old:byte(first + 1) == new:byte(first + 1) do
    first = first + 1
  end
  while last < most - first and old:byte(#old - last) == new:byte(#new - last) do
    last = last + 1
  end
  while splits_word(old, first) or splits_word(new, first) do
    first = first - 1
  end
  while splits_word(old, #old - last) or splits_word(new, #new - last) do
    last = last - 1
  end
  local common = old:sub(1, first) .. old:sub(#old - last + 1)
  if old ~= new and common:find('%S') then
    return { first + 1, #old - last, #new - last }
  end
end

---@param line string
---@param groups table<integer, string>?
---@param background string highlight group
---@param part? { [1]: integer, [2]: integer, [3]: integer } from `part`, of a new line
---@return mcp-tools.Chunk[]
local function chunks_of(line, groups, background, part)
  local chunks = {}
  for _, run in ipairs(runs_of(#line, groups)) do
    local from = run[1]
    for _, last in ipairs(part and { part[1] - 1, part[3], run[2] } or { run[2] }) do
      last = math.min(last, run[2])
      if last >= from then
        local is_part = part and from >= part[1] and last <= part[3]
        local back = is_part and render.group('Part') or background
        table.insert(chunks, { line:sub(from, last), run[3] and { back, run[3] } or back })
        from = last + 1
      end
    end
  end
  return chunks
end

---@param line string
---@param width integer 'tabstop'
---@return string
local function without_tabs(line, width)
  local out, cells = {}, 0
  for text, tab in line:gmatch('([^\t]*)(\t?)') do
    table.insert(out, text)
    cells = cells + api.nvim_strwidth(text)
    if tab ~= '' then
      local count = width - cells % width
      table.insert(out, (' '):rep(count))
      cells = cells + count
    end
  end
  return table.concat(out)
end

--- Wraps a line.
---@param chunks mcp-tools.Chunk[]
---@param width integer cells of a row
---@param background string highlight group
---@return mcp-tools.Chunk[][] rows
---@return boolean is_cut
local function rows_of(chunks, width, background)
  local rows, row, room, left = {}, {}, width, 0
  for _, chunk in ipairs(chunks) do
    local text, from = chunk[1], 1
    while from <= #text and #rows < MAX_ROWS_PER_LINE do
      if room < 2 then -- a character may take two cells
        table.insert(rows, row)
        row = { { Rows.CONTINUED, { background, render.group('Dim') } } }
        room = width - api.nvim_strwidth(Rows.CONTINUED)
      end
      if #rows < MAX_ROWS_PER_LINE then
        local last = Rows.last_that_fits(text, from, room)
        local piece = text:sub(from, last)
        table.insert(row, { piece, chunk[2] })
        room, from = room - api.nvim_strwidth(piece), last + 1
      end
    end
    left = left + math.max(0, #text - from + 1)
  end
  if left > 0 then
    table.insert(row, { ('… %d more bytes'):format(left), { background, render.group('Warn') } })
  end
  table.insert(rows, row)
  return rows, left > 0
end

--- Returns a line as it is shown.
---@param line string
---@param bufnr integer buffer that it belongs to
---@return string
function M.plain(line, bufnr)
  return sanitize.line(without_tabs(line, vim.bo[bufnr].tabstop))
end

--- Returns lines as virtual lines, padded so that the background reaches the edge of any window.
--- Only added lines have syntax colors: many color schemes mark removed lines by their color alone.
---@param lines string[]
---@param bufnr integer buffer that they belong to
---@param name 'Added'|'Removed'
---@param width integer maximum cells of text in a row
---@param old? string[] the lines that these replace one by one: parts in which they differ are highlighted
---@return mcp-tools.Chunk[][] rows up to a maximum
---@return boolean is_whole
function M.lines(lines, bufnr, name, width, old)
  local background = render.group(name)
  local shown = vim.tbl_map(function(line)
    return M.plain(line, bufnr)
  end, vim.list_slice(lines, 1, MAX_ROWS))
  local filetype = vim.bo[bufnr].filetype
  local groups = name == 'Added' and M.groups(shown, filetype) or {}
  local out, count, is_cut = {}, 0, false
  for i, line in ipairs(shown) do
    if #out >= MAX_ROWS then
      break
    end
    count = i
    local part = old and #old[i] <= MAX_COMPARED and M.part(M.plain(old[i], bufnr), line)
    local rows, cut = rows_of(chunks_of(line, groups[i - 1], background, part), width, background)
    is_cut = is_cut or cut
    for _, row in ipairs(rows) do
      table.insert(row, { (' '):rep(vim.o.columns), background }) -- the window cuts it
      table.insert(out, row)
    end
  end
  if count < #lines then
    local text = ('… %d more lines'):format(#lines - count)
    table.insert(out, { { text, { background, render.group('Warn') } } })
  end
  return out, count == #lines and not is_cut
end

local NAMES = { ['+'] = 'Added', ['-'] = 'Removed', ['@'] = 'Changed' }
--- Maximum number of files that get syntax colors.
local MAX_FILES = 20

--- Returns the number of old and new lines in a hunk, if a line is its header.
---@param line string
---@return integer old
---@return integer new
local function counts(line)
  local old, new = line:match('^@@ %-%d+,?(%d*) %+%d+,?(%d*) @@')
  if not old then
    return 0, 0
  end
  return tonumber(old) or 1, tonumber(new) or 1
end

---@class mcp-tools.DiffRow
---@field name string? highlight group
---@field file integer? index of the file, for a line of the new text

--- Classifies each line of a diff.
---@param lines string[]
---@return mcp-tools.DiffRow[] rows
---@return string[] paths
local function classify(lines)
  local rows, paths, old, new = {}, {}, 0, 0
  for i, line in ipairs(lines) do
    local sign = line:sub(1, 1)
    local row = { name = NAMES[sign] }
    if old > 0 or new > 0 then
      local is_text = sign == ' ' or line == ''
      old = (sign == '-' or is_text) and old - 1 or old
      new = (sign == '+' or is_text) and new - 1 or new
      row.file = (sign == '+' or is_text) and #paths or nil
    elseif line:find('^%-%-%- ') then
      row.name = 'Heading'
    elseif line:find('^%+%+%+ ') then
      row.name = 'Heading'
      table.insert(paths, (line:sub(5):gsub('^b/', '')))
    else
      old, new = counts(line)
    end
    rows[i] = row
  end
  return rows, paths
end

--- Adds syntax colors to the rows of one file.
---@param spans mcp-tools.Span[][]
---@param lines string[]
---@param at integer[] rows of the file's new text
---@param path string
---@param offset integer
local function add_syntax(spans, lines, at, path, offset)
  local ok, filetype = pcall(vim.filetype.match, { filename = path })
  if not ok or not filetype then
    return
  end
  local text = vim.tbl_map(function(row)
    return lines[row]:sub(2)
  end, at)
  for row, bytes in pairs(M.groups(text, filetype)) do
    for _, run in ipairs(runs_of(#(text[row + 1] or ''), bytes)) do
      table.insert(spans[at[row + 1]], run[3] and { offset + run[1] + 1, offset + run[2] + 1, run[3] } or nil)
    end
  end
end

--- Returns the colors of a diff.
---@param lines string[]
---@param offset? integer bytes before each line in its row
---@return mcp-tools.Span[][] spans by line
function M.spans(lines, offset)
  offset = offset or 0
  local spans = {}
  local rows, paths = classify(lines)
  local texts = {} ---@type table<integer, integer[]>
  for i, row in ipairs(rows) do
    spans[i] = row.name and { { offset + 1, offset + #lines[i], row.name } } or {}
    if row.file then
      texts[row.file] = texts[row.file] or {}
      table.insert(texts[row.file], i)
    end
  end
  local lines_left, bytes_left = MAX_PARSED_LINES, MAX_PARSED_BYTES
  for file = 1, math.min(#paths, MAX_FILES) do
    for _, row in ipairs(texts[file] or {}) do
      lines_left, bytes_left = lines_left - 1, bytes_left - #lines[row]
    end
    if texts[file] and lines_left >= 0 and bytes_left >= 0 then
      add_syntax(spans, lines, texts[file], paths[file], offset)
    end
  end
  return spans
end

return M

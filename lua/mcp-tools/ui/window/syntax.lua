--- Lines that no buffer has, coloured as a buffer of their language would be.

local Rows = require('mcp-tools.ui.window.rows')
local highlights = require('mcp-tools.ui.window.highlights')
local sanitize = require('mcp-tools.util.sanitize')
local treesitter = require('mcp-tools.editor.treesitter')

local api = vim.api

local M = {}

--- More of one hunk is not parsed while the person waits: lines, and bytes of them.
local MAX_LINES, MAX_BYTES = 400, 16 * 1024
--- Rows of one line; of what no person reads, such as packed data, the rest is counted.
local MAX_ROWS = 50
--- Rows in all: a screen has few of them, and each takes the editor time; the rest of the lines is counted.
local MAX_ALL = 1000

---@alias mcp-tools.Chunk { [1]: string, [2]: string|string[] }

--- The group of each byte: `rows[row][col]`, both from 0.
---@param text string
---@param language string
---@return table<integer, table<integer, string>>?
local function groups_of(text, language)
  local ok, parser = pcall(vim.treesitter.get_string_parser, text, language)
  local query = ok and vim.treesitter.query.get(language, 'highlights')
  if not query then
    return nil
  end
  local rows = {}
  local tree, is_wide = parser:parse()[1], nil
  treesitter.is_wide(tree:root(), function(wide)
    is_wide = wide
  end, true)
  if is_wide then
    return nil
  end
  local lines = vim.split(text, '\n', { plain = true })
  for id, node in query:iter_captures(tree:root(), text) do
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
  end
  return rows
end

--- The group of each byte of lines: `groups[row][col]`, both from 0; empty where there is no parser, or too much to
--- parse while the person waits. Only what comes is coloured so: a line that goes has one colour, for many colour
--- schemes tell it by that alone.
---@param lines string[]
---@param filetype string
---@return table<integer, table<integer, string>>
function M.groups(lines, filetype)
  local language = vim.treesitter.language.get_lang(filetype) or filetype -- 0.10 knows those that are loaded
  local joined = table.concat(lines, '\n')
  if language == '' or #lines > MAX_LINES or #joined > MAX_BYTES or treesitter.refusal(lines, language) then
    return {}
  end
  local ok, groups = pcall(groups_of, joined, language)
  return ok and groups or {}
end

---@param line string
---@param groups table<integer, string>?
---@param below string group of the whole line
---@return mcp-tools.Chunk[]
local function chunks_of(line, groups, below)
  local chunks, from = {}, 1
  for at = 1, groups and #line or 0 do
    ---@cast groups -?
    if at == #line or groups[at] ~= groups[at - 1] then
      local group = groups[at - 1]
      table.insert(chunks, { line:sub(from, at), group and { below, group } or below })
      from = at + 1
    end
  end
  if from <= #line then
    table.insert(chunks, { line:sub(from), below })
  end
  return chunks
end

---@param line string
---@param width integer of a tab
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

--- One line in as many rows as it needs.
---@param chunks mcp-tools.Chunk[]
---@param width integer cells of a row
---@param below string
---@return mcp-tools.Chunk[][]
local function rows_of(chunks, width, below)
  local rows, row, room, left = {}, {}, width, 0
  for _, chunk in ipairs(chunks) do
    local text, from = chunk[1], 1
    while from <= #text and #rows < MAX_ROWS do
      if room < 2 then -- a character may be as wide
        table.insert(rows, row)
        row, room =
          { { Rows.CONTINUED, { below, highlights.group('Dim') } } }, width - api.nvim_strwidth(Rows.CONTINUED)
      end
      if #rows < MAX_ROWS then
        local last = Rows.last_that_fits(text, from, room)
        local piece = text:sub(from, last)
        table.insert(row, { piece, chunk[2] })
        room, from = room - api.nvim_strwidth(piece), last + 1
      end
    end
    left = left + math.max(0, #text - from + 1)
  end
  if left > 0 then
    table.insert(row, { ('… %d more bytes'):format(left), { below, highlights.group('Warn') } })
  end
  table.insert(rows, row)
  return rows
end

--- The lines as rows, each as wide as the screen, so that its background reaches the edge.
---@param lines string[]
---@param bufnr integer whose file type and tabs count
---@param name string of the group of all of it, `Added` or `Removed`
---@param width integer cells that a row of text may have
---@return mcp-tools.Chunk[][]
function M.lines(lines, bufnr, name, width)
  local below = highlights.group(name)
  local shown = vim.tbl_map(function(line)
    return sanitize.line(without_tabs(line, vim.bo[bufnr].tabstop))
  end, vim.list_slice(lines, 1, MAX_ALL))
  local filetype = vim.bo[bufnr].filetype
  local groups = name == 'Added' and M.groups(shown, filetype) or {}
  local out, told = {}, 0
  for i, line in ipairs(shown) do
    if #out >= MAX_ALL then
      break
    end
    told = i
    local chunks = chunks_of(line, groups[i - 1], below)
    for _, row in ipairs(rows_of(chunks, width, below)) do
      local cells = 0
      for _, chunk in ipairs(row) do
        cells = cells + api.nvim_strwidth(chunk[1])
      end
      table.insert(row, { (' '):rep(math.max(1, vim.o.columns - cells)), below })
      table.insert(out, row)
    end
  end
  if told < #lines then
    local text = ('… %d more lines: the layout "split" shows them'):format(#lines - told)
    table.insert(out, { { text, { below, highlights.group('Warn') } } })
  end
  return out
end

return M

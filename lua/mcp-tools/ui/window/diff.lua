--- Difference of files in colours, as all windows of ours show it: what goes, what comes in the colours of its
--- language, where it is.

local syntax = require('mcp-tools.ui.window.syntax')

local M = {}

local NAMES = { ['+'] = 'Added', ['-'] = 'Removed', ['@'] = 'Changed' }
--- Files with the colours of their language, and lines and bytes of all of them: they cost time while the person waits,
--- some ms for 4 kB.
local MAX_FILES, MAX_LINES, MAX_BYTES = 20, 400, 16 * 1024

local HUNK = '^@@ %-%d+,?(%d*) %+%d+,?(%d*) @@'

--- Lines of a hunk that are to come: of the text before, and of that after.
---@param line string
---@return integer? old
---@return integer? new
local function counts(line)
  local old, new = line:match(HUNK)
  if old then
    return tonumber(old) or 1, tonumber(new) or 1
  end
end

---@class mcp-tools.DiffRow
---@field name string? group of the row
---@field file integer? which of the files it is a line of, where it is one of the text after

--- What each row is: within a hunk its first byte tells, outside of it stands where the hunk is.
---@param lines string[]
---@param hunk string? the first hunk's head, when it stands elsewhere
---@param path string?
---@return mcp-tools.DiffRow[] rows
---@return string[] paths of the files
local function read(lines, hunk, path)
  local rows, paths = {}, { path or '' }
  local old, new = counts(hunk or '')
  old, new = old or 0, new or 0
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
      old, new = old or 0, new or 0
    end
    rows[i] = row
  end
  return rows, paths
end

--- Adds the colours of the language to the rows of one file.
---@param spans mcp-tools.Span[][]
---@param lines string[]
---@param at integer[] rows of its text
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
  for row, bytes in pairs(syntax.groups(text, filetype)) do
    local from, length = 0, #(text[row + 1] or '')
    for byte = 0, length - 1 do
      if bytes[byte] ~= bytes[byte + 1] or byte == length - 1 then
        if bytes[byte] then
          table.insert(spans[at[row + 1]], { offset + from + 2, offset + byte + 2, bytes[byte] })
        end
        from = byte + 1
      end
    end
  end
end

--- The colours of a difference, by row.
---@param lines string[] without what stands before each in its row
---@param opts? { offset: integer?, hunk: string?, path: string? } `offset`: bytes that stand before each line in its
---  row; `hunk`, `path`: the first hunk's head and its file, where they are said elsewhere
---@return mcp-tools.Span[][]
function M.spans(lines, opts)
  opts = opts or {}
  local offset, spans = opts.offset or 0, {}
  local rows, paths = read(lines, opts.hunk, opts.path)
  local texts = {} ---@type table<integer, integer[]>
  for i, row in ipairs(rows) do
    spans[i] = row.name and { { offset + 1, offset + #lines[i], row.name } } or {}
    if row.file then
      texts[row.file] = texts[row.file] or {}
      table.insert(texts[row.file], i)
    end
  end
  local lines_left, bytes_left = MAX_LINES, MAX_BYTES
  for file = 1, math.min(#paths, MAX_FILES) do
    for _, row in ipairs(texts[file] or {}) do
      lines_left, bytes_left = lines_left - 1, bytes_left - #lines[row]
    end
    if paths[file] ~= '' and texts[file] and lines_left >= 0 and bytes_left >= 0 then
      add_syntax(spans, lines, texts[file], paths[file], offset)
    end
  end
  return spans
end

return M

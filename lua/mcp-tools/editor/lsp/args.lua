--- Arguments that LSP tools share: a file, and a position in it.

local errors = require('mcp-tools.errors')
local position = require('mcp-tools.editor.position')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

local FILE = {
  path = { type = 'string', description = 'File' },
  bufnr = {
    type = 'integer',
    description = 'Its buffer; 0 or none: the current file',
    minimum = 0,
  },
}

local PLACE = {
  line = { type = 'integer', description = '1-based line; default: that of symbol, or the cursor', minimum = 1 },
  column = { type = 'integer', description = 'Column in characters, from 1', minimum = 1 },
  symbol = {
    type = 'string',
    description = 'Name on that line, instead of column; without line: a name path of the file, as `Class/method`',
    minLength = 1,
  },
}

local PAGE = {
  limit = { type = 'integer', description = 'Maximum number of results', default = 500, minimum = 1, maximum = 10000 },
  offset = { type = 'integer', description = 'Number of results to skip', default = 0, minimum = 0 },
}

--- Returns the schema of `path` and `bufnr`, with more arguments.
---@param more? table
---@return table
function M.file(more)
  return vim.tbl_extend('error', FILE, more or {})
end

--- Returns the schema of a position in a file, with more arguments.
---@param more? table
---@return table
function M.place(more)
  return vim.tbl_extend('error', FILE, PLACE, more or {})
end

--- Returns a schema with `limit` and `offset`.
---@param args table
---@return table
function M.paged(args)
  return vim.tbl_extend('force', PAGE, args)
end

--- Returns the cursor position in a buffer, or the last one if it has no window.
---@param bufnr integer
---@return integer line
---@return integer byte from 0
local function cursor(bufnr)
  local win = vim.api.nvim_get_current_win()
  if vim.api.nvim_win_get_buf(win) ~= bufnr then
    win = vim.fn.bufwinid(bufnr)
  end
  if win ~= -1 then
    return unpack(vim.api.nvim_win_get_cursor(win))
  end
  local line, byte = unpack(vim.api.nvim_buf_get_mark(bufnr, '"'))
  return math.max(1, math.min(line, vim.api.nvim_buf_line_count(bufnr))), byte
end

--- Returns the first byte at which a name is a whole word.
---@param line string
---@param name string
---@return integer? byte from 1
local function find_word(line, name)
  local at = 1
  while true do
    local first, last = line:find(name, at, true)
    if not first then
      return nil
    end
    local before, after = line:sub(first - 1, first - 1), line:sub(last + 1, last + 1)
    local inside = first > 1 and (before .. name):find('^[%w_][%w_]') or (name:sub(-1) .. after):find('^[%w_][%w_]')
    if not inside then
      return first
    end
    at = first + 1
  end
end

---@class mcp-tools.lsp.Place
---@field line integer from 1
---@field column integer from 1, in characters
---@field text string the line

--- Returns the place at a byte of a line.
---@param text string the line
---@param line integer from 1
---@param byte integer from 0
---@return mcp-tools.lsp.Place
function M.at(text, line, byte)
  return { line = line, column = position.characters(text:sub(1, byte)) + 1, text = text }
end

--- Returns the last name of a name path.
---@param symbol string such as `Class/method[2]`
---@return string
function M.word(symbol)
  local name = symbol:match('^.*/([^/]+)$') or symbol
  name = name:match('^(.+)%[%d+%]$') or name
  return name:match('^.*[.:]([^.:]+)$') or name
end

--- Returns the first place of a word in each line of a buffer.
---@param bufnr integer
---@param word string
---@param limit integer
---@param first? integer line
---@param last? integer line
---@return mcp-tools.lsp.Place[]
function M.places(bufnr, word, limit, first, last)
  local list = {}
  last = last or vim.api.nvim_buf_line_count(bufnr)
  for from = first or 1, last, 1000 do
    for i, line in ipairs(vim.api.nvim_buf_get_lines(bufnr, from - 1, math.min(last, from + 999), false)) do
      local at = find_word(line, word)
      if at then
        table.insert(list, M.at(line, from + i - 1, at - 1))
        if #list == limit then
          return list
        end
      end
    end
  end
  return list
end

--- Returns the place that `line`, `column` and `symbol` mean; by default the cursor.
---@param bufnr integer loaded
---@param args { line: integer?, column: integer?, symbol: string? }
---@return mcp-tools.lsp.Place? place
---@return mcp-tools.Error? err
function M.where(bufnr, args)
  local count = vim.api.nvim_buf_line_count(bufnr)
  if args.line and args.line > count then
    return nil, errors.new('validation_error', ('line: %d is beyond the end (%d lines)'):format(args.line, count))
  end
  if args.symbol then
    local place = M.places(bufnr, M.word(args.symbol), 1, args.line, args.line)[1]
    local where = args.line and ('line %d'):format(args.line) or 'the file'
    local text = 'symbol: %q is not in %s'
    return place, not place and errors.new('not_found', text:format(utf8.cut(args.symbol, 200), where)) or nil
  end
  local line, byte = cursor(bufnr)
  if args.line and args.line ~= line then
    byte = 0
  end
  line = args.line or line
  local text = vim.api.nvim_buf_get_lines(bufnr, line - 1, line, false)[1] or ''
  if not args.column then
    local column = position.characters(text:sub(1, byte)) + 1
    if args.line and byte == 0 then
      column = position.characters(text:match('^%s*')) + 1 -- the first text of the line
    end
    return { line = line, column = column, text = text }
  end
  local length = position.characters(text)
  if args.column > length + 1 then
    local message = ('column: %d is beyond the end of line %d (%d characters)'):format(args.column, line, length)
    return nil, errors.new('validation_error', message)
  end
  return { line = line, column = args.column, text = text }
end

return M

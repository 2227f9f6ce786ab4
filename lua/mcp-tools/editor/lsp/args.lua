--- Arguments of LSP tools that identify a symbol or a position, and the functions that resolve them.

local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local focus = require('mcp-tools.editor.user.focus')
local lsp = require('mcp-tools.editor.lsp')
local position = require('mcp-tools.editor.position')
local strings = require('mcp-tools.util.strings')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Identifies a symbol by its name path, or by a line that contains it.
local SYMBOL = {
  symbol = {
    type = 'string',
    description = 'Name path such as `Class/method`, or a name on `line`',
    minLength = 1,
  },
  path = { type = 'string', description = 'File or directory' },
  line = { type = 'integer', description = 'Line that contains the symbol', minimum = 1 },
  column = { type = 'integer', description = '1-based column, in characters', minimum = 1, hidden = true },
  bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
}

local PAGE = {
  limit = { type = 'integer', description = 'Maximum number of results', default = 500, minimum = 1, maximum = 10000 },
  offset = { type = 'integer', description = 'Number of results to skip', default = 0, minimum = 0 },
}

--- Returns the schema of a symbol, with more arguments.
---@param more? table
---@return table
function M.symbol(more)
  return vim.tbl_extend('error', SYMBOL, more or {})
end

--- Returns a schema with `limit` and `offset`.
---@param args table
---@return table
function M.paged(args)
  return vim.tbl_extend('force', PAGE, args)
end

---@class mcp-tools.lsp.Place
---@field line integer from 1
---@field column integer from 1, in characters
---@field text string the line

---@param text string the line
---@param line integer from 1
---@param byte integer from 0
---@return mcp-tools.lsp.Place
local function place_at(text, line, byte)
  return { line = line, column = position.characters(text:sub(1, byte)) + 1, text = text }
end

--- Returns the last name of a name path.
---@param symbol string such as `Class/method[2]`
---@return string
local function last_name(symbol)
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
local function places_of(bufnr, word, limit, first, last)
  local list, pattern = {}, strings.word_pattern(word)
  last = last or vim.api.nvim_buf_line_count(bufnr)
  for from = first or 1, last, 1000 do
    for i, line in ipairs(vim.api.nvim_buf_get_lines(bufnr, from - 1, math.min(last, from + 999), false)) do
      local at = line:find(pattern)
      if at then
        table.insert(list, place_at(line, from + i - 1, at - 1))
        if #list == limit then
          return list
        end
      end
    end
  end
  return list
end

--- Resolves `line`, `column` and `symbol` in a buffer, without asking a server. Default: the cursor.
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
    local place = places_of(bufnr, last_name(args.symbol), 1, args.line, args.line)[1]
    local where = args.line and ('line %d'):format(args.line) or 'the file'
    local text = 'symbol: %q is not in %s'
    return place, not place and errors.new('not_found', text:format(utf8.cut(args.symbol, 200), where)) or nil
  end
  local line, byte = focus.place(bufnr)
  if args.line and args.line ~= line then
    byte = 0
  end
  line = args.line or line
  local text = vim.api.nvim_buf_get_lines(bufnr, line - 1, line, false)[1] or ''
  if not args.column then
    local first_text = args.line and byte == 0 and #text:match('^%s*')
    return place_at(text, line, first_text or byte)
  end
  local length = position.characters(text)
  if args.column > length + 1 then
    local message = ('column: %d is beyond the end of line %d (%d characters)'):format(args.column, line, length)
    return nil, errors.new('validation_error', message)
  end
  return { line = line, column = args.column, text = text }
end

---@class mcp-tools.lsp.Spot: mcp-tools.lsp.Place with its loaded buffer and the path to show
---@field bufnr integer
---@field path string
---@field line integer
---@field column integer
---@field text string

--- Methods that return a result for an identifier, but not for a word in a comment.
local IDENTIFIER_METHODS = { 'textDocument/documentHighlight', 'textDocument/definition' }
--- Maximum number of places for which the server is asked.
local MAX_ASKED = 20

--- Returns the first place of a name that the server recognizes as an identifier: the first match in the text may be in
--- a comment.
---@param ctx mcp-tools.Ctx
---@param bufnr integer loaded
---@param symbol string
---@return mcp-tools.lsp.Place? place
---@return mcp-tools.Error? err
local function find_identifier(ctx, bufnr, symbol)
  for _, method in ipairs(IDENTIFIER_METHODS) do
    if #clients.of(bufnr, method) > 0 then
      for _, place in ipairs(places_of(bufnr, last_name(symbol), MAX_ASKED)) do
        local result, err = lsp.request(ctx, bufnr, method, lsp.position_params(bufnr, place.line, place.column))
        if result or err then
          return result and place or nil, err
        end
      end
      return nil, errors.new('not_found', ('symbol: %q is not in the file'):format(utf8.cut(symbol, 200)))
    end
  end
  return M.where(bufnr, { symbol = symbol })
end

--- Loads the file that arguments name, and resolves the position in it.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return mcp-tools.lsp.Spot? spot
---@return mcp-tools.Error? err
function M.spot(ctx, args)
  local target, err = lsp.target(ctx, args)
  if not target then
    return nil, err
  end
  local place
  if args.symbol and not args.line then
    place, err = find_identifier(ctx, target.bufnr, args.symbol)
  else
    place, err = M.where(target.bufnr, args)
  end
  if not place then
    return nil, err
  end
  return vim.tbl_extend('error', { bufnr = target.bufnr, path = target.shown }, place)
end

--- Returns a place as text for messages.
---@param spot mcp-tools.lsp.Spot
---@return string
function M.spot_text(spot)
  return ('%s:%d:%d'):format(spot.path, spot.line, spot.column)
end

--- Returns the word at a place.
---@param spot mcp-tools.lsp.Place
---@return string '' if there is none
function M.word(spot)
  local byte = position.byte(spot.text, spot.column - 1, 'utf-32') + 1
  local first = #strings.last_word(spot.text:sub(1, byte - 1))
  return spot.text:sub(byte - first):match('^[%w_\128-\255]*')
end

return M

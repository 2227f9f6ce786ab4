--- Lays out the rows of a window: lines with colored spans, pieces of text, and tables. A row has a text, marks and the
--- item to which keys pressed in it apply.

local sanitize = require('mcp-tools.util.sanitize')
local strings = require('mcp-tools.util.strings')

local M = {}

--- Prefix of a row that continues a wrapped line.
local CONTINUED = '↪ '
M.CONTINUED = CONTINUED
local CONTINUED_CELLS = 2

---@class mcp-tools.Span first and last byte (1-based, inclusive), highlight group
---@field [1] integer
---@field [2] integer
---@field [3] string

--- A piece of text, optionally with a highlight group.
---@alias mcp-tools.Piece string|{ [1]: string, [2]: string? }

--- What a row represents.
---@class mcp-tools.RowItem
---@field kind string selects the keys that apply
---@field id string unique in the window; the cursor follows it
---@field value? any

---@class mcp-tools.Row
---@field text string
---@field marks { [1]: integer, [2]: integer, [3]: string }[] first byte (0-based), end (exclusive), highlight group
---@field item? mcp-tools.RowItem

---@class mcp-tools.Rows
---@field width integer cells of a row
---@field wrap boolean whether long lines continue in the next row
---@field list mcp-tools.Row[]
local Rows = {}
Rows.__index = Rows

--- Cells between two columns.
local GAP = 2

---@param width integer cells
---@param wrap? boolean
---@return mcp-tools.Rows
function M.new(width, wrap)
  return setmetatable({ width = width, wrap = wrap == true, list = {} }, Rows)
end

--- Returns the last byte of the part of a text that fits into a number of cells.
---@param text string
---@param from integer first byte
---@param cells integer
---@return integer last at least `from`
function M.last_that_fits(text, from, cells)
  local piece = text:sub(from, from + cells - 1)
  if not piece:find('[^\32-\126]') then
    return from + #piece - 1
  end
  local last = from - 1
  while last < #text do
    local size = math.max(1, vim.str_utf_end(text, last + 1) + 1)
    cells = cells - vim.api.nvim_strwidth(text:sub(last + 1, last + size))
    if cells < 0 then
      break
    end
    last = last + size
  end
  return math.max(last, from) -- a too wide character overflows, or callers would not advance
end

--- Cuts a text at its end so that it fits.
---@param text string
---@param cells integer
---@return string text
---@return boolean cut
function M.clip(text, cells)
  cells = math.max(cells, 1) -- on a narrow screen labels may take all cells
  if #text <= cells or vim.api.nvim_strwidth(text) <= cells then
    return text, false
  end
  return text:sub(1, M.last_that_fits(text, 1, cells - 1)) .. '…', true
end

--- Cuts a path in its middle so that it fits: the last part matters most.
---@param text string
---@param cells integer
---@return string text
---@return boolean cut
function M.clip_middle(text, cells)
  cells = math.max(cells, 1)
  if #text <= cells or vim.api.nvim_strwidth(text) <= cells then
    return text, false
  end
  local head = text:sub(1, M.last_that_fits(text, 1, math.floor(cells / 4)))
  local from = math.max(#head + 1, #text - 4 * cells) -- a character has at most four bytes
  from = from + vim.str_utf_start(text, from)
  while vim.api.nvim_strwidth(head .. '…' .. text:sub(from)) > cells do
    from = from + vim.str_utf_end(text, from) + 1
  end
  return head .. '…' .. text:sub(from), true
end

--- Returns the last byte of the last whole word that fits.
---@param text string
---@param from integer first byte
---@param last integer last byte that fits
---@return integer? last nil if the text cannot be broken between words
local function last_word(text, from, last)
  local blank = last < #text and text:sub(from, last + 1):match('^.*%S()%s') -- after the last word that fits
  return blank and from + blank - 2 or nil
end

--- Breaks a text into pieces that fit, between words if possible.
---@param text string without line breaks
---@param cells integer
---@return string[]
function M.broken(text, cells)
  local pieces, from = {}, 1
  repeat
    local last = M.last_that_fits(text, from, cells)
    last = last_word(text, from, last) or last
    table.insert(pieces, text:sub(from, last))
    from = text:find('%S', last + 1) or #text + 1
  until from > #text
  return pieces
end

--- Adds a line, wrapped if `wrap` is set.
---@param text string
---@param spans? mcp-tools.Span[]
---@param at_words? boolean break between words, unless that leaves more than half of a row empty
function Rows:line(text, spans, at_words)
  local from, lead = 1, ''
  repeat
    local room = math.max(1, self.width - (lead == '' and 0 or CONTINUED_CELLS))
    local last = self.wrap and M.last_that_fits(text, from, room) or #text
    local word = at_words and last_word(text, from, last)
    local breaks = word and (word - from) * 2 >= room
    last = breaks and word or last
    local marks, shift = {}, #lead - from
    for _, span in ipairs(spans or {}) do
      local first, final = math.max(span[1], from), math.min(span[2], last)
      if first <= final then
        table.insert(marks, { first + shift, final + shift + 1, span[3] })
      end
    end
    table.insert(self.list, { text = lead .. text:sub(from, last), marks = marks })
    from, lead = last + (breaks and 2 or 1), CONTINUED -- skips the blank
  until from > #text
end

--- Adds a row, cut to the width.
---@param pieces mcp-tools.Piece[]
---@param item? mcp-tools.RowItem
function Rows:add(pieces, item)
  local text, marks, room = '', {}, self.width
  for _, piece in ipairs(pieces) do
    local part, name = piece, nil
    if type(piece) == 'table' then
      part, name = piece[1], piece[2]
    end
    part = sanitize.line(part --[[@as string]])
    if room > 0 then
      part = M.clip(part, room)
      if name and part ~= '' then
        table.insert(marks, { #text, #text + #part, name })
      end
      text, room = text .. part, room - vim.api.nvim_strwidth(part)
    end
  end
  table.insert(self.list, { text = strings.trim_end(text), marks = marks, item = item })
end

---@param piece mcp-tools.Piece?
---@return string
local function text_of(piece)
  return type(piece) == 'table' and piece[1] or piece --[[@as string?]] or ''
end

--- Cuts or pads a piece to the width of its column.
---@param piece mcp-tools.Piece?
---@param cells integer
---@param right boolean align right
---@return mcp-tools.Piece[]
local function fitted(piece, cells, right)
  local text = M.clip(sanitize.line(text_of(piece)), cells)
  local blank = (' '):rep(cells - vim.api.nvim_strwidth(text))
  local shown = { text, type(piece) == 'table' and piece[2] or nil }
  return right and { blank, shown } or { shown, blank }
end

---@class mcp-tools.TableRow
---@field cells mcp-tools.Piece[]
---@field item? mcp-tools.RowItem

--- Adds a table. Columns are as wide as their content; one shrinks if there is not enough room.
---@param rows mcp-tools.TableRow[]
---@param opts? { indent: integer?, shrinks: integer?, right: table<integer, true>?, min_widths: table? } `shrinks`: the
---  column that shrinks, default the last; `right`: right-aligned columns; `min_widths`: column → width, which keeps
---  columns in place when their content changes
function Rows:table(rows, opts)
  opts = opts or {}
  local widths, count = {}, 0
  for _, row in ipairs(rows) do
    for i = 1, #row.cells do
      local least = opts.min_widths and opts.min_widths[i] or 0
      widths[i] = math.max(widths[i] or least, vim.api.nvim_strwidth(sanitize.line(text_of(row.cells[i]))))
      count = math.max(count, i)
    end
  end
  local indent, shrinks = opts.indent or 2, opts.shrinks or count
  local all = indent
  for i = 1, count do
    all = all + widths[i] + (i < count and GAP or 0)
  end
  if all > self.width and widths[shrinks] then
    widths[shrinks] = math.max(4, widths[shrinks] - (all - self.width))
  end
  for _, row in ipairs(rows) do
    local pieces = { (' '):rep(indent) }
    for i = 1, count do
      vim.list_extend(pieces, fitted(row.cells[i], widths[i], opts.right ~= nil and opts.right[i] == true))
      table.insert(pieces, i < count and (' '):rep(GAP) or nil)
    end
    self:add(pieces, row.item)
  end
end

return M

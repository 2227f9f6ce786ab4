--- Rows of a window, each as wide as there is room: pieces of text with colours, and tables whose columns fit.
---
--- Receives: pieces of text with the names of their colours; what a row stands for.
--- Sends: rows; every row knows its text, its marks, and the thing that a key pressed on it is about.
--- Does not know about: windows, what the texts say.

local page = require('mcp-tools.ui.layout.page')
local sanitize = require('mcp-tools.util.sanitize')
local strings = require('mcp-tools.util.strings')

local M = {}

--- A piece of text; with the name of its colour, if it has one.
---@alias mcp-tools.Piece string|{ [1]: string, [2]: string? }

--- What a row stands for: keys that need one look at its kind, and the cursor follows its id.
---@class mcp-tools.RowItem
---@field kind string
---@field id string of all rows of a window
---@field value? any

---@class mcp-tools.Row
---@field text string
---@field marks { [1]: integer, [2]: integer, [3]: string }[] bytes from 0, the end behind the last; name of the colour
---@field item? mcp-tools.RowItem

---@class mcp-tools.Rows
---@field width integer cells of a row
---@field list mcp-tools.Row[]
local Rows = {}
Rows.__index = Rows

--- Cells between two columns.
local GAP = 2

---@param width integer cells
---@return mcp-tools.Rows
function M.new(width)
  return setmetatable({ width = width, list = {} }, Rows)
end

--- Adds a row; what has no room is cut off.
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
      part = page.clip(part, room)
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

--- A piece in a column: cut, or filled up with blanks.
---@param piece mcp-tools.Piece?
---@param cells integer
---@param right boolean it stands at the right of its column
---@return mcp-tools.Piece[]
local function fitted(piece, cells, right)
  local text = page.clip(sanitize.line(text_of(piece)), cells)
  local blank = (' '):rep(cells - vim.api.nvim_strwidth(text))
  local shown = { text, type(piece) == 'table' and piece[2] or nil }
  return right and { blank, shown } or { shown, blank }
end

---@class mcp-tools.TableRow
---@field cells mcp-tools.Piece[]
---@field item? mcp-tools.RowItem

--- Adds rows with columns as wide as they need; one of them gives way, or the last where none is named.
---@param rows mcp-tools.TableRow[]
---@param opts? { indent: integer?, gives: integer?, right: table<integer, true>?, least: table<integer, integer>? }
---  `gives`: the column that is cut where there is no room for all; `right`: columns of numbers; `least`: cells that a
---  column has in any case, so that it stands still when what it shows changes
function Rows:table(rows, opts)
  opts = opts or {}
  local widths, count = {}, 0
  for _, row in ipairs(rows) do
    for i = 1, #row.cells do
      local least = opts.least and opts.least[i] or 0
      widths[i] = math.max(widths[i] or least, vim.api.nvim_strwidth(sanitize.line(text_of(row.cells[i]))))
      count = math.max(count, i)
    end
  end
  local indent, gives = opts.indent or 2, opts.gives or count
  local all = indent
  for i = 1, count do
    all = all + widths[i] + (i < count and GAP or 0)
  end
  if all > self.width and widths[gives] then
    widths[gives] = math.max(4, widths[gives] - (all - self.width))
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

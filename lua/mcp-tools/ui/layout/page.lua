--- Rows of one width, with what of them is coloured: what a window shows, so that a row is a line of its buffer.
---
--- Receives: lines of any length, with spans of bytes and the name of their colour.
--- Sends: rows that fit; what goes on in the next row begins there with `↪`.
--- Does not know about: questions, windows, which colour a name stands for.

local M = {}

--- Begins a row in which the line before it goes on.
local CONTINUED = '↪ '
M.CONTINUED = CONTINUED
local CONTINUED_CELLS = 2

---@class mcp-tools.Span bytes of a line, from 1, the last one included
---@field [1] integer
---@field [2] integer
---@field [3] string

---@class mcp-tools.Mark
---@field row integer from 0
---@field from integer bytes, from 0
---@field to integer behind the last one
---@field name string

---@class mcp-tools.Page
---@field width integer cells that a part may have
---@field wrap boolean lines that are longer go on in the next row
---@field rows string[]
---@field marks mcp-tools.Mark[]
local Page = {}
Page.__index = Page

---@param width integer
---@param wrap boolean
---@return mcp-tools.Page
function M.new(width, wrap)
  return setmetatable({ width = width, wrap = wrap, rows = {}, marks = {} }, Page)
end

--- How many bytes of a text, from `from` on, fit into so many cells.
---@param text string
---@param from integer
---@param cells integer
---@return integer last the last byte that fits
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
  return math.max(last, from) -- a character wider than all the room stands out rather than ends nothing
end

--- Cuts a text so that it fits, at its end.
---@param text string
---@param cells integer
---@return string text
---@return boolean cut
function M.clip(text, cells)
  cells = math.max(cells, 1) -- on a narrow screen labels alone may take more than all
  if #text <= cells or vim.api.nvim_strwidth(text) <= cells then
    return text, false
  end
  return text:sub(1, M.last_that_fits(text, 1, cells - 1)) .. '…', true
end

--- Cuts a path so that it fits, in its middle: the last part tells most.
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
  local from = math.max(#head + 1, #text - 4 * cells) -- four bytes a character at most
  from = from + vim.str_utf_start(text, from)
  while vim.api.nvim_strwidth(head .. '…' .. text:sub(from)) > cells do
    from = from + vim.str_utf_end(text, from) + 1
  end
  return head .. '…' .. text:sub(from), true
end

--- Adds a line, in as many rows as it needs.
---@param text string
---@param spans? mcp-tools.Span[]
function Page:add(text, spans)
  local from, lead = 1, ''
  repeat
    local room = math.max(1, self.width - (lead == '' and 0 or CONTINUED_CELLS)) -- it goes on in any case
    local last = self.wrap and M.last_that_fits(text, from, room) or #text
    table.insert(self.rows, lead .. text:sub(from, last))
    for _, span in ipairs(spans or {}) do
      local first, final = math.max(span[1], from), math.min(span[2], last)
      if first <= final then
        local shift = #lead - from
        table.insert(self.marks, {
          row = #self.rows - 1,
          from = first + shift,
          to = final + shift + 1,
          name = span[3],
        })
      end
    end
    from, lead = last + 1, CONTINUED
  until from > #text
end

--- A text in pieces that fit, broken between words where that can be.
---@param text string without line breaks
---@param cells integer
---@return string[]
function M.broken(text, cells)
  local pieces, from = {}, 1
  repeat
    local last = M.last_that_fits(text, from, cells)
    local blank = last < #text and text:sub(from, last + 1):match('^.*%S()%s') -- behind the last word that fits
    last = blank and from + blank - 2 or last
    table.insert(pieces, text:sub(from, last))
    from = text:find('%S', last + 1) or #text + 1
  until from > #text
  return pieces
end

return M

--- Positions as clients count them, 1-based lines and columns in characters, and in the units of language servers.

local M = {}

local NEW = vim.fn.has('nvim-0.11') == 1

--- Returns the number of characters. NUL is replaced because Vim's functions do not accept it.
---@param text string
---@return integer
function M.characters(text)
  return vim.fn.strchars((text:gsub('%z', '\n')))
end

--- Truncates a text and appends `…`.
---@param text string
---@param max integer maximum number of characters
---@return string
function M.cut(text, max)
  local byte = #text > max and vim.fn.byteidx((text:gsub('%z', '\n')), max) or -1
  return byte >= 0 and byte < #text and text:sub(1, byte) .. '…' or text
end

--- Converts a byte to a column.
---@param bufnr integer
---@param row integer 0-based
---@param byte integer 0-based
---@return integer column 1-based; in bytes if the buffer is not loaded
function M.column(bufnr, row, byte)
  local line = vim.api.nvim_buf_is_loaded(bufnr) and vim.api.nvim_buf_get_lines(bufnr, row, row + 1, false)[1]
  if not line then
    return byte + 1
  end
  return M.characters(line:sub(1, byte)) + 1
end

---@diagnostic disable: param-type-mismatch -- the signatures of Neovim 0.10

---@alias mcp-tools.lsp.Encoding string 'utf-8', 'utf-16' or 'utf-32'

--- Returns the number of units before a byte.
---@param line string
---@param byte integer from 0
---@param encoding mcp-tools.lsp.Encoding
---@return integer
function M.units(line, byte, encoding)
  byte = math.max(0, math.min(byte, #line))
  if encoding == 'utf-8' or not line:find('[\128-\255]') then
    return byte
  elseif NEW then
    return vim.str_utfindex(line, encoding, byte, false)
  end
  local characters, units = vim.str_utfindex(line, byte)
  return encoding == 'utf-32' and characters or units
end

--- Returns the byte at which a unit begins; the end of the line if it is shorter.
---@param line string
---@param units integer from 0
---@param encoding mcp-tools.lsp.Encoding
---@return integer byte from 0
function M.byte(line, units, encoding)
  if units <= 0 then
    return 0
  elseif encoding == 'utf-8' or not line:find('[\128-\255]') then
    return math.min(units, #line)
  elseif NEW then
    return vim.str_byteindex(line, encoding, units, false)
  end
  local ok, byte = pcall(vim.str_byteindex, line, units, encoding == 'utf-16')
  return ok and byte or #line
end

--- Converts a column to the units of a server.
---@param line string
---@param column integer from 1, in characters
---@param encoding mcp-tools.lsp.Encoding
---@return integer character from 0
function M.to_server(line, column, encoding)
  return M.units(line, M.byte(line, column - 1, 'utf-32'), encoding)
end

--- Converts the units of a server to a column.
---@param line string? nil: the file could not be read
---@param character integer from 0
---@param encoding mcp-tools.lsp.Encoding
---@return integer column from 1, in characters
function M.to_client(line, character, encoding)
  if not line then
    return character + 1
  end
  return M.units(line, M.byte(line, character, encoding), 'utf-32') + 1
end

return M

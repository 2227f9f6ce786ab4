--- Source lines: a place in a source file, as adapters name it, with the lines around it.
---
--- Receives: paths and lines from 1, as adapters have them.
--- Sends: paths as they are shown; lines with their numbers, of files whose text may be given.
--- Does not know about: debuggers.

local access = require('mcp-tools.files.access')
local buffers = require('mcp-tools.editor.buffer')
local position = require('mcp-tools.editor.position')
local read = require('mcp-tools.files.read')
local redact = require('mcp-tools.files.redact')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

local MAX_FILE = 32 * 1024 * 1024
local MAX_BYTES = 64 * 1024

--- Lines with their numbers.
---@param lines string[] from `first` on
---@param first integer
---@param mark integer the line that it is about
---@param width integer characters of a line
---@return string
local function numbered(lines, first, mark, width)
  local digits, out = #tostring(first + #lines - 1), {}
  for i, line in ipairs(lines) do
    local number = first + i - 1
    out[i] = ('%s%' .. digits .. 'd %s'):format(number == mark and '>' or ' ', number, position.cut(line, width))
  end
  return (utf8.repair(redact.quoted(table.concat(out, '\n'))))
end

--- The lines around one, as the person has them. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param path string
---@param line integer
---@param around integer lines before and after it
---@param width? integer
---@return string? code
---@return string? withheld why it is not given
function M.code(ctx, path, line, around, width)
  local place, why = access.path(path, ctx.root)
  if not place or line < 1 then -- 0: before the first one
    return nil, why
  end
  local first = math.max(line - around, 1)
  local bufnr = buffers.of_path(place)
  local lines
  if bufnr then
    local ok, fault = access.buffer(bufnr, ctx.root)
    if not ok then
      return nil, fault
    end
    lines = vim.api.nvim_buf_get_lines(bufnr, first - 1, line + around, false)
  else
    local err
    lines, err = ctx:await(function(done)
      read.lines(place, MAX_FILE, { first = first, last = line + around, max_bytes = MAX_BYTES }, done)
    end)
    if not lines then
      return nil, err.message
    end
  end
  return numbered(lines, first, line, width or 120)
end

return M

--- Reads a buffer with its unsaved changes, or a file that is not open.

local buffers = require('mcp-tools.editor.buffer')
local read = require('mcp-tools.privacy.read')
local result = require('mcp-tools.editor.result')
local symbol = require('mcp-tools.editor.symbol')
local target = require('mcp-tools.editor.buffer.target')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum size of a file that is not open, in bytes: all its lines are counted.
local MAX_FILE = 32 * 1024 * 1024

local function read_buffer(ctx, args, found)
  local bufnr = found.bufnr
  local total = vim.api.nvim_buf_line_count(bufnr)
  local err = result.range_fault(args, total)
  if err then
    return ctx(nil, err)
  end
  local wanted = result.last_line(args, total) - args.start_line + 1
  local lines = buffers.some_lines(bufnr, args.start_line, wanted, result.MAX_TEXT + 1)
  local answer = result.lines(lines, {
    path = vim.api.nvim_buf_get_name(bufnr) ~= '' and utf8.repair(found.shown) or nil,
    bufnr = bufnr,
    modified = vim.bo[bufnr].modified,
    changedtick = vim.api.nvim_buf_get_changedtick(bufnr),
    disk = (found.state == 'conflict' and 'changed by others') or (found.state == 'gone' and 'deleted') or nil,
  }, args, total)
  answer.truncated = answer.truncated or #lines < wanted or nil
  ctx(answer)
end

local function read_file(ctx, args, found)
  local last = result.last_line(args, math.huge)
  local range = { first = args.start_line, last = last, max_bytes = result.MAX_TEXT }
  read.lines(found.path, MAX_FILE, range --[[@as mcp-tools.LineRange]], function(lines, total)
    if ctx:cancelled() then
      return
    elseif not lines then
      return ctx(nil, total)
    end
    ---@cast total integer
    local err = result.range_fault(args, total)
    if err then
      return ctx(nil, err)
    end
    ctx(result.lines(lines, { path = (utf8.repair(found.shown)), loaded = false }, args, total))
  end, function(real)
    return ctx:covers(real)
  end)
end

--- Reads the lines of a symbol.
local function read_symbol(ctx, args, found)
  local cancel = symbol.find(found.bufnr, args.symbol, function(node, err)
    if ctx:cancelled() then
      return
    elseif not node then
      return ctx(nil, err)
    end
    read_buffer(ctx, vim.tbl_extend('force', args, { start_line = node.line, end_line = node.end_line }), found)
  end, { fresh = found.new })
  ctx:on_cancel(cancel)
end

return {
  name = 'buffer_read',
  title = 'Read a buffer',
  description = 'Reads a buffer with its unsaved changes, or a closed file, as text. Lines count from 1. If next_line'
    .. ' is present, continue there. Pass changedtick to a later edit.',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0 },
    start_line = { type = 'integer', description = 'First line', default = 1, minimum = 1 },
    end_line = { type = 'integer', description = 'Last line', minimum = 1 },
    limit = {
      type = 'integer',
      description = 'Maximum number of lines',
      default = 2000,
      minimum = 1,
      maximum = 100000,
    },
    symbol = {
      type = 'string',
      description = 'Instead of lines: a function, class, …, such as "parse" or "Parser/parse"',
      minLength = 1,
    },
  },
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  execute = function(ctx, args)
    target.find(ctx, args, { load = args.symbol ~= nil }, function(found, err)
      if ctx:cancelled() then
        return
      elseif not found then
        ctx(nil, err)
      elseif args.symbol then
        read_symbol(ctx, args, found)
      elseif found.bufnr then
        read_buffer(ctx, args, found)
      else
        read_file(ctx, args, found)
      end
    end)
  end,
}

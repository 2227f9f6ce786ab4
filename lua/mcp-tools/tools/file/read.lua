--- Reads a file as the editor has it.

local arguments = require('mcp-tools.editor.arguments')
local buffers = require('mcp-tools.editor.buffer')
local client_versions = require('mcp-tools.editor.edit.client_versions')
local errors = require('mcp-tools.errors')
local find = require('mcp-tools.editor.symbol.find')
local read = require('mcp-tools.privacy.read')
local result = require('mcp-tools.editor.result')
local target = require('mcp-tools.editor.buffer.target')
local utf8 = require('mcp-tools.util.utf8')

--- Maximum size of a file that is not open, in bytes: all its lines are counted.
local MAX_FILE = 32 * 1024 * 1024

local DISK = { conflict = 'changed by others', gone = 'deleted' }

---@param ctx mcp-tools.Ctx
---@param args table
---@param found mcp-tools.Target with a buffer
---@return table
local function read_buffer(ctx, args, found)
  local bufnr = found.bufnr
  local total = vim.api.nvim_buf_line_count(bufnr)
  errors.check(result.range_fault(args, total))
  client_versions.note(ctx, found)
  local wanted = result.last_line(args, total) - args.start_line + 1
  local lines = buffers.some_lines(bufnr, args.start_line, wanted, result.MAX_TEXT + 1)
  local answer = result.lines(lines, {
    path = vim.api.nvim_buf_get_name(bufnr) ~= '' and utf8.repair(found.shown) or nil,
    bufnr = bufnr,
    modified = vim.bo[bufnr].modified,
    changedtick = vim.api.nvim_buf_get_changedtick(bufnr),
    disk = DISK[found.state],
  }, args, total)
  answer.truncated = answer.truncated or #lines < wanted or nil
  return answer
end

---@param ctx mcp-tools.Ctx
---@param args table
---@param found mcp-tools.Target
---@return table
local function read_file(ctx, args, found)
  local version = client_versions.version(found)
  local range = { first = args.start_line, last = result.last_line(args, math.huge), max_bytes = result.MAX_TEXT }
  local lines, total = ctx:await(function(done)
    read.lines(found.path, MAX_FILE, range --[[@as mcp-tools.LineRange]], done, function(real)
      return ctx:covers(real)
    end)
  end)
  errors.check(not lines and total or result.range_fault(args, total))
  client_versions.note(ctx, found, version)
  return result.lines(lines, { path = (utf8.repair(found.shown)), loaded = false }, args, total)
end

return {
  name = 'file_read',
  title = 'Read a file',
  description = 'Reads a file as the editor has it, unsaved changes included: all of it, a range of lines, or one'
    .. ' symbol. Use it for files that are open in the editor, and to read one function of a large file. Returns'
    .. ' numbered lines.',
  search_hint = 'view, show, cat, open file, source of a function, buffer',
  args = {
    path = { type = 'string', description = 'File' },
    symbol = { type = 'string', description = 'Name path such as `Class/method`, instead of lines', minLength = 1 },
    start_line = { type = 'integer', description = 'First line, from 1', default = 1, minimum = 1 },
    end_line = { type = 'integer', description = 'Last line', minimum = 1 },
    limit = arguments.limit('lines', 2000, 100000),
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0, hidden = true },
  },
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  always_load = true,
  max_result_chars = 300000,
  run = function(ctx, args)
    if args.symbol then
      local picked = errors.unwrap(find.one(ctx, args))
      local range = { start_line = picked.node.line, end_line = picked.node.end_line, limit = args.limit }
      return vim.tbl_extend('error', read_buffer(ctx, range, picked.source), { symbol = picked.path })
    end
    local found = errors.unwrap(target.await(ctx, args, {}))
    return (found.bufnr and read_buffer or read_file)(ctx, args, found)
  end,
  render = function(value)
    local head = ('%s%s, lines %d-%d of %d'):format(
      value.path or ('buffer %d'):format(value.bufnr),
      value.symbol and (', %s'):format(value.symbol) or '',
      value.start_line,
      value.end_line,
      value.lines
    )
    head = value.modified and head .. ', with unsaved changes' or head
    head = value.disk and ('%s; on disk it was %s'):format(head, value.disk) or head
    head = value.lossy and head .. '; bytes that are not UTF-8 are shown as \239\191\189' or head
    if value.next_line then
      head = ('%s; start_line=%d continues'):format(head, value.next_line)
    elseif value.truncated then
      head = head .. '; the line is cut'
    end
    local rows, line = { head }, value.start_line
    for text in vim.gsplit(value.text, '\n', { plain = true }) do
      rows[#rows + 1] = line .. '\t' .. text
      line = line + 1
    end
    return table.concat(rows, '\n')
  end,
}

--- The text of a buffer as the person has it, unsaved changes included; of a file that is not open, the file's.

local access = require('mcp-tools.files.access')
local buffer = require('mcp-tools.files.buffer')
local buffers = require('mcp-tools.editor.buffers')
local errors = require('mcp-tools.errors')
local paths = require('mcp-tools.files.paths')
local read = require('mcp-tools.files.read')
local utf8 = require('mcp-tools.util.utf8')

--- Text beyond this is cut at a line, so that one answer fits a model's context.
local MAX_BYTES = 256 * 1024
--- Of files that are not open all lines are counted.
local MAX_FILE = 32 * 1024 * 1024

--- The lines from `first` on that fit.
---@param lines string[] from `first` on
---@return string text, integer count, boolean cut
local function fitting(lines)
  local bytes, count = 0, 0
  for _, line in ipairs(lines) do
    bytes = bytes + #line + 1
    if bytes > MAX_BYTES and count > 0 then
      return table.concat(lines, '\n', 1, count), count, true
    end
    count = count + 1
  end
  return table.concat(lines, '\n', 1, count), count, false
end

---@param lines string[] the wanted range
---@param about table what else is said of the text
---@param first integer
---@param total integer
local function answer(lines, about, first, total)
  local text, count = fitting(lines)
  local cut_line = #text > MAX_BYTES
  if cut_line then
    text = text:sub(1, MAX_BYTES)
  end
  local whole, lossy = utf8.repair(text)
  local last = first + count - 1
  about.lines = total
  about.start_line = first
  about.end_line = last
  about.next_line = last < total and last + 1 or nil
  about.truncated = (cut_line or count < #lines) and true or nil
  about.lossy = lossy or nil
  about.text = whole
  return about
end

---@return integer? first
---@return mcp-tools.Error? err
local function first_line(args, total)
  if args.end_line and args.end_line < args.start_line then
    return nil, errors.new('validation_error', 'end_line: must not be before start_line')
  end
  if args.start_line > math.max(total, 1) then
    local text = ('start_line: line %d is beyond the end (%d lines)'):format(args.start_line, total)
    return nil, errors.new('validation_error', text)
  end
  return args.start_line
end

local function last_line(args, first, total)
  return math.min(args.end_line or total, first + args.limit - 1, total)
end

--- Why a buffer cannot be read, judged by what is opened now: another may have become the current one since the call
--- was decided on.
---@param ctx mcp-tools.Ctx
---@param bufnr integer
---@return mcp-tools.Unreadable?
local function refusal(ctx, bufnr)
  local readable, why = access.buffer(bufnr, ctx.root)
  if readable or why == 'sensitive' then
    return why
  end
  local kind, name = buffer.kind(bufnr)
  return not ctx:covers(kind == 'other' and bufnr or (paths.resolve(name))) and why or nil
end

local function read_buffer(ctx, args, bufnr, path)
  local why = refusal(ctx, bufnr)
  if why then
    return ctx(nil, errors.new('access_denied', ('it cannot be read here: it is %s'):format(why)))
  end
  local total = vim.api.nvim_buf_line_count(bufnr)
  local first, err = first_line(args, total)
  if not first then
    return ctx(nil, err)
  end
  local lines = vim.api.nvim_buf_get_lines(bufnr, first - 1, last_line(args, first, total), false)
  ctx(answer(lines, {
    path = path ~= '' and utf8.repair(path or '') or nil,
    bufnr = bufnr,
    modified = vim.bo[bufnr].modified,
    changedtick = vim.api.nvim_buf_get_changedtick(bufnr),
  }, first, total))
end

local function read_file(ctx, args, path)
  local range = { first = args.start_line, last = last_line(args, args.start_line, math.huge), max_bytes = MAX_BYTES }
  read.lines(path, MAX_FILE, range, function(lines, total)
    if ctx:cancelled() then
      return
    elseif not lines then
      return ctx(nil, total)
    end
    local first, range_err = first_line(args, total)
    if not first then
      return ctx(nil, range_err)
    end
    ctx(answer(lines, { path = path, loaded = false }, first, total))
  end, function(real)
    return ctx:covers(real)
  end)
end

return {
  name = 'buffer_read',
  description = 'Reads a buffer with its unsaved changes, or the file when it is not open. Give path or bufnr. Lines'
    .. ' count from 1. When the answer has next_line there is more: read on from there. changedtick tells a later edit'
    .. ' whether the text is still the one read here.',
  args = {
    path = { type = 'string', description = 'Path of the file; relative ones count from the working directory' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = the current file', minimum = 0 },
    start_line = { type = 'integer', description = 'First line', default = 1, minimum = 1 },
    end_line = { type = 'integer', description = 'Last line', minimum = 1 },
    limit = { type = 'integer', description = 'At most so many lines', default = 2000, minimum = 1, maximum = 100000 },
  },
  annotations = { read_only = true, idempotent = true },
  recommended = true,
  execute = function(ctx, args)
    local found, err = buffers.find(args)
    if not found then
      return ctx(nil, err)
    elseif found.bufnr then
      return read_buffer(ctx, args, found.bufnr, found.path)
    elseif not found.path then
      return ctx(nil, errors.new('not_found', ('buffer %d is not loaded and has no file'):format(args.bufnr)))
    end
    read_file(ctx, args, found.path)
  end,
}

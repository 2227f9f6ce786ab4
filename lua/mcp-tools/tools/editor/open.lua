--- Shows a file at a position to the user.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local disk = require('mcp-tools.editor.buffer.disk')
local errors = require('mcp-tools.errors')
local open = require('mcp-tools.editor.buffer.open')
local position = require('mcp-tools.editor.position')
local rate = require('mcp-tools.util.session').limit
local show = require('mcp-tools.editor.user.show')
local result = require('mcp-tools.editor.result')

local api = vim.api

local limit = rate(60, 2)

--- Returns the loaded buffer, up to date with the disk.
---@param ctx mcp-tools.Ctx
---@param args table
---@return integer? bufnr
---@return mcp-tools.Error? err
local function buffer_of(ctx, args)
  local found = errors.unwrap(buffers.find(args))
  if not found.bufnr then
    return ctx:await(function(done)
      open.load(found.path, done, ctx)
    end)
  end
  disk.await(ctx, found.bufnr)
  return found.bufnr
end

--- Returns the position in Neovim's units.
---@param bufnr integer
---@param args table
---@return { line: integer, byte: integer }?
---@return mcp-tools.Error? err
local function place_of(bufnr, args)
  if not args.line then
    if args.column then
      return nil, errors.new('validation_error', 'column: give line with it')
    end
    local mark = api.nvim_buf_get_mark(bufnr, '"')
    local last = api.nvim_buf_line_count(bufnr)
    return { line = math.max(1, math.min(mark[1], last)), byte = mark[1] > last and 0 or mark[2] }
  end
  local total = api.nvim_buf_line_count(bufnr)
  if args.line > total then
    return nil, errors.new('validation_error', ('line: %d is beyond the end (%d lines)'):format(args.line, total))
  end
  local text = api.nvim_buf_get_lines(bufnr, args.line - 1, args.line, false)[1]
  local column = args.column or position.characters(text:match('^%s*')) + 1
  local byte = vim.fn.byteidxcomp((text:gsub('%z', '\n')), column - 1)
  if byte < 0 and args.column then
    local message = 'column: %d is beyond the end of line %d (%d characters)'
    return nil, errors.new('validation_error', message:format(column, args.line, position.characters(text)))
  end
  return { line = args.line, byte = math.max(byte, 0) }
end

--- Returns the ranges of lines to highlight.
---@param bufnr integer
---@param args table
---@return { [1]: integer, [2]: integer }[]?
---@return mcp-tools.Error? err
local function ranges_of(bufnr, args)
  local ranges, total = {}, api.nvim_buf_line_count(bufnr)
  if args.end_line then
    table.insert(ranges, { args.line or args.end_line, args.end_line })
  end
  for i, text in ipairs(args.ranges or {}) do
    local first, last = text:match('^(%d+)%-?(%d*)$')
    if not first then
      return nil, errors.new('validation_error', ("ranges[%d]: write it as '10-20' or '10'"):format(i - 1))
    end
    table.insert(ranges, { tonumber(first), tonumber(last) or tonumber(first) })
  end
  for _, range in ipairs(ranges) do
    if range[1] < 1 or range[2] < range[1] or range[2] > total then
      local text = 'lines %d-%d: not a range of the file (%d lines)'
      return nil, errors.new('validation_error', text:format(range[1], range[2], total))
    end
  end
  return ranges
end

return {
  name = 'editor_open',
  title = 'Show a file',
  description = "Opens a file at a line in the user's editor, without taking the focus from where they type.",
  search_hint = 'show, jump to, go to, highlight, reveal, point out',
  args = {
    path = { type = 'string', description = 'File path' },
    line = { type = 'integer', description = 'Line', minimum = 1 },
    end_line = { type = 'integer', description = 'Last line to highlight', minimum = 1, hidden = true },
    ranges = {
      type = 'array',
      items = { type = 'string' },
      maxItems = 100,
      description = 'Lines to highlight, such as `10-20`',
    },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
    column = { type = 'integer', description = '1-based column in characters', minimum = 1, hidden = true },
  },
  annotations = { read_only = false, destructive = false, idempotent = true, open_world = false },
  needs_approval = false,
  recommended = true,
  run = function(ctx, args)
    errors.check(limit(ctx))
    local bufnr = errors.unwrap(buffer_of(ctx, args))
    local ranges = errors.unwrap(ranges_of(bufnr, args))
    local line = args.line or ranges[1] and ranges[1][1]
    local place = errors.unwrap(place_of(bufnr, { line = line, column = args.column }))
    local window = errors.unwrap(show.show(bufnr, place))
    show.highlight(bufnr, ranges)
    local at = api.nvim_win_get_cursor(window)
    return result.utf8({
      path = access.shown(api.nvim_buf_get_name(bufnr), ctx.root),
      bufnr = bufnr,
      window = window,
      line = at[1],
      column = position.column(bufnr, at[1] - 1, at[2]),
      entered = window == api.nvim_get_current_win(),
      highlighted = #ranges,
    })
  end,
  render = function(value)
    local where = value.entered and 'in their window' or 'in another window; their cursor stays'
    local marked = value.highlighted > 0 and '; lines are highlighted until the text is edited' or ''
    return ('The user sees %s:%d %s%s.'):format(value.path, value.line, where, marked)
  end,
}

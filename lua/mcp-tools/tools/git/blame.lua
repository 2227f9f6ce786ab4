--- Who last changed the lines of a file.

local blame = require('mcp-tools.editor.git.blame')
local contents = require('mcp-tools.editor.buffer.contents')
local errors = require('mcp-tools.errors')
local revision = require('mcp-tools.editor.git.revision')
local time_slice = require('mcp-tools.util.time_slice')

--- The text of a buffer that the file does not have. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param bufnr integer?
---@return string?
local function unsaved_text(ctx, bufnr)
  if not (bufnr and vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].modified) then
    return nil
  end
  local ending = vim.bo[bufnr].fileformat == 'dos' and '\r\n' or '\n'
  return contents.of_buffer(bufnr, time_slice.of(ctx), ending)
end

return {
  name = 'git_blame',
  description = 'Who last changed the lines of a file: runs of lines with commit, author, day and subject. Lines are'
    .. ' those of the buffer when it is open, unsaved ones included; what is not committed has no commit. Give path or'
    .. ' bufnr.',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Or its buffer; 0 = the current file', minimum = 0 },
    start_line = { type = 'integer', description = 'First line', default = 1, minimum = 1 },
    end_line = { type = 'integer', description = 'Last line', minimum = 1 },
    limit = { type = 'integer', description = 'At most so many lines', default = 500, minimum = 1, maximum = 10000 },
    revision = { type = 'string', description = 'As the file was in this commit; left out: as it is' },
    text = { type = 'boolean', description = 'The lines themselves, too', default = false },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local place, err = revision.place(ctx, args)
    if err then
      return ctx(nil, err)
    elseif not place.path then
      return ctx(nil, errors.new('validation_error', 'give exactly one of path and bufnr'))
    elseif args.end_line and args.end_line < args.start_line then
      return ctx(nil, errors.new('validation_error', 'end_line: must not be before start_line'))
    end
    local commit, bad = revision.of_argument(ctx, args, 'revision')
    if bad then
      return ctx(nil, bad)
    end
    local last = args.start_line + args.limit - 1
    local runs, fault, is_cut = blame.of(ctx, place.path, {
      first = args.start_line,
      last = math.min(args.end_line or last, last),
      commit = commit,
      contents = not commit and unsaved_text(ctx, place.bufnr) or nil,
      text = args.text,
    })
    if not runs then
      local short = fault:match('has only %d+ lines?')
      if short then
        return ctx(
          nil,
          errors.new('validation_error', ('start_line: %d is beyond the end; it %s'):format(args.start_line, short))
        )
      end
      return ctx(nil, revision.failed(fault))
    end
    local reached = runs[#runs] and runs[#runs].end_line or 0
    local has_more = is_cut or reached == last and (not args.end_line or args.end_line > last)
    return { runs = runs, next_line = has_more and reached + 1 or nil }
  end,
}

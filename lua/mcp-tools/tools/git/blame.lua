--- Returns the commit and author that last changed each line of a file.

local arguments = require('mcp-tools.editor.arguments')
local contents = require('mcp-tools.editor.buffer.contents')
local errors = require('mcp-tools.errors')
local redact = require('mcp-tools.privacy.redact')
local revision = require('mcp-tools.editor.git.revision')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

--- Returns the text of a buffer with unsaved changes.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param bufnr integer?
---@return string? text nil: git reads the file
local function unsaved_text(ctx, bufnr)
  if not (bufnr and vim.api.nvim_buf_is_loaded(bufnr) and vim.bo[bufnr].modified) then
    return nil
  end
  local ending = vim.bo[bufnr].fileformat == 'dos' and '\r\n' or '\n'
  return contents.of_buffer(bufnr, time_slice.of(ctx), ending)
end

---@class mcp-tools.git.Run consecutive lines of one commit
---@field start_line integer
---@field end_line integer
---@field commit string? nil: not committed yet
---@field author string?
---@field date string? `2024-05-31`, UTC
---@field summary string?

--- Parses the output of `git blame --porcelain`.
---@param text string
---@param pause fun()
---@return mcp-tools.git.Run[]
local function read(text, pause)
  local runs, about, current, line_number = {}, {}, nil, nil
  for line in vim.gsplit(text, '\n', { plain = true }) do
    local commit, number = line:match('^(%x+) %d+ (%d+)')
    if line:sub(1, 1) == '\t' then
      local last = runs[#runs]
      if not last or last.id ~= current then
        last = { id = current, start_line = line_number }
        table.insert(runs, last)
      end
      last.end_line = line_number
      pause()
    elseif commit and #commit >= 40 then
      current, line_number = commit, tonumber(number)
      about[current] = about[current] or {}
    elseif current then
      local key, value = line:match('^(%S+) (.*)$')
      if key then
        about[current][key] = value
      end
    end
  end
  for _, run in ipairs(runs) do
    local known = about[run.id]
    if not run.id:find('^0+$') then
      run.commit = run.id:sub(1, 12)
      run.author = utf8.repair(known.author or '')
      run.date = os.date('!%Y-%m-%d', tonumber(known['author-time']) or 0) --[[@as string]]
      run.summary = utf8.repair(redact.line(known.summary or '', pause))
    end
    run.id = nil
  end
  return runs
end

--- Returns the runs of a range of lines.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param path string resolved
---@param opts { first: integer, last: integer, commit: string?, contents: string? }
---@return mcp-tools.git.Run[]?
---@return string? fault
---@return boolean? cut lines are missing at the end
local function runs_of(ctx, path, opts)
  local args = { 'blame', '--porcelain', ('-L%d,%d'):format(opts.first, opts.last) }
  if opts.contents then
    vim.list_extend(args, { '--contents', '-' })
  end
  vim.list_extend(args, { opts.commit, '--', path })
  local done = revision.ask(ctx, args, 4 * 1024 * 1024, opts.contents)
  if not done.ok then
    return nil, done.fault
  end
  local pause = time_slice.of(ctx)
  redact.refresh(pause)
  local text = done.cut and (done.stdout:match('^.*\n') or '') or done.stdout
  return read(text, pause), nil, done.cut
end

return {
  name = 'git_blame',
  title = 'Git blame',
  description = 'Returns who last changed the lines of a file: commit, date, author and subject. Unsaved changes of the'
    .. ' editor count as not committed.',
  search_hint = 'annotate, who wrote this line, last change of a line',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number; 0 = current file', minimum = 0, hidden = true },
    start_line = { type = 'integer', description = 'First line', default = 1, minimum = 1 },
    end_line = { type = 'integer', description = 'Last line', minimum = 1 },
    limit = arguments.hidden(arguments.limit('lines', 500, 10000)),
    revision = { type = 'string', description = 'Commit; default: the working tree' },
  },
  annotations = { read_only = true, idempotent = true },
  run = function(ctx, args)
    local place = errors.unwrap(revision.place(ctx, args))
    if not place.path then
      return nil, errors.new('validation_error', 'give exactly one of path and bufnr')
    elseif args.end_line and args.end_line < args.start_line then
      return nil, errors.new('validation_error', 'end_line: must not be before start_line')
    end
    local commit = revision.of_argument(ctx, args, 'revision')
    local last = args.start_line + args.limit - 1
    local runs, fault, is_cut = runs_of(ctx, place.path, {
      first = args.start_line,
      last = math.min(args.end_line or last, last),
      commit = commit,
      contents = not commit and unsaved_text(ctx, place.bufnr) or nil,
    })
    if not runs then
      local short = fault:match('has only %d+ lines?')
      if short then
        return nil,
          errors.new('validation_error', ('start_line: %d is beyond the end; it %s'):format(args.start_line, short))
      end
      return nil, revision.error_of(fault)
    end
    local reached = runs[#runs] and runs[#runs].end_line or 0
    local has_more = is_cut or reached == last and (not args.end_line or args.end_line > last)
    return { runs = runs, next_line = has_more and reached + 1 or nil }
  end,
  render = function(value)
    local rows = { value.next_line and ('cut; start_line=%d continues'):format(value.next_line) or nil }
    for _, run in ipairs(value.runs) do
      local lines = run.start_line == run.end_line and run.start_line or ('%d-%d'):format(run.start_line, run.end_line)
      local by = run.commit and ('%s %s %s: %s'):format(run.commit, run.date, run.author, run.summary)
      table.insert(rows, ('%s: %s'):format(lines, by or 'not committed'))
    end
    return #rows > 0 and table.concat(rows, '\n') or 'The file is empty.'
  end,
}

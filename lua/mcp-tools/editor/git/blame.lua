--- Who last changed the lines of a file, and in which commit.
---
--- Receives: a file of the project, its text where the person has not saved it, a range of lines.
--- Sends: runs of lines of one commit.
--- Does not know about: buffers, arguments of tools.

local redact = require('mcp-tools.files.redact')
local revision = require('mcp-tools.editor.git.revision')
local time_slice = require('mcp-tools.util.time_slice')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

---@class mcp-tools.git.Run lines of one commit
---@field start_line integer
---@field end_line integer
---@field commit string? nil: not committed yet
---@field author string?
---@field date string? day
---@field summary string?
---@field text string[]?

---@param text string of `blame --porcelain`
---@param with_text boolean
---@param pause fun()
---@return mcp-tools.git.Run[]
local function read(text, with_text, pause)
  local runs, about, current, line_number = {}, {}, nil, nil
  for line in vim.gsplit(text, '\n', { plain = true }) do
    local commit, number = line:match('^(%x+) %d+ (%d+)')
    if line:sub(1, 1) == '\t' then
      local last = runs[#runs]
      if not last or last.id ~= current then
        last = { id = current, start_line = line_number, text = with_text and {} or nil }
        table.insert(runs, last)
      end
      last.end_line = line_number
      if with_text then
        table.insert(last.text, (utf8.repair(redact.quoted(line:sub(2), pause))))
      end
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

--- Runs of lines. In a coroutine.
---@param ctx mcp-tools.Ctx
---@param path string resolved
---@param opts { first: integer, last: integer, commit: string?, contents: string?, text: boolean }
---@return mcp-tools.git.Run[]?
---@return string? fault
---@return boolean? cut lines are missing at the end
function M.of(ctx, path, opts)
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
  return read(text, opts.text, pause), nil, done.cut
end

return M

--- Answers of tools that edit: changed lines, whether they are saved, what the user rejected, and new diagnostics.

local after_edit = require('mcp-tools.editor.diagnostics.after_edit')
local buffers = require('mcp-tools.editor.buffer')
local result = require('mcp-tools.editor.result')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum number of files, and of line numbers of one, in a text.
local MAX_FILES, MAX_LINES = 50, 10

---@class mcp-tools.EditAnswer
---@field files mcp-tools.EditAnswerFile[]
---@field symbol string? name path, of tools that change a symbol
---@field by string? what found it
---@field rejected mcp-tools.Rejected[]?
---@field edited_by_user boolean?
---@field diagnostics mcp-tools.EditDiagnostics[]?
---@field unchecked integer? number of edited files whose diagnostics were not requested
---@field elsewhere { total: integer, files: integer, rows: string[] }?

---@class mcp-tools.EditAnswerFile
---@field path string?
---@field bufnr integer?
---@field changedtick integer?
---@field hunks mcp-tools.EditHunk[]
---@field written boolean
---@field created boolean?
---@field disk string?
---@field note string?

--- Returns the answer for edited files, with their diagnostics.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { diagnostics: boolean? }
---@param edited mcp-tools.FilesEdited|mcp-tools.ReviewNote
---@param opts? { more: table?, created: table? } `more`: fields to add to the files; `created`: new files, as
---  { path = resolved, shown }
---@return mcp-tools.EditAnswer
function M.of(ctx, args, edited, opts)
  local files, places, more = {}, {}, opts and opts.more or {}
  for i, file in ipairs(edited) do
    local is_valid = vim.api.nvim_buf_is_valid(file.bufnr)
    files[i] = vim.tbl_extend('force', {
      path = (utf8.repair(is_valid and buffers.shown(file.bufnr, ctx.root) or file.path)),
      bufnr = file.bufnr,
      changedtick = file.changedtick,
      hunks = file.hunks,
      written = file.written,
    }, more[i] or {})
    if #file.hunks > 0 and is_valid then
      table.insert(places, file.bufnr)
    end
  end
  for _, one in ipairs(opts and opts.created or {}) do
    table.insert(files, { path = (utf8.repair(one.shown)), hunks = {}, written = true, created = true })
    table.insert(places, one.path)
  end
  local answer = { files = files, rejected = edited.rejected, edited_by_user = edited.edited }
  after_edit.add(ctx, args, answer, places)
  return answer
end

---@param file mcp-tools.EditAnswerFile
---@return string
local function row_of(file)
  local lines, removed, added = {}, 0, 0
  for i, hunk in ipairs(file.hunks) do
    removed, added = removed + hunk.removed, added + hunk.added
    lines[#lines + 1] = i <= MAX_LINES and hunk.line or nil
  end
  if file.created then
    return ('%s: created'):format(file.path)
  elseif #file.hunks == 0 then
    return ('%s: nothing changed'):format(file.path)
  end
  local where = #file.hunks == 1 and (':%d'):format(lines[1])
    or (': lines %s%s'):format(table.concat(lines, ', '), #file.hunks > #lines and ', …' or '')
  local state = file.written and 'saved' or 'unsaved (open in the editor)'
  local row = ('%s%s −%d +%d, %s'):format(file.path, where, removed, added, state)
  row = file.disk and ('%s; on disk it was %s'):format(row, file.disk) or row
  return file.note and ('%s; %s'):format(row, file.note) or row
end

---@param rows string[]
---@param one mcp-tools.EditDiagnostics
---@param is_only boolean no other file was edited, and its row is the last one
local function add_diagnostics(rows, one, is_only)
  if is_only and one.checked == 'yes' and one.total == 0 then
    rows[#rows] = rows[#rows] .. '; no errors or warnings'
  elseif one.checked == 'unknown' then
    table.insert(rows, ('%s: not checked yet%s'):format(one.path, one.why and ': ' .. one.why or ''))
  elseif one.checked == 'assumed' then
    table.insert(rows, ('%s: the language server reports nothing new'):format(one.path))
  elseif one.total == 0 then
    table.insert(rows, ('%s: no errors or warnings'):format(one.path))
  else
    local new = one.only_new and (', %d new'):format(#one.rows) or ''
    table.insert(rows, ('%s: %s%s'):format(one.path, result.count(one.total, 'diagnostic'), new))
    for _, row in ipairs(one.rows) do
      table.insert(rows, ('%s:%s'):format(one.path, row))
    end
  end
end

--- Returns an answer as text, a line for each file.
---@param answer mcp-tools.EditAnswer
---@return string
function M.text(answer)
  local rows = {}
  for i = 1, math.min(#answer.files, MAX_FILES) do
    rows[i] = row_of(answer.files[i])
  end
  if #answer.files > MAX_FILES then
    table.insert(rows, ('and %d more files'):format(#answer.files - MAX_FILES))
  end
  local is_only = #rows == 1
  result.add_review(rows, answer)
  for _, one in ipairs(answer.diagnostics or {}) do
    add_diagnostics(rows, one, is_only and #rows == 1)
  end
  if answer.unchecked then
    local count = result.count(answer.unchecked, 'more file')
    table.insert(rows, ('%s not checked; diagnostics_list checks them'):format(count))
  end
  local elsewhere = answer.elsewhere
  if elsewhere then
    local count = result.count(elsewhere.total, 'new error')
    table.insert(rows, ('elsewhere: %s in %s'):format(count, result.count(elsewhere.files, 'file')))
    vim.list_extend(rows, elsewhere.rows)
  end
  return table.concat(rows, '\n')
end

return M

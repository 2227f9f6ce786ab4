--- Checks that an edit is the one whose diff the user has approved. The text, or the answer of a language server, may
--- have changed since.

local access = require('mcp-tools.privacy.access')
local buffers = require('mcp-tools.editor.buffer')
local errors = require('mcp-tools.errors')
local file_text = require('mcp-tools.files.text')
local open = require('mcp-tools.editor.buffer.open')
local read = require('mcp-tools.privacy.read')
local text_diff = require('mcp-tools.editor.text.diff')
local text_edits = require('mcp-tools.editor.text.edits')
local utf8 = require('mcp-tools.util.utf8')

local api = vim.api

local M = {}

--- Beginning of the text of a question about a call that is certain to fail.
M.WILL_FAIL = 'The call will fail: '

---@class mcp-tools.ApprovedDiff
---@field files table<string, string> name → its removed and added rows
---@field cut string? the diff of this file is not complete
---@field notes string[] other rows, such as why the diff of a file is not shown

--- Parses the text of a question.
---@param text string
---@return mcp-tools.ApprovedDiff
function M.parse(text)
  local out, rows = { files = {}, notes = {} }, {}
  local name, removed, added = nil, 0, 0 -- numbers of rows left in the hunk
  for row in vim.gsplit(text, '\n', { plain = true }) do
    local sign = row:sub(1, 1)
    local old_count, new_count = row:match('^@@ %-%d+,?(%d*) %+%d+,?(%d*) @@')
    if vim.startswith(row, '… ') then
      out.cut, removed, added = name, 0, 0
    elseif name and (removed > 0 or added > 0) then
      removed, added = removed - (sign == '+' and 0 or 1), added - (sign == '-' and 0 or 1)
      table.insert(rows[name], sign ~= ' ' and row .. '\n' or nil)
    elseif vim.startswith(row, '+++ ') then
      name = row:sub(5):gsub('^b/', '')
      rows[name] = rows[name] or {}
    elseif old_count then
      removed, added = tonumber(old_count) or 1, tonumber(new_count) or 1
    elseif row ~= '' and not vim.startswith(row, '--- ') then
      table.insert(out.notes, row)
    end
  end
  for file, list in pairs(rows) do
    out.files[file] = table.concat(list)
  end
  return out
end

--- Returns the row of a question about a file whose diff is not shown.
---@param name string
---@param why string
---@return string
function M.not_shown(name, why)
  return ('The diff of %s cannot be shown: %s\n'):format(name:gsub('%c', '?'), why)
end

--- Returns whether the question said that the diff of a file is not shown.
---@param approved mcp-tools.ApprovedDiff
---@param name string
---@return boolean
local function is_without_diff(approved, name)
  local start = M.not_shown(name, ''):sub(1, -2)
  return vim.iter(approved.notes):any(function(row)
    return vim.startswith(row, start)
  end)
end

--- Returns whether the text of a question shows the diff of a file.
---@param text string
---@return boolean
function M.has_diff(text)
  return next(M.parse(text).files) ~= nil
end

---@param work mcp-tools.Task
---@param before string[]
---@param after string[]
---@return string rows
local function changed_rows(work, before, after)
  local rows = {}
  local spans = work:await(function(done)
    text_diff.spans_async(before, after, done)
  end)
  for _, span in ipairs(spans) do
    for i = span[1], span[1] + span[2] - 1 do
      table.insert(rows, '-' .. before[i] .. '\n')
    end
    for i = span[3], span[3] + span[4] - 1 do
      table.insert(rows, '+' .. after[i] .. '\n')
    end
  end
  return (utf8.repair(table.concat(rows)))
end

--- Returns whether the approved diff is the change of a target. With unsaved changes, it may show the change of the
--- file instead of that of the buffer.
---@param work mcp-tools.Task
---@param target mcp-tools.EditTarget
---@param approved mcp-tools.ApprovedDiff
---@return boolean
local function is_shown(work, target, approved)
  local lines = api.nvim_buf_get_lines(target.bufnr, 0, -1, false)
  local after = text_edits.applied(lines, target.prepared.list)
  local name = buffers.shown(target.bufnr):gsub('%c', '?')
  local shown = approved.files[name]
  if not shown then
    return is_without_diff(approved, name) or text_diff.are_equal(lines, after)
  end
  shown = utf8.repair(shown)
  local function fits(before)
    local rows = changed_rows(work, before, after)
    return rows == shown or approved.cut == name and vim.startswith(rows, shown)
  end
  if fits(lines) then
    return true
  elseif not vim.bo[target.bufnr].modified or not target.path then
    return false
  end
  local bytes = work:await(function(done)
    read.read(target.path, open.MAX_BYTES, done)
  end)
  return bytes ~= nil and fits((file_text.lines_of(file_text.decode(bytes))))
end

--- Returns an error if edits differ from the approved diff. Each call is checked only once.
---@param work mcp-tools.Task
---@param ctx mcp-tools.Ctx
---@param targets mcp-tools.EditTarget[] prepared
---@return mcp-tools.Error?
function M.refusal(work, ctx, targets)
  local text = ctx.call and ctx.call.approved_preview
  if not text then
    return nil
  end
  ctx.call.approved_preview = nil
  local approved = M.parse(text)
  if vim.startswith(text, M.WILL_FAIL) then
    return errors.new('stale', 'the user was told that this call would fail; call again')
  elseif next(approved.files) == nil then
    return nil -- no diff could be shown
  end
  for _, target in ipairs(targets) do
    local is_ready = api.nvim_buf_is_loaded(target.bufnr) and target.prepared and target.prepared.list
    if is_ready and not is_shown(work, target, approved) then
      local why = 'the change of %s is no longer the one that the user has approved; call again'
      return errors.new('stale', why:format(access.shown(api.nvim_buf_get_name(target.bufnr), ctx.root)))
    end
  end
end

return M

--- Formats a file or a range of lines with its language server.

local approval_diff = require('mcp-tools.editor.lsp.approval_diff')
local errors = require('mcp-tools.errors')
local lsp = require('mcp-tools.editor.lsp')
local position = require('mcp-tools.editor.position')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')

local FORMAT, FORMAT_RANGE = 'textDocument/formatting', 'textDocument/rangeFormatting'

--- Formats a file or a range of lines.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args table
---@return table?
---@return mcp-tools.Error? err
local function run(ctx, args)
  local target = errors.unwrap(lsp.target(ctx, args))
  local bufnr = target.bufnr
  local options = { tabSize = vim.lsp.util.get_effective_tabstop(bufnr), insertSpaces = vim.bo[bufnr].expandtab }
  local method = FORMAT
  local total = vim.api.nvim_buf_line_count(bufnr)
  local range
  if args.start_line or args.end_line then
    method = FORMAT_RANGE
    local last = math.min(args.end_line or total, total)
    if (args.start_line or 1) > last then
      local text = ('start_line: must not be behind end_line or the end (%d lines)'):format(total)
      return nil, errors.new('validation_error', text)
    end
    local text = vim.api.nvim_buf_get_lines(bufnr, last - 1, last, false)[1] or ''
    range = function(client)
      return {
        start = { line = (args.start_line or 1) - 1, character = 0 },
        ['end'] = { line = last - 1, character = position.units(text, #text, client.offset_encoding) },
      }
    end
  end
  local asked = vim.api.nvim_buf_get_changedtick(bufnr)
  local edits, err, info = lsp.request(ctx, bufnr, method, function(client)
    return lsp.document_params(bufnr, { options = options, range = range and range(client) })
  end)
  errors.check(err)
  local answer = { path = target.shown, changed = false, places = 0, files = {} }
  if not edits then
    if args.preview then
      approval_diff.keep(FORMAT, args, '', { [bufnr] = asked })
    end
    return answer
  end
  local before = vim.api.nvim_buf_get_changedtick(bufnr)
  local change = { changes = { [vim.uri_from_bufnr(bufnr)] = edits } }
  errors.check(workspace_edit.plan_and_apply(ctx, info.client, change, answer, args.preview))
  if args.preview then
    approval_diff.keep(FORMAT, args, answer.diff or '', { [bufnr] = asked })
  end
  answer.changed = args.preview and answer.diff ~= '' or vim.api.nvim_buf_get_changedtick(bufnr) ~= before
  answer.unsaved = answer.files[1] and answer.files[1].unsaved
  answer.files = nil
  return workspace_edit.bounded(answer)
end

--- Returns the text that is shown for approval.
---@param args table
---@param again? fun(err: mcp-tools.Error?)
---@return string?
---@return mcp-tools.Error? err
local function preview(args, again)
  errors.check(approval_diff.refusal(args, (args.start_line or args.end_line) and FORMAT_RANGE or FORMAT))
  local where = args.path or (args.bufnr and 'buffer ' .. args.bufnr) or 'the current file'
  local text = ('formats %s, lines %s to %s'):format(where, args.start_line or 1, args.end_line or 'the last')
  return approval_diff.preview(FORMAT, args, text, run, again)
end

return {
  name = 'code_format',
  title = 'Format',
  description = 'Formats a file, or some of its lines, by its language server. An open file stays unsaved.',
  search_hint = 'formatter, reformat, pretty print, indentation',
  args = {
    path = { type = 'string', description = 'File' },
    bufnr = { type = 'integer', description = 'Buffer number', minimum = 0, hidden = true },
    start_line = { type = 'integer', description = 'First line', minimum = 1 },
    end_line = { type = 'integer', description = 'Last line', minimum = 1 },
    preview = { type = 'boolean', description = 'Only return the diff', default = false, hidden = true },
  },
  annotations = { read_only = false, destructive = false, idempotent = true },
  needs_approval = function(given)
    return not given.preview and 'it changes a file'
  end,
  preview = preview,
  reviewed = true,
  recommended = true,
  run = run,
  render = function(value)
    local head = value.changed and ('formatted %s'):format(value.path) or ('%s is formatted already'):format(value.path)
    return workspace_edit.text(value, head)
  end,
}

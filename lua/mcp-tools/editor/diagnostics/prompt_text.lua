--- Diagnostics with the code around them, for prompts.

local buffers = require('mcp-tools.editor.buffer')
local findings = require('mcp-tools.editor.diagnostics.findings')
local access = require('mcp-tools.privacy.access')
local excerpt = require('mcp-tools.editor.result.excerpt')
local path_completion = require('mcp-tools.privacy.completion')
local strings = require('mcp-tools.util.strings')
local utf8 = require('mcp-tools.util.utf8')

local M = {}

--- Maximum number of diagnostics with code; a model works on few at a time.
local MAX = 40
--- Lines of code before and after each.
local AROUND = 3

M.SEVERITIES = { 'error', 'warning', 'info', 'hint' }

---@param item mcp-tools.DiagnosticItem
---@return string
local function entry(item)
  local from = { item.source, item.code and tostring(item.code) }
  local head = ('%s:%d:%d: %s: %s'):format(
    item.path or ('buffer ' .. item.bufnr),
    item.line,
    item.column,
    item.severity,
    strings.join_lines(item.message, ' / ')
  )
  if next(from) then
    head = ('%s [%s]'):format(head, table.concat(vim.tbl_values(from), ' '))
  end
  if not vim.api.nvim_buf_is_loaded(item.bufnr) then
    return head
  end
  local code = excerpt.numbered_of(item.bufnr, item.line - AROUND, item.line + AROUND, item.line)
  return head .. '\n' .. excerpt.fenced(code)
end

--- Returns the text of a prompt about diagnostics.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param args { path: string?, severity: string? }
---@return string? text
---@return string? fault
function M.text(ctx, args)
  local bufnr
  if args.severity and not vim.list_contains(M.SEVERITIES, args.severity) then
    return nil, ('severity must be one of %s'):format(table.concat(M.SEVERITIES, ', '))
  end
  if args.path then
    local place, why = access.path(args.path, ctx.root)
    if not place then
      return nil, ('%s is %s'):format(args.path, why)
    end
    bufnr = buffers.of_path(place)
    if not bufnr then
      return nil, args.path .. ' is not open in the editor, so it has no diagnostics'
    end
  end
  local view = findings.view(ctx, bufnr, args.severity)
  local parts = {}
  for i = 1, math.min(#view.diagnostics, MAX) do
    parts[i] = entry(view.diagnostics[i])
  end
  if #parts == 0 then
    parts[1] = 'There are no diagnostics here.'
  elseif view.total > #parts then
    table.insert(parts, ('… and %d more; the resource nvim://diagnostics has them.'):format(view.total - #parts))
  end
  for _, hidden in ipairs(view.withheld or {}) do
    table.insert(
      parts,
      ('%s has %d more, which are not shown: it is %s.'):format(hidden.path, hidden.count, hidden.why)
    )
  end
  return (utf8.repair(table.concat(parts, '\n\n')))
end

--- Returns the arguments of prompts about diagnostics.
---@return mcp-tools.PromptArg[]
function M.args()
  return {
    {
      name = 'path',
      description = 'File that is open; default: the whole project',
      complete = path_completion.buffers,
    },
    {
      name = 'severity',
      description = 'Minimum severity: error, warning, info or hint',
      complete = function(ctx, prefix)
        ctx(vim.tbl_filter(function(value)
          return vim.startswith(value, prefix:lower())
        end, M.SEVERITIES))
      end,
    },
  }
end

return M

--- What the editor has to say about code: diagnostics, as clients count and as far as they may see them.
---
--- Receives: a buffer or none (all), the root of the project.
--- Sends: plain lists; of files whose text may not be given only the number, and none of it where others quote it.
--- Does not know about: resources, prompts.

local position = require('mcp-tools.editor.position')
local access = require('mcp-tools.files.access')
local redact = require('mcp-tools.files.redact')
local server_text = require('mcp-tools.editor.lsp.server_text')

local M = {}

--- More in one answer is no help.
M.MAX = 1000

local SEVERITY = { 'error', 'warning', 'info', 'hint' }

---@class mcp-tools.DiagnosticItem
---@field path string? relative to the root
---@field bufnr integer
---@field line integer
---@field column integer
---@field end_line integer
---@field end_column integer
---@field severity 'error'|'warning'|'info'|'hint'
---@field message string
---@field source string?
---@field code (string|integer)?

---@param diagnostic vim.Diagnostic
---@param path string?
---@return mcp-tools.DiagnosticItem
local function item_of(diagnostic, path)
  local bufnr = diagnostic.bufnr --[[@as integer]]
  local end_row, end_byte = diagnostic.end_lnum or diagnostic.lnum, diagnostic.end_col or diagnostic.col
  return {
    path = path,
    bufnr = bufnr,
    line = diagnostic.lnum + 1,
    column = position.column(bufnr, diagnostic.lnum, diagnostic.col),
    end_line = end_row + 1,
    end_column = position.column(bufnr, end_row, end_byte),
    severity = SEVERITY[diagnostic.severity] or 'error',
    message = server_text.text(diagnostic.message),
    source = type(diagnostic.source) == 'string' and diagnostic.source or nil,
    code = type(diagnostic.code) ~= 'table' and diagnostic.code or nil,
  }
end

---@class mcp-tools.DiagnosticsView
---@field diagnostics mcp-tools.DiagnosticItem[] worst first in each file
---@field total integer that may be seen; more than there are in the list when it was cut
---@field counts table<string, integer> by severity
---@field withheld { path: string, count: integer, why: string }[]?

--- Diagnostics of one buffer, or of all.
---@param root string
---@param bufnr? integer
---@param severity? 'error'|'warning'|'info'|'hint' no milder ones
---@return mcp-tools.DiagnosticsView
function M.view(root, bufnr, severity)
  local least = severity and vim.fn.index(SEVERITY, severity) + 1 or #SEVERITY
  local by_buffer = {}
  for _, diagnostic in ipairs(vim.diagnostic.get(bufnr)) do
    if diagnostic.severity <= least and vim.api.nvim_buf_is_valid(diagnostic.bufnr) then
      by_buffer[diagnostic.bufnr] = by_buffer[diagnostic.bufnr] or {}
      table.insert(by_buffer[diagnostic.bufnr], diagnostic)
    end
  end
  redact.refresh(function() end)
  local view = { diagnostics = {}, total = 0, counts = {}, withheld = {} }
  for number, list in vim.spairs(by_buffer) do
    local name = vim.api.nvim_buf_get_name(number)
    local path = name ~= '' and access.shown(name, root) or nil
    local ok, why = access.buffer(number, root)
    if not ok then
      table.insert(view.withheld, { path = path or '', count = #list, why = why })
    else
      table.sort(list, function(a, b)
        if a.severity ~= b.severity then
          return a.severity < b.severity
        end
        return a.lnum < b.lnum or (a.lnum == b.lnum and a.col < b.col)
      end)
      for _, diagnostic in ipairs(list) do
        view.total = view.total + 1
        local kind = SEVERITY[diagnostic.severity] or 'error'
        view.counts[kind] = (view.counts[kind] or 0) + 1
        if #view.diagnostics < M.MAX then
          table.insert(view.diagnostics, item_of(diagnostic, path))
        end
      end
    end
  end
  view.counts = next(view.counts) and view.counts or vim.empty_dict()
  view.withheld = #view.withheld > 0 and view.withheld or nil
  return view
end

return M

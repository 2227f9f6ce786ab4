--- What the editor has to say about code: diagnostics, as clients count and as far as they may see them.
---
--- Receives: a buffer or none (all), the root of the project.
--- Sends: plain lists; of files whose text may not be given only the number, and none of it where others quote it.
--- Does not know about: resources, prompts.

local position = require('mcp-tools.editor.position')
local access = require('mcp-tools.files.access')
local redact = require('mcp-tools.files.redact')
local snapshot = require('mcp-tools.editor.diagnostics.snapshot')
local sort = require('mcp-tools.util.sort')
local time_slice = require('mcp-tools.util.time_slice')
local server_text = require('mcp-tools.editor.lsp.server_text')

local M = {}

--- More in one answer is no help.
M.MAX = 1000
--- Characters of a message; bytes of it that are looked at for secrets, which is more than the characters can have.
local MAX_MESSAGE, MAX_LOOKED_AT = 2000, 9000
--- Diagnostics between two looks at the clock.
local STEP = 200

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
  local bufnr, message = diagnostic.bufnr, diagnostic.message
  if type(message) == 'string' then
    message = message:sub(1, MAX_LOOKED_AT)
  end
  local end_row, end_byte = diagnostic.end_lnum or diagnostic.lnum, diagnostic.end_col or diagnostic.col
  return {
    path = path,
    bufnr = bufnr,
    line = diagnostic.lnum + 1,
    column = position.column(bufnr, diagnostic.lnum, diagnostic.col),
    end_line = end_row + 1,
    end_column = position.column(bufnr, end_row, end_byte),
    severity = SEVERITY[diagnostic.severity] or 'error',
    message = position.cut(server_text.text(message), MAX_MESSAGE),
    source = type(diagnostic.source) == 'string' and diagnostic.source or nil,
    code = type(diagnostic.code) ~= 'table' and diagnostic.code or nil,
  }
end

---@class mcp-tools.DiagnosticsView
---@field diagnostics mcp-tools.DiagnosticItem[] worst first in each file
---@field total integer that may be seen; more than there are in the list when it was cut
---@field counts table<string, integer> by severity
---@field withheld { path: string, count: integer, why: string }[]?

---@param a vim.Diagnostic
---@param b vim.Diagnostic
---@return boolean
local function is_before(a, b)
  if a.severity ~= b.severity then
    return a.severity < b.severity
  end
  return a.lnum < b.lnum or (a.lnum == b.lnum and a.col < b.col)
end

--- Diagnostics of one buffer, or of all; many are looked at in pieces.
---@param ctx mcp-tools.Ctx in a coroutine
---@param bufnr? integer
---@param severity? 'error'|'warning'|'info'|'hint' no milder ones
---@return mcp-tools.DiagnosticsView
function M.view(ctx, bufnr, severity)
  local least = severity and vim.fn.index(SEVERITY, severity) + 1 or #SEVERITY
  local pause, by_buffer = time_slice.of(ctx), {}
  for i, diagnostic in ipairs(snapshot.of(bufnr, pause)) do
    if diagnostic.severity <= least then
      by_buffer[diagnostic.bufnr] = by_buffer[diagnostic.bufnr] or {}
      table.insert(by_buffer[diagnostic.bufnr], diagnostic)
    end
    if i % STEP == 0 then
      pause()
    end
  end
  redact.refresh(pause)
  local view = { diagnostics = {}, total = 0, counts = {}, withheld = {} }
  for number, list in vim.spairs(by_buffer) do
    local is_valid = vim.api.nvim_buf_is_valid(number)
    local name = is_valid and vim.api.nvim_buf_get_name(number) or ''
    local path = name ~= '' and access.shown(name, ctx.root) or nil
    local ok, why
    if is_valid then
      ok, why = access.buffer(number, ctx.root)
    end
    if is_valid and not ok then
      table.insert(view.withheld, { path = path or '', count = #list, why = why })
    elseif ok then
      for i, diagnostic in ipairs(sort(list, is_before, pause)) do
        view.total = view.total + 1
        local kind = SEVERITY[diagnostic.severity] or 'error'
        view.counts[kind] = (view.counts[kind] or 0) + 1
        if #view.diagnostics < M.MAX and vim.api.nvim_buf_is_valid(number) then
          table.insert(view.diagnostics, item_of(diagnostic, path))
          pause()
        elseif i % STEP == 0 then
          pause()
        end
      end
    end
  end
  view.counts = next(view.counts) and view.counts or vim.empty_dict()
  view.withheld = #view.withheld > 0 and view.withheld or nil
  return view
end

--- Number of diagnostics by severity in the files that may be read. Nothing is copied.
---@param root string
---@return table<string, integer>
function M.counts(root)
  local counts = {}
  for _, bufnr in ipairs(vim.api.nvim_list_bufs()) do
    local found = vim.diagnostic.count(bufnr)
    if next(found) and access.buffer(bufnr, root) then
      for severity, count in pairs(found) do
        local kind = SEVERITY[severity] or 'error'
        counts[kind] = (counts[kind] or 0) + count
      end
    end
  end
  return next(counts) and counts or vim.empty_dict()
end

return M

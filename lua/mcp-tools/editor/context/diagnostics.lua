--- Diagnostics as the protocol of language servers has them, live, for agents' own channels.
---
--- Receives: one file, or none (all).
--- Sends: those of each file that may be told, places counted from 0 in UTF-16.
--- Does not know about: agents, who asks.

local buffers = require('mcp-tools.editor.buffer')
local location = require('mcp-tools.editor.context.location')
local server_text = require('mcp-tools.editor.lsp.server_text')

local api = vim.api

local M = {}

--- More in one answer is no help.
local MAX = 1000

---@class mcp-tools.context.Diagnostic
---@field message string
---@field severity 1|2|3|4 error, warning, information, hint
---@field range { start: mcp-tools.context.Position, ["end"]: mcp-tools.context.Position }
---@field source string?
---@field code (string|integer)?

---@class mcp-tools.context.FileDiagnostics
---@field path string
---@field diagnostics mcp-tools.context.Diagnostic[]

---@param diagnostic vim.Diagnostic
---@return mcp-tools.context.Diagnostic
local function item_of(diagnostic)
  local bufnr = diagnostic.bufnr --[[@as integer]]
  local loaded = api.nvim_buf_is_loaded(bufnr)
  local function at(row, byte)
    return loaded and location.position(bufnr, row, byte) or { line = row, character = byte }
  end
  return {
    message = server_text.text(diagnostic.message),
    severity = diagnostic.severity or 1,
    range = {
      start = at(diagnostic.lnum, diagnostic.col),
      ['end'] = at(diagnostic.end_lnum or diagnostic.lnum, diagnostic.end_col or diagnostic.col),
    },
    source = type(diagnostic.source) == 'string' and diagnostic.source or nil,
    code = type(diagnostic.code) ~= 'table' and diagnostic.code or nil,
  }
end

--- What there is now.
---@param path? string resolved; default: all files
---@return mcp-tools.context.FileDiagnostics[] in the order of their buffers; of one file also when there are none, if
--- it is open: of a file that is not nothing is known
function M.get(path)
  local only = path and buffers.of_path(path)
  if path and not only then
    return {}
  end
  local by_buffer, count = {}, 0
  for _, diagnostic in ipairs(vim.diagnostic.get(only)) do
    local bufnr = diagnostic.bufnr --[[@as integer]]
    if count < MAX and api.nvim_buf_is_valid(bufnr) and location.path(bufnr) then
      count = count + 1
      by_buffer[bufnr] = by_buffer[bufnr] or {}
      table.insert(by_buffer[bufnr], item_of(diagnostic))
    end
  end
  if only and location.path(only) then
    by_buffer[only] = by_buffer[only] or {}
  end
  local list = {}
  for bufnr, items in vim.spairs(by_buffer) do
    table.insert(list, { path = location.path(bufnr), diagnostics = items })
  end
  return list
end

return M

--- Snapshot of diagnostics, made in pieces: Neovim copies all that it is asked for in one go, and there may be many.
---
--- Receives: a buffer, or none (all).
--- Sends: its diagnostics, as they were at one moment.
--- Does not know about: what is made of them.

local garbage = require('mcp-tools.util.garbage')

local api = vim.api

local M = {}

--- Of one namespace that are copied in one go; of more one severity at a time.
local MAX = 1000
--- Servers speak while it is copied: begun anew so many times, then all is copied in one go.
local TRIES = 3

--- How often diagnostics were set, wherever.
local changes = nil

local function watch()
  if not changes then
    changes = 0
    api.nvim_create_autocmd('DiagnosticChanged', {
      group = api.nvim_create_augroup('mcp-tools.diagnostics', {}),
      callback = function()
        changes = changes + 1
      end,
    })
  end
end

---@param counts table<integer, integer> by severity
---@return integer
local function sum(counts)
  local total = 0
  for _, count in pairs(counts) do
    total = total + count
  end
  return total
end

---@param bufnr integer?
---@param pause fun()
---@return vim.Diagnostic[]? list nil: they have changed meanwhile
local function in_pieces(bufnr, pause)
  local list, before = {}, changes
  local function add(opts)
    vim.list_extend(list, garbage.without(vim.diagnostic.get, bufnr, opts))
    pause()
    return changes == before
  end
  local total = sum(vim.diagnostic.count(bufnr))
  for namespace in vim.spairs(vim.diagnostic.get_namespaces()) do
    local counts = vim.diagnostic.count(bufnr, { namespace = namespace })
    if sum(counts) > MAX then
      for severity in vim.spairs(counts) do
        if not add({ namespace = namespace, severity = severity }) then
          return nil
        end
      end
    elseif next(counts) and not add({ namespace = namespace }) then
      return nil
    end
  end
  return #list == total and list or nil
end

--- Diagnostics of a buffer, or of all.
---@param bufnr integer?
---@param pause fun() called between pieces
---@return vim.Diagnostic[]
function M.of(bufnr, pause)
  watch()
  for _ = 1, TRIES do
    local list = in_pieces(bufnr, pause)
    if list then
      return list
    end
  end
  return vim.diagnostic.get(bufnr)
end

return M

--- Attached servers: the language servers of a buffer that can answer, as soon as they have started.
---
--- Receives: a loaded buffer, a method of the protocol.
--- Sends: clients, or an error value that says what to do.
--- Does not know about: what is asked, whether the servers have read the project (ready.lua).

local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local notifications = require('mcp-tools.editor.lsp.notifications')
local wait = require('mcp-tools.editor.lsp.wait')

local M = {}

--- A server that has been started answers `initialize` by then, ms.
local INITIALIZED_MS = 20000

--- That no server of a buffer can answer.
---@param bufnr integer
---@param method? string
---@return mcp-tools.Error
function M.missing(bufnr, method)
  local attached = clients.of(bufnr)
  if #attached == 0 then
    local filetype = vim.bo[bufnr].filetype
    local text = 'no language server is attached to %s (filetype %s); lsp_status lists those that run'
    local name = vim.fs.basename(vim.api.nvim_buf_get_name(bufnr))
    return errors.new('not_found', text:format(name, filetype ~= '' and filetype or 'unknown'))
  end
  local names = {}
  for i, client in ipairs(attached) do
    names[i] = client.name
  end
  local text = '%s cannot answer %s'
  return errors.new('not_found', text:format(table.concat(names, ', '), method))
end

--- The servers of a buffer that can answer, as soon as they have started.
---@param ctx mcp-tools.Ctx in a coroutine
---@param bufnr integer
---@param method? string
---@return vim.lsp.Client[]? clients not empty
---@return mcp-tools.Error? err
function M.of(ctx, bufnr, method)
  notifications.ensure()
  if #clients.starting(bufnr) == 0 and clients.may_appear(bufnr) then
    local appeared = wait.until_(ctx, clients.APPEARS_MS, function()
      return not vim.api.nvim_buf_is_loaded(bufnr) or #clients.starting(bufnr) > 0
    end)
    if not appeared then
      clients.note_serverless(bufnr)
    end
  end
  wait.until_(ctx, INITIALIZED_MS, function()
    for _, client in ipairs(clients.starting(bufnr)) do
      if not client.initialized and not clients.is_stopped(client) then
        return false
      end
    end
    return true
  end)
  local list = vim.api.nvim_buf_is_loaded(bufnr) and clients.of(bufnr, method) or {}
  if #list > 0 then
    return list
  end
  return nil, M.missing(bufnr, method)
end

return M

--- Precheck of a call that language servers are to answer: what is known at once, before anybody is asked.
---
--- Receives: the arguments of a tool, a method of the protocol.
--- Sends: the error with which the call is certain to end, if there is one.
--- Does not know about: approval, what the tool is called.
---
--- Nothing is loaded and no server is asked: a file that is not open may get a server once it is.

local access = require('mcp-tools.files.access')
local args_of = require('mcp-tools.editor.lsp.args')
local attached = require('mcp-tools.editor.lsp.attached')
local buffers = require('mcp-tools.editor.buffer')
local clients = require('mcp-tools.editor.lsp.clients')
local edit = require('mcp-tools.editor.edit')
local errors = require('mcp-tools.errors')
local project = require('mcp-tools.files.project')

local M = {}

--- Why a file cannot be changed by its servers.
---@param args { path: string?, bufnr: integer? }
---@param method string
---@return mcp-tools.Error? err
---@return integer? bufnr where it is open
function M.refusal(args, method)
  local found, err = buffers.find(args, { current = true })
  if not found then
    return err
  elseif not found.bufnr then
    local missing = not vim.uv.fs_stat(found.path)
    local text = 'there is no file %s'
    return missing and errors.new('not_found', text:format(access.shown(found.path, project.root()))) or nil
  end
  for _, client in ipairs(clients.starting(found.bufnr)) do
    if not client.initialized and not clients.is_stopped(client) then
      return edit.refusal(found.bufnr), found.bufnr -- it may be the one
    end
  end
  if #clients.of(found.bufnr, method) == 0 then
    return attached.missing(found.bufnr, method)
  end
  return edit.refusal(found.bufnr), found.bufnr
end

--- The same for a place in a file.
---@param args { path: string?, bufnr: integer?, line: integer?, column: integer?, symbol: string? }
---@param method string
---@return mcp-tools.Error? err
function M.refusal_at(args, method)
  local err, bufnr = M.refusal(args, method)
  if not err and bufnr then
    return select(2, args_of.where(bufnr, args))
  end
  return err
end

return M

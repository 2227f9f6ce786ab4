--- Changes that language servers make in other files when a file or directory is moved.

local clients = require('mcp-tools.editor.lsp.clients')
local errors = require('mcp-tools.errors')
local glob = require('mcp-tools.files.glob')
local lsp = require('mcp-tools.editor.lsp')
local moved_imports = require('mcp-tools.editor.lsp.moved_imports')
local request = require('mcp-tools.editor.lsp.request')
local strings = require('mcp-tools.util.strings')
local workspace_edit = require('mcp-tools.editor.lsp.workspace_edit')

local M = {}

local WILL, DID = 'workspace/willRenameFiles', 'workspace/didRenameFiles'

---@class mcp-tools.lsp.Move
---@field from string resolved
---@field to string resolved
---@field is_directory boolean

--- Returns whether a server has registered for a file operation.
---@param client vim.lsp.Client
---@param which 'willRename'|'didRename'
---@param move mcp-tools.lsp.Move
---@return boolean
local function is_registered(client, which, move)
  local workspace = (client.server_capabilities or {}).workspace or {}
  local wanted = (workspace.fileOperations or {})[which]
  for _, filter in ipairs(wanted and wanted.filters or {}) do
    local pattern = filter.pattern or {}
    local kind = pattern.matches
    local fits = not kind or kind == (move.is_directory and 'folder' or 'file')
    if fits and (filter.scheme or 'file') == 'file' and glob.compile(pattern.glob or '**')(move.from) then
      return true
    end
  end
  return false
end

---@param move mcp-tools.lsp.Move
local function params_of(move)
  return { files = { { oldUri = vim.uri_from_fname(move.from), newUri = vim.uri_from_fname(move.to) } } }
end

--- Returns the changes that one server requests.
---@param ctx mcp-tools.Ctx
---@param client vim.lsp.Client
---@param move mcp-tools.lsp.Move
---@param ms number?
---@return mcp-tools.lsp.Plan?
---@return mcp-tools.Error? err
local function plan_of(ctx, client, move, ms)
  local bufnr = next(client.attached_buffers)
  if not bufnr or not is_registered(client, 'willRename', move) then
    return nil
  end
  local unready = lsp.await_ready_for(ctx, client, bufnr, WILL, ms)
  if unready then
    return nil,
      errors.new('busy', ('%s, so references in other files cannot be updated yet; try again'):format(unready))
  end
  local change, err = request.ask(ctx, client, WILL, params_of(move), bufnr, ms)
  if not change then
    return nil, err
  end
  return workspace_edit.plan(ctx, change, client)
end

---@param each mcp-tools.Edit
---@return string
local function key_of(each)
  return ('%d:%d:%d:%d:%s'):format(each.start_line, each.start_col, each.end_line, each.end_col, each.text)
end

--- Adds the edits of a plan to another one. Servers may return the same edits.
---@param all mcp-tools.lsp.Plan
---@param plan mcp-tools.lsp.Plan
---@return mcp-tools.Error? err
local function merge(all, plan)
  for _, file in ipairs(plan.files) do
    local known = vim.iter(all.files):find(function(other)
      return other.bufnr == file.bufnr
    end)
    if not known then
      table.insert(all.files, file)
    elseif known.changedtick ~= file.changedtick then
      return errors.new('stale', file.path .. ' has changed since the servers were asked; try again')
    else
      local is_known = {}
      for _, each in ipairs(known.edits) do
        is_known[key_of(each)] = true
      end
      for _, each in ipairs(file.edits) do
        local key = key_of(each)
        table.insert(known.edits, not is_known[key] and each or nil)
        is_known[key] = true
      end
    end
  end
end

--- Returns the changes that all servers request in other files, without applying them.
---@param ctx mcp-tools.Ctx inside a coroutine
---@param move mcp-tools.lsp.Move
---@param ms number? maximum wait for each server
---@return mcp-tools.lsp.Plan? plan nil: no changes
---@return mcp-tools.Error|string|nil more the error, or the names of the servers
function M.plan(ctx, move, ms)
  local all, names = { files = {}, count = 0 }, {}
  for _, client in ipairs(clients.of(nil)) do
    local plan, err = plan_of(ctx, client, move, ms)
    if plan and #plan.files > 0 then
      moved_imports.correct(plan.files, move.from, move.to)
      err = merge(all, plan)
      table.insert(names, client.name)
    end
    if err then
      return nil, err
    end
  end
  for _, file in ipairs(all.files) do
    all.count = all.count + #file.edits
    -- A moved file has no unsaved changes, and its edits are saved, too.
    file.write = file.write or file.resolved == move.from or vim.startswith(file.resolved, strings.directory(move.from))
  end
  if #all.files > 0 then
    return all, table.concat(names, ', ')
  end
end

--- Notifies servers of a move that was carried out.
---@param move mcp-tools.lsp.Move
function M.notify(move)
  for _, client in ipairs(clients.of(nil)) do
    if is_registered(client, 'didRename', move) then
      clients.notify(client, DID, params_of(move))
    end
  end
end

return M

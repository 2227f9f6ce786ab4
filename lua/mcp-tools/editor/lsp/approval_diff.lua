--- Approval text of calls that language servers answer: why the call is certain to fail, or the diff of a dry run while
--- the texts are unchanged.
---
--- `refusal` loads no file and asks no server: a file that is not open may get a server when it is.

local access = require('mcp-tools.privacy.access')
local args_of = require('mcp-tools.editor.lsp.args')
local background = require('mcp-tools.editor.background')
local buffers = require('mcp-tools.editor.buffer')
local clients = require('mcp-tools.editor.lsp.clients')
local edit = require('mcp-tools.editor.edit')
local edit_preview = require('mcp-tools.editor.edit.preview')
local errors = require('mcp-tools.errors')
local lru = require('mcp-tools.util.lru')
local project = require('mcp-tools.instances.project')

local api = vim.api

local M = {}

--- Returns why the servers of a file cannot change it.
---@param args { path: string?, bufnr: integer? }
---@param method string
---@return mcp-tools.Error? err
---@return integer? bufnr where it is open
local function file_refusal(args, method)
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
      return edit.refusal(found.bufnr), found.bufnr -- it may support the method
    end
  end
  if #clients.of(found.bufnr, method) == 0 then
    return clients.missing(found.bufnr, method)
  end
  return edit.refusal(found.bufnr), found.bufnr
end

--- Returns why the servers of a file cannot change it, or cannot at a position.
---@param args { path: string?, bufnr: integer?, line: integer?, column: integer?, symbol: string? }
---@param method string
---@param at_place? boolean also check the position
---@return mcp-tools.Error? err
function M.refusal(args, method, at_place)
  local err, bufnr = file_refusal(args, method)
  if at_place and not err and bufnr then
    return select(2, args_of.where(bufnr, args))
  end
  return err
end

--- Diffs of dry runs: { diff, ticks }.
local kept = lru(32)

--- Identifies a change. The cursor is part of it, since it may move.
---@param what string
---@param args table
---@return string? key nil: the file is not open
local function key_of(what, args)
  local found = buffers.find(args, { current = true })
  if not found or not found.bufnr then
    return nil
  end
  local change, place = vim.deepcopy(args), args_of.where(found.bufnr, args)
  change.dry_run, change.wait_ms, change.path, change.symbol = nil, nil, nil, nil
  change.bufnr, change.line, change.column = found.bufnr, place and place.line, place and place.column
  local names, parts = vim.tbl_keys(change), { what }
  table.sort(names)
  for _, name in ipairs(names) do
    table.insert(parts, ('%s=%s'):format(name, change[name]))
  end
  return table.concat(parts, '\1')
end

--- Remembers the diff of a dry run.
---@param what string
---@param args table
---@param diff string
---@param ticks table<integer, integer> buffer → changedtick of the texts in the diff
function M.keep(what, args, diff, ticks)
  local key = key_of(what, args)
  if key then
    kept:set(key, { diff = diff, ticks = ticks })
  end
end

---@param what string
---@param args table
---@return string?
local function valid_diff(what, args)
  local key = key_of(what, args)
  local found = key and kept:get(key)
  for bufnr, tick in pairs(found and found.ticks or {}) do
    if not api.nvim_buf_is_loaded(bufnr) or api.nvim_buf_get_changedtick(bufnr) ~= tick then
      return nil
    end
  end
  return found and found.diff or nil
end

--- Returns the approval text of a call: the diff, or `text` while a dry run computes it.
---@param what string
---@param args table
---@param text string shown until the diff is known
---@param run fun(ctx: mcp-tools.Ctx, args: table): table?, mcp-tools.Error?
---@param again? fun(err: mcp-tools.Error?) called when the diff is known
---@return string?
---@return mcp-tools.Error? err
function M.preview(what, args, text, run, again)
  local diff = valid_diff(what, args)
  if diff then
    return edit_preview.shown(diff)
  end
  text = text .. '\n(the diff appears here when the language server has answered)'
  if not again or args.dry_run then
    return text
  end
  local dry_run = vim.tbl_extend('force', args, { dry_run = true })
  background.prepare(function(ctx)
    return select(2, run(ctx, dry_run))
  end, again)
  return text
end

return M

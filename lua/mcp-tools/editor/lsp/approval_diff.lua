--- What is shown before a call that a language server will answer: why it is certain to fail, or the diff of a dry run
--- as long as the texts that it is of are the same.
---
--- `refusal` loads nothing and asks no server: a file that is not open may get a server once it is.

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

--- Why a file cannot be changed by its servers.
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
      return edit.refusal(found.bufnr), found.bufnr -- it may be the one
    end
  end
  if #clients.of(found.bufnr, method) == 0 then
    return clients.missing(found.bufnr, method)
  end
  return edit.refusal(found.bufnr), found.bufnr
end

--- Why a file, or a place in it, cannot be changed by its servers.
---@param args { path: string?, bufnr: integer?, line: integer?, column: integer?, symbol: string? }
---@param method string
---@param at_place? boolean
---@return mcp-tools.Error? err
function M.refusal(args, method, at_place)
  local err, bufnr = file_refusal(args, method)
  if at_place and not err and bufnr then
    return select(2, args_of.where(bufnr, args))
  end
  return err
end

--- What may be otherwise at another try.
local PASSING = { busy = true, timeout = true, cancelled = true }

--- Diffs of dry runs: { diff, ticks }.
local kept = lru(32)

--- Names what would be done: where the cursor is counts, as it may be elsewhere by then.
---@param what string
---@param args table
---@return string? key nil: its file is not open
local function key_of(what, args)
  local found = buffers.find(args, { current = true })
  if not found or not found.bufnr then
    return nil
  end
  local given, place = vim.deepcopy(args), args_of.where(found.bufnr, args)
  given.dry_run, given.wait_ms, given.path, given.symbol = nil, nil, nil, nil
  given.bufnr, given.line, given.column = found.bufnr, place and place.line, place and place.column
  local names, parts = vim.tbl_keys(given), { what }
  table.sort(names)
  for _, name in ipairs(names) do
    table.insert(parts, ('%s=%s'):format(name, given[name]))
  end
  return table.concat(parts, '\1')
end

--- Keeps the difference that a dry run has shown.
---@param what string
---@param args table
---@param diff string
---@param ticks table<integer, integer> buffer → changedtick of the texts that it is of
function M.keep(what, args, diff, ticks)
  local key = key_of(what, args)
  if key then
    kept:set(key, { diff = diff, ticks = ticks })
  end
end

---@param what string
---@param args table
---@return string?
local function known(what, args)
  local key = key_of(what, args)
  local found = key and kept:get(key)
  for bufnr, tick in pairs(found and found.ticks or {}) do
    if not api.nvim_buf_is_loaded(bufnr) or api.nvim_buf_get_changedtick(bufnr) ~= tick then
      return nil
    end
  end
  return found and found.diff or nil
end

--- What is said of a call before it runs.
---@param what string
---@param args table
---@param text string until the difference is known
---@param run fun(ctx: mcp-tools.Ctx, args: table): table?, mcp-tools.Error?
---@param again? fun(err: mcp-tools.Error?)
---@return string?
---@return mcp-tools.Error? err
function M.preview(what, args, text, run, again)
  local diff = known(what, args)
  if diff then
    return edit_preview.shown(diff)
  end
  text = text .. '\n(the difference is shown here once the language server has told it)'
  if not again or args.dry_run then
    return text
  end
  local given = vim.tbl_extend('force', args, { dry_run = true })
  background.run(function(ctx)
    local _, err = run(ctx, given)
    return err
  end, function(err)
    if not (err and PASSING[err.code]) then
      again(err)
    end
  end)
  return text
end

return M

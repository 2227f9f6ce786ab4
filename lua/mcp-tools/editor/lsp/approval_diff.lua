--- Approval texts of tools that use language servers: the diff of a preview, which is cached while the texts are
--- unchanged. `refusal` returns the error of a call that is certain to fail.

local access = require('mcp-tools.privacy.access')
local args_of = require('mcp-tools.editor.lsp.args')
local background = require('mcp-tools.editor.background')
local buffers = require('mcp-tools.editor.buffer')
local canonical_json = require('mcp-tools.util.canonical_json')
local clients = require('mcp-tools.editor.lsp.clients')
local edit = require('mcp-tools.editor.edit')
local edit_preview = require('mcp-tools.editor.edit.preview')
local errors = require('mcp-tools.errors')
local lru = require('mcp-tools.util.lru')
local project = require('mcp-tools.instances.project')

local api = vim.api

local M = {}

--- Returns the error of a change that is certain to fail. Loads no file: a closed file may have a server once loaded.
---@param args { path: string?, bufnr: integer?, line: integer?, column: integer?, symbol: string? }
---@param method string
---@return mcp-tools.Error? err
function M.refusal(args, method)
  local found, err = buffers.find(args, { current = true })
  if not found then
    return err
  elseif not found.bufnr then
    local missing = not vim.uv.fs_stat(found.path)
    local text = 'there is no file %s'
    return missing and errors.new('not_found', text:format(access.shown(found.path, project.root()))) or nil
  end
  local is_starting = vim.iter(clients.starting(found.bufnr)):any(function(client)
    return not client.initialized and not clients.is_stopped(client) -- it may support the method
  end)
  if not is_starting and #clients.of(found.bufnr, method) == 0 then
    return clients.missing(found.bufnr, method)
  end
  return edit.refusal(found.bufnr) or select(2, args_of.where(found.bufnr, args))
end

--- Diffs of previews: { diff, states }.
local kept = lru(32)

--- Describes the state of a text. A file that was loaded for the diff may have been closed since.
---@param bufnr integer
---@param path string
---@return integer|string
local function state_of(bufnr, path)
  if api.nvim_buf_is_loaded(bufnr) then
    return api.nvim_buf_get_changedtick(bufnr)
  end
  local stat = vim.uv.fs_stat(path)
  return stat and ('%d.%d %d %d'):format(stat.mtime.sec, stat.mtime.nsec, stat.size, stat.ino) or ''
end

--- Identifies a change by its arguments, and by the cursor if they give no position.
---@param operation string LSP method or tool name
---@param args table
---@return string
local function key_of(operation, args)
  local identity = vim.tbl_extend('force', args, { preview = false, timeout_ms = 0 })
  if not (args.line or args.symbol or args.apply or args.new_path) then
    identity.cursor = { api.nvim_get_current_buf(), unpack(api.nvim_win_get_cursor(0)) }
  end
  return operation .. canonical_json.text(identity)
end

--- Remembers the diff of a preview.
---@param operation string
---@param args table
---@param diff string
---@param ticks table<integer, integer> buffer → changedtick of the texts in the diff
function M.keep(operation, args, diff, ticks)
  local states = {}
  for bufnr, tick in pairs(ticks) do
    local path = api.nvim_buf_is_valid(bufnr) and api.nvim_buf_get_name(bufnr) or ''
    states[bufnr] = { path = path, tick = tick, on_disk = state_of(-1, path) }
  end
  kept:set(key_of(operation, args), { diff = diff, states = states })
end

---@param operation string
---@param args table
---@return string?
local function valid_diff(operation, args)
  local found = kept:get(key_of(operation, args))
  for bufnr, known in pairs(found and found.states or {}) do
    local now = state_of(bufnr, known.path)
    if now ~= known.tick and now ~= known.on_disk then
      return nil
    end
  end
  return found and found.diff or nil
end

--- Returns the approval text of a call: the diff, or `text` while a preview computes it.
---@param operation string
---@param args table
---@param text string shown until the diff is known
---@param run fun(ctx: mcp-tools.Ctx, args: table): table?, mcp-tools.Error?
---@param again? fun(err: mcp-tools.Error?) called when the diff is known
---@return string?
---@return mcp-tools.Error? err
function M.preview(operation, args, text, run, again)
  local diff = valid_diff(operation, args)
  if diff then
    return edit_preview.shown(diff)
  end
  text = text .. '\n(the diff appears here when the language server has answered)'
  if not again or args.preview then
    return text
  end
  local as_preview = vim.tbl_extend('force', args, { preview = true })
  background.prepare(function(ctx)
    return select(2, run(ctx, as_preview))
  end, again)
  return text
end

return M

--- Dry run for a question: the difference that a server would make, told to the person who is asked whether it may.
---
--- Receives: the arguments of a tool that has `dry_run`; what its dry runs came to; how to make one.
--- Sends: a difference, as long as the texts that it is of are the same.
--- Does not know about: approval, what the server is asked.

local args_of = require('mcp-tools.editor.lsp.args')
local background = require('mcp-tools.editor.background')
local buffers = require('mcp-tools.editor.buffer')
local edit_preview = require('mcp-tools.editor.edit.preview')

local api = vim.api

local M = {}

--- Differences that are kept.
local MAX_KEPT = 32
--- What may be otherwise at another try.
local PASSING = { busy = true, timeout = true, cancelled = true }

---@type table<string, { diff: string, ticks: table<integer, integer> }>
local kept, count = {}, 0

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
  if not key then
    return
  elseif count >= MAX_KEPT then
    kept, count = {}, 0
  end
  count = count + (kept[key] and 0 or 1)
  kept[key] = { diff = diff, ticks = ticks }
end

---@param what string
---@param args table
---@return string?
local function known(what, args)
  local key = key_of(what, args)
  local found = key and kept[key]
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

--- Symbols of one file by name, in the shape of those of a project.
---
--- Receives: a name path, `path` or `bufnr` arguments; the ctx of a `run` tool.
--- Sends: the symbols that are meant.
--- Does not know about: how they are shown.

local name_path = require('mcp-tools.editor.symbol.name_path')
local source = require('mcp-tools.editor.symbol.source')
local symbol = require('mcp-tools.editor.symbol')

local M = {}

--- Finds them. The file stays loaded.
---@param ctx mcp-tools.Ctx in a coroutine
---@param path mcp-tools.NamePath
---@param args { path: string?, bufnr: integer?, substring: boolean?, kinds: string[]? }
---@return mcp-tools.ProjectSymbols?
---@return mcp-tools.Error? err
function M.find(ctx, path, args)
  local each, err = source.find(ctx, args)
  if not each then
    return nil, err
  elseif each.file.by == 'nothing' then
    return nil, select(2, symbol.one(each.file, path, 'symbol', each.shown))
  end
  local nodes = vim.tbl_filter(function(node)
    return not args.kinds or vim.list_contains(args.kinds, node.kind)
  end, name_path.all(each.file.tree, path, args.substring))
  local hits = {
    shown = each.shown,
    bufnr = each.bufnr,
    lines_of = source.lines_of(each.bufnr),
    filetype = vim.bo[each.bufnr].filetype,
    file = each.file,
    nodes = nodes,
  }
  local near = #nodes == 0 and name_path.near(each.file.tree, path)
  return { hits = #nodes > 0 and { hits } or {}, total = #nodes, passed = 0, near = near or nil }
end

return M
